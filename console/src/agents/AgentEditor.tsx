/** One agent: what it is, its runner's settings, what it may use, and what that comes to. */
import { useState, type FormEvent } from "react";
import { put, remove } from "../api/client";
import type { AgentEntry, Localised } from "../api/shapes";
import { useWorld } from "../chat/world";
import { asRecord, asText } from "../model/events";
import { namesIn, type Grant } from "../run/story";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { useKept, Within } from "../ui/kept";
import { Confirm, JsonView, Notice, ProblemNotice, Status } from "../ui/parts";
import { go, toAgent } from "../ui/router";
import { useWords } from "../words";
import type { WordKey } from "../words/en";
import type { RunnerEntry } from "../api/shapes";
import { ConfigForm, readSchema, Several, type Offers } from "./ConfigForm";
import { changed, draftOf, modeOf, namedIn, toSend, withRunner, withUnread, type Definition, type Draft } from "./draft";

const NEW = "+";

/** What became of the last attempt to save, and of which agent. It is gone with the next change. */
export interface Outcome {
  agent: string;
  tone: "info" | "bad" | "wait";
  text: string;
}
interface Props {
  agent: string;
  runners: RunnerEntry[];
  outcome: Outcome | null;
  tell: (outcome: Outcome | null) => void;
}

export function AgentEditor(props: Props) {
  const { agent } = props;
  const isNew = agent === NEW;
  const [saved, setSaved] = useState<AgentEntry | null>(null);
  const found = useLoaded<AgentEntry>(isNew ? null : `/api/v1/agents/${encodeURIComponent(agent)}`);
  const { t } = useWords();
  const entry = saved?.agentId === agent ? saved : found.value;
  if (!entry && found.problem) return <ProblemNotice problem={found.problem} again={found.again} />;
  if (!isNew && !entry) return <p className="hint">{t("app.loading")}</p>;
  return (
    <Within name={`agent ${agent}`}>
      <Editor key={agent} {...props} id={isNew ? "" : agent} entry={entry} onSaved={setSaved} />
    </Within>
  );
}

