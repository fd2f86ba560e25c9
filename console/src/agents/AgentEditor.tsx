/** One agent: what it is, its runner's settings, what it may use, and what that comes to. */
import { useEffect, useState, type FormEvent } from "react";
import { put, remove } from "../api/client";
import type { AgentEntry, Localised } from "../api/shapes";
import { useWorld } from "../chat/world";
import { asList, asRecord, asText } from "../model/events";
import { namesIn, type Grant } from "../run/story";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Confirm, JsonView, Notice, ProblemNotice, Status } from "../ui/parts";
import { go, toAgent } from "../ui/router";
import { useWords } from "../words";
import type { WordKey } from "../words/en";
import { ConfigForm, readSchema, Several, type Offers } from "./ConfigForm";
import type { RunnerEntry } from "./AgentsPage";

type Definition = Record<string, unknown>;
const NEW = "+";

export function AgentEditor({ agent, runners }: { agent: string; runners: RunnerEntry[] }) {
  const isNew = agent === NEW;
  const found = useLoaded<AgentEntry>(isNew ? null : `/api/v1/agents/${encodeURIComponent(agent)}`);
  const { t } = useWords();
  if (found.problem) return <ProblemNotice problem={found.problem} again={found.again} />;
  if (!isNew && !found.value) return <p className="hint">{t("app.loading")}</p>;
  const start: Definition = isNew ? { runner: runners.find((one) => one.runnerId.includes("local-agent"))?.runnerId ?? runners[0]?.runnerId ?? "" } : (found.value?.definition ?? {});
  return <Editor key={agent} id={isNew ? "" : agent} entry={found.value} start={start} runners={runners} />;
}

function Editor({ id, entry, start, runners }: { id: string; entry: AgentEntry | null; start: Definition; runners: RunnerEntry[] }) {
  const { t, pick } = useWords();
  const { admin, agents } = useWorld();
  const [name, setName] = useState(id);
  const [draft, setDraft] = useState<Definition>(start);
  const [said, setSaid] = useState<{ tone: "info" | "bad"; text: string } | null>(null);
  const [asking, setAsking] = useState(false);
  const [saves, setSaves] = useState(0);
  const editable = admin && (entry === null || entry.origin === "api");
  const runner = runners.find((one) => one.runnerId === draft["runner"]);
  const allowance = useLoaded<Allowance>(admin && id ? `/api/v1/agents/${encodeURIComponent(id)}/allowance?round=${saves}` : null);
  const offers = useOffers(allowance.value?.grant);
  const set = (change: Definition) => setDraft((before) => ({ ...before, ...change }));

  const save = (event: FormEvent) => {
    event.preventDefault();
    put(`/api/v1/agents/${encodeURIComponent(name.trim())}`, withoutEmpty(draft))
      .then(() => {
        setSaid({ tone: "info", text: t("app.saved") });
        agents.again();
        setSaves((count) => count + 1);
        if (!id) go(toAgent(name.trim()), true);
      })
      .catch((error: unknown) => setSaid({ tone: "bad", text: sentence(asProblem(error), t) }));
  };
  const erase = () => {
    setAsking(false);
    remove(`/api/v1/agents/${encodeURIComponent(id)}`)
      .then(() => {
        agents.again();
        go("#/agents");
      })
      .catch((error: unknown) => setSaid({ tone: "bad", text: sentence(asProblem(error), t) }));
  };

  return (
    <div className="two">
      <form className="panel" onSubmit={save}>
        {!editable && <WhyNot origin={admin ? (entry?.origin ?? "file") : null} />}
        <fieldset disabled={!editable} className="plain">
          <label className="field">
            <span>{t("ag.name")}</span>
            <input value={name} required disabled={id !== ""} pattern="[a-z0-9][a-z0-9_\-]*" onChange={(event) => setName(event.target.value)} />
            <small className="hint">{t("ag.name_help")}</small>
          </label>
          <label className="field">
            <span>{t("ag.label")}</span>
            <input value={asText(draft["label"])} onChange={(event) => set({ label: event.target.value || null })} />
          </label>
          <label className="field">
            <span>{t("ag.description")}</span>
            <input value={asText(draft["description"])} onChange={(event) => set({ description: event.target.value })} />
          </label>
          <label className="field">
            <span>{t("ag.runner")}</span>
            <select value={asText(draft["runner"])} onChange={(event) => set({ runner: event.target.value, config: {} })}>
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
            <textarea rows={4} value={asText(draft["instructions"])} onChange={(event) => set({ instructions: event.target.value || null })} />
          </label>
          <fieldset>
            <legend>{t("ag.config")}</legend>
            <ConfigForm schema={readSchema(runner?.manifest)} values={asRecord(draft["config"])} offers={offers} onChange={(config) => set({ config })} />
          </fieldset>
          <fieldset>
            <legend>{t("ag.policy")}</legend>
            <Policy what="models" value={draft["models"]} names={offers.models} onChange={(models) => set({ models })} />
            <Policy what="tools" value={draft["tools"]} names={namesOf(allowance.value?.grant, "tools")} onChange={(tools) => set({ tools })} />
            <Policy what="knowledge" value={draft["knowledge_bases"]} names={offers.bases} onChange={(bases) => set({ knowledge_bases: bases })} />
          </fieldset>
        </fieldset>
        {said && <Notice tone={said.tone} title={said.text} />}
        {editable && (
          <div className="row end">
            {id && (
              <button type="button" className="button danger" onClick={() => setAsking(true)}>
                {t("app.delete")}
              </button>
            )}
            <button type="submit" className="button primary">
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

/** Models and bases that can be chosen: what this agent is granted, and all bases of the workspace. */
function useOffers(grant: Grant | undefined): Offers {
  const bases = useLoaded<{ bases?: { kbId: string }[]; knowledge?: { kbId: string }[] }>("/api/v1/knowledge");
  const [models, setModels] = useState<string[]>([]);
  useEffect(() => {
    if (grant) setModels((before) => [...new Set([...before, ...namesOf(grant, "models"), "demo"])]);
  }, [grant]);
  const listed = bases.value?.bases ?? bases.value?.knowledge ?? [];
  return { models: models.length ? models : ["demo"], bases: listed.map((one) => one.kbId) };
}

/** A policy as plain choices. What was set in a finer way stays as it is until another choice is made. */
function Policy({ what, value, names, onChange }: { what: "models" | "tools" | "knowledge"; value: unknown; names: string[]; onChange: (value: unknown) => void }) {
  const { t } = useWords();
  const chosen = Array.isArray(value) ? asList(value).map(asText) : null;
  const standard = what === "tools" ? "read_only" : "all";
  const mode = chosen === null ? (value === undefined || value === standard ? "default" : value === "all" ? "all" : "fine") : chosen.length ? "these" : "none";
  const choose = (wanted: string) => onChange(wanted === "none" ? [] : wanted === "these" ? names : wanted === "all" ? "all" : undefined);
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
      {mode === "these" && <Several names={names} chosen={chosen ?? []} onChange={(list) => onChange(list ?? [])} />}
    </div>
  );
}

function withoutEmpty(draft: Definition): Definition {
  return Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined && value !== null));
}