function Editor({ id, entry, runners, outcome, tell, onSaved }: Props & { id: string; entry: AgentEntry | null; onSaved: (entry: AgentEntry) => void }) {
  const { t, pick } = useWords();
  const { admin, agents } = useWorld();
  // Until something is written, the form shows what the host has; what is written stays until it is saved or dropped.
  const [written, setWritten] = useKept<Draft | null>("form", null);
  const [asking, setAsking] = useState(false);
  const [saving, setSaving] = useState(false);
  const [saves, setSaves] = useState(0);
  // Fields that hold a text of their own begin anew when what was written is dropped or saved.
  const [round, setRound] = useState(0);
  const editable = admin && (entry === null || entry.origin === "api");
  const allowance = useLoaded<Allowance>(admin && id ? `/api/v1/agents/${encodeURIComponent(id)}/allowance?round=${saves}` : null);
  const offers = useOffers(admin);
  const draft = written ?? draftOf(id, entry ? (entry.definition ?? { runner: entry.runnerId }) : { runner: usualRunner(runners) });
  const { definition } = draft;
  const runnerId = asText(definition["runner"]);
  const runner = runners.find((one) => one.runnerId === runnerId);
  const change = (next: Draft | null) => {
    tell(null);
    setWritten(next);
  };
  const drop = () => {
    change(null);
    setRound((count) => count + 1);
  };
  const set = (fields: Definition) => change(changed(draft, fields));

  const save = (event: FormEvent) => {
    event.preventDefault();
    const name = draft.name.trim();
    setSaving(true);
    put<AgentEntry>(`/api/v1/agents/${encodeURIComponent(name)}`, toSend(draft), id ? {} : { "If-None-Match": "*" })
      .then((kept) => {
        onSaved(kept);
        setWritten(null);
        setRound((count) => count + 1);
        tell(kept.health === "problem" ? { agent: name, tone: "wait", text: t("ag.saved_but", { problem: kept.problem ?? "" }) } : { agent: name, tone: "info", text: t("app.saved") });
        void agents.again();
        setSaves((count) => count + 1);
        if (!id) go(toAgent(name), true);
      })
      .catch((error: unknown) => tell({ agent: id, tone: "bad", text: `${t("ag.not_saved")} ${sentence(asProblem(error), t)}` }))
      .finally(() => setSaving(false));
  };
  const erase = () => {
    setAsking(false);
    remove(`/api/v1/agents/${encodeURIComponent(id)}`)
      .then(() => {
        setWritten(null);
        void agents.again();
        go("#/agents");
      })
      .catch((error: unknown) => tell({ agent: id, tone: "bad", text: sentence(asProblem(error), t) }));
  };

  return (
    <div className="two">
      <form className="panel" onSubmit={save}>
        {!editable && <WhyNot origin={admin ? (entry?.origin ?? "file") : null} />}
        {editable && written && (
          <Notice tone="wait" title={t(id ? "ag.unsaved" : "ag.unsaved_new")}>
            <button type="button" className="button quiet" onClick={drop}>
              {t("ag.discard")}
            </button>
          </Notice>
        )}
        <fieldset disabled={!editable} className="plain">
          <label className="field">
            <span>{t("ag.name")}</span>
            <input value={draft.name} required disabled={id !== ""} pattern="[a-z0-9][a-z0-9_\-]*" onChange={(event) => change({ ...draft, name: event.target.value })} />
            <small className="hint">{t("ag.name_help")}</small>
          </label>
          <label className="field">
            <span>{t("ag.label")}</span>
            <input value={asText(definition["label"])} onChange={(event) => set({ label: event.target.value || null })} />
          </label>
          <label className="field">
            <span>{t("ag.description")}</span>
            <input value={asText(definition["description"])} onChange={(event) => set({ description: event.target.value })} />
          </label>
          <label className="field">
            <span>{t("ag.runner")}</span>
            <select value={runnerId} onChange={(event) => change(withRunner(draft, event.target.value))}>
              {!runner && <option value={runnerId}>{runnerId && t("ag.runner_gone", { runner: runnerId })}</option>}
              {runners.map((one) => (
                <option key={one.runnerId} value={one.runnerId}>
                  {[pick(one.manifest?.["label"] as Localised), one.runnerId].filter(Boolean).join(" · ")}
                </option>
              ))}
            </select>
            <small className="hint">{t(asRecord(runner?.manifest)["host_only"] === true ? "ag.host_only_runner" : "ag.runner_help")}</small>
          </label>
          <label className="field">
            <span>{t("ag.instructions")}</span>
            <textarea rows={4} value={asText(definition["instructions"])} onChange={(event) => set({ instructions: event.target.value || null })} />
          </label>
          <fieldset>
            <legend>{t("ag.config")}</legend>
            <ConfigForm
              key={`${runnerId} ${round}`}
              schema={readSchema(runner?.manifest)}
              values={asRecord(definition["config"])}
              offers={offers}
              unread={draft.unread}
              onChange={(config, field) => change(withUnread(changed(draft, { config }), field, null))}
              onUnread={(field, text) => change(withUnread(draft, field, text))}
            />
          </fieldset>
          <fieldset>
            <legend>{t("ag.policy")}</legend>
            <Policy what="models" value={definition["models"]} names={offers.models.map((one) => one.modelId)} now={namesOf(allowance.value?.grant, "models")} onChange={(models) => set({ models })} />
            <Policy what="tools" value={definition["tools"]} names={offers.tools.map((one) => one.name)} now={namesOf(allowance.value?.grant, "tools")} onChange={(tools) => set({ tools })} />
            <Policy what="knowledge" value={definition["knowledge_bases"]} names={offers.bases} now={namesOf(allowance.value?.grant, "knowledge")} onChange={(bases) => set({ knowledge_bases: bases })} />
          </fieldset>
        </fieldset>
        {outcome?.agent === id && <Notice tone={outcome.tone} title={outcome.text} />}
        {editable && (
          <div className="row end">
            {id && (
              <button type="button" className="button danger" onClick={() => setAsking(true)}>
                {t("app.delete")}
              </button>
            )}
            <button type="submit" className="button primary" disabled={saving}>
              {t("app.save")}
            </button>
          </div>
        )}
      </form>
      {id && <Effective id={id} saves={saves} health={entry?.health ?? "unknown"} problem={entry?.problem} />}
      {asking && <Confirm text={t("ag.delete_sure", { agent: id })} word={t("app.delete")} onYes={erase} onNo={() => setAsking(false)} />}
    </div>
  );
}

function usualRunner(runners: RunnerEntry[]): string {
  return (runners.find((one) => one.runnerId.includes("local-agent")) ?? runners[0])?.runnerId ?? "";
}

/** Why an agent cannot be changed here, and what to do; no origin means the person may not. */
function WhyNot({ origin }: { origin: AgentEntry["origin"] | null }) {
  const { t } = useWords();
  if (origin === null) return <Notice tone="wait" title={t("ag.only_admin")} />;
  if (origin === "file") return <Notice tone="wait" title={t("ag.from_file")} />;
  return (
    <Notice tone="wait" title={t(origin === "runner" ? "ag.from_runner" : "ag.from_built_in")}>
      <p>{t(origin === "runner" ? "ag.from_runner_do" : "ag.from_built_in_do")}</p>
      <p>
        <a className="button" href="#/agents/+">
          {t("ag.new")}
        </a>
      </p>
    </Notice>
  );
}

/** What can happen, besides what a platform of one's own may call by another name. */
const EVENTS = ["message.received", "group.member_joined", "schedule.triggered", "handover.received"];

interface Allowance {
  answers: boolean;
  grant?: Grant;
  context?: unknown;
  problem?: string;
}

/** What a run that starts now for an event would get: the effective result of all layers. Nothing is started. */
function Effective({ id, saves, health, problem }: { id: string; saves: number; health: string; problem: string | undefined }) {
  const [event, setEvent] = useState("message.received");
  const { admin } = useWorld();
  const found = useLoaded<Allowance>(admin ? `/api/v1/agents/${encodeURIComponent(id)}/allowance?event=${encodeURIComponent(event)}&round=${saves}` : null);
  const allowance = found.value;
  const { t } = useWords();
  return (
    <section className="panel">
      <h2>{t("ag.effective")}</h2>
      <p className="hint">{t("ag.effective_help")}</p>
      <label className="field">
        <span>{t("ag.event")}</span>
        <input list="events" value={event} maxLength={128} onChange={(change) => setEvent(change.target.value)} />
        <datalist id="events">
          {EVENTS.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      </label>
      {allowance && <p className="spaced">{t(allowance.answers ? "ag.answers" : "ag.answers_not", { event })}</p>}
      <p className="spaced">
        {t("ag.health")}: <Status of={health} /> {allowance?.problem ?? problem}
      </p>
      {allowance?.grant && (
        <dl className="facts">
          {Object.entries(namesIn(allowance.grant)).map(([kind, names]) => (
            <div key={kind}>
              <dt>{t(`run.grant.${kind}` as WordKey)}</dt>
              <dd className="chips">{names.length ? names.map((one) => <code key={one}>{one}</code>) : <span className="hint">{t("run.nothing_granted")}</span>}</dd>
            </div>
          ))}
        </dl>
      )}
      {allowance?.context !== undefined && (
        <details>
          <summary>{t("ag.context")}</summary>
          <JsonView value={allowance.context} />
        </details>
      )}
    </section>
  );
}

function namesOf(grant: Grant | undefined, kind: string): string[] {
  return grant ? (namesIn(grant)[kind] ?? []) : [];
}

const NOTHING: Offers = { models: [], tools: [], bases: [] };

/** All models, tools and knowledge bases that agents of this workspace can be given. */
function useOffers(admin: boolean): Offers {
  const found = useLoaded<{ models: Offers["models"]; tools: Offers["tools"]; knowledgeBases: { kbId: string }[] }>(admin ? "/api/v1/resources" : null, 30_000).value;
  return found ? { models: found.models, tools: found.tools, bases: found.knowledgeBases.map((one) => one.kbId) } : NOTHING;
}

interface PolicyProps {
  what: "models" | "tools" | "knowledge";
  value: unknown;
  /** All there are, and those that runs get now. */
  names: string[];
  now: string[];
  onChange: (value: unknown) => void;
}

/** A policy as plain choices. What was set in a finer way stays as it is until another choice is made. */
function Policy({ what, value, names, now, onChange }: PolicyProps) {
  const { t } = useWords();
  const standard = what === "tools" ? "read_only" : "all";
  const [choosing, setChoosing] = useState(false);
  const found = modeOf(value, standard);
  const mode = found === "none" && choosing ? "these" : found;
  const choose = (wanted: string) => {
    setChoosing(wanted === "these");
    onChange(wanted === "none" ? [] : wanted === "these" ? now : wanted === "all" ? "all" : undefined);
  };
  return (
    <div className="field" role="group" aria-label={t(`ag.${what}`)}>
      <span>{t(`ag.${what}`)}</span>
      <select aria-label={t(`ag.${what}`)} value={mode} onChange={(event) => choose(event.target.value)}>
        <option value="default">{t(what === "tools" ? "ag.policy.read_only" : "ag.policy.default")}</option>
        {what === "tools" && <option value="all">{t("ag.policy.default")}</option>}
        <option value="these">{t("ag.policy.these")}</option>
        <option value="none">{t("ag.policy.none")}</option>
        {mode === "fine" && <option value="fine">{JSON.stringify(value)}</option>}
      </select>
      {mode === "these" && <Several names={names} chosen={namedIn(value) ?? []} onChange={(list) => onChange(list ?? [])} />}
    </div>
  );
}
