/** The whole story of a run on one time line: what it was given, what it was allowed, what it did, what was decided. */
import { useEffect, useMemo, useRef, useState } from "react";
import { get, stream } from "../api/client";
import type { RunEntry } from "../api/shapes";
import { cancelRun } from "../chat/send";
import { useWorld } from "../chat/world";
import { asRecord, asText } from "../model/events";
import { partsOf } from "../model/results";
import { textOf } from "../model/run";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Icon } from "../ui/icons";
import { useAttempts } from "../operate/attempts";
import { Folded, useKept, Within } from "../ui/kept";
import { Empty, endedByHost, Failure, JsonView, Notice, ProblemNotice, Status } from "../ui/parts";
import { go, toRun, toThread } from "../ui/router";
import { FileLink, FileView, ResultParts } from "../ui/StoredFile";
import { useWords } from "../words";
import { costInWords, whyInWords } from "../words/said";
import type { WordKey } from "../words/en";
import { useNews } from "./live";
import { differences, fileIn, filesTold, inputOf, KINDS, named, namesIn, tookOf, type EntryKind, type Grant, type Story, type StoryEntry } from "./story";
import type { Explanation as Explained } from "../api/shapes";

const SILENT_MS = 5_000;
const BLIND_MS = 1_500;
const live = (run: RunEntry | undefined) => run?.status === "running" || run?.status === "queued";

export default function RunPage({ run, other }: { run: string; other: string | null }) {
  const { t } = useWords();
  const [going, setGoing] = useState(true);
  const [followed, setFollowed] = useState(false);
  // What the run says tells when to read; the rhythm is for what it does in silence, and for a stream that is not there.
  const story = useLoaded<Story>(`/api/v1/agent/runs/${run}/story`, !going ? 0 : followed ? SILENT_MS : BLIND_MS);
  const running = story.value ? live(story.value.run) : true;
  const following = useNews(run, Boolean(story.value) && running, story.again);
  if (going !== running) setGoing(running);
  if (followed !== following) setFollowed(following);
  return (
    <div className="page" tabIndex={0}>
      <div className="page-inner">
        {story.problem && <ProblemNotice problem={story.problem} again={story.again} />}
        {!story.value && !story.problem && <p className="hint">{t("app.loading")}</p>}
        {story.value && (
          <Within name={`run ${run}`}>
            <Told key={run} story={story.value} other={other} again={story.again} />
          </Within>
        )}
      </div>
    </div>
  );
}

function Told({ story, other, again }: { story: Story; other: string | null; again: () => Promise<void> }) {
  const words = useWords();
  const { t, time, took, number } = words;
  const { agentName, me } = useWorld();
  const { run } = story;
  // The conversation of somebody else cannot be opened: whoever looks after the workspace came from its list of runs.
  const mine = run.userId === undefined || run.userId === me.value?.userId;
  const { problem, busy, attempt } = useAttempts(again);
  const byHost = endedByHost(run.code);
  return (
    <>
      {problem && <Notice tone="bad" title={problem} />}
      <header className="page-head">
        <a className="icon-button" href={mine ? toThread(run.threadId) : "#/operate"} aria-label={t(mine ? "run.back" : "op.title")} title={t(mine ? "run.back" : "op.title")}>
          <Icon name="back" />
        </a>
        <h1>
          {t("run.title")} · {agentName(run.agentId)}
        </h1>
        <Status of={run.status} />
        {live(run) && (
          <button type="button" className="button danger" disabled={busy !== null} onClick={() => void attempt("stop", () => cancelRun(run.taskId))}>
            {t("run.cancel")}
          </button>
        )}
      </header>
      {run.message && (
        <div className="error-text" role="alert">
          {byHost && <strong>{t(byHost)}</strong>}
          <Failure code={run.code ?? ""} message={run.message} />
        </div>
      )}
      <div className="panel figures-row">
        <Figure name={t("run.began")} value={time(run.startedAt ?? run.createdAt)} />
        <Figure name={t("run.took")} value={took(tookOf(run, Date.now()))} />
        <Figure name={t("run.model_calls")} value={number(run.usage?.modelCalls ?? 0)} />
        <Figure name={t("run.tokens")} value={number(run.usage?.totalTokens ?? 0)} />
        <Figure name={t("run.cost")} value={costInWords(run.usage ?? { cost: 0 }, words)} />
      </div>
      <div className="two">
        <Given story={story} />
        <Allowed grant={story.grant} run={run.taskId} />
      </div>
      <Timeline entries={story.entries} run={run} />
      <Compare story={story} other={other} />
      <RawEvents run={run.taskId} />
    </>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className="figure">
      <b>{value}</b>
      <span>{name}</span>
    </div>
  );
}

function Given({ story }: { story: Story }) {
  const { t } = useWords();
  const input = inputOf(story);
  const text = textOf(asRecord(input?.["message"])["content"]) || asText(input?.["text"]);
  return (
    <section className="panel">
      <h2>{t("run.context")}</h2>
      {text && <p className="ui-text">{text}</p>}
      <dl className="facts">
        <div>
          <dt>{t("run.runner")}</dt>
          <dd>
            <code>{story.run.runnerId}</code>
          </dd>
        </div>
      </dl>
      {input && (
        <Folded name="given">
          <summary>{t("app.more")}</summary>
          <JsonView value={input} />
        </Folded>
      )}
    </section>
  );
}

function Allowed({ grant, run }: { grant: Grant; run: string }) {
  const { t } = useWords();
  const refused = Object.entries(grant.refused ?? {});
  return (
    <section className="panel">
      <h2>{t("run.grant")}</h2>
      <dl className="facts">
        {Object.entries(namesIn(grant)).map(([kind, names]) => (
          <div key={kind}>
            <dt>{t(`run.grant.${kind}` as WordKey)}</dt>
            <dd className="chips">{names.length ? names.map((name) => <code key={name}>{name}</code>) : <span className="hint">{t("run.nothing_granted")}</span>}</dd>
          </div>
        ))}
      </dl>
      {refused.length > 0 && (
        <Folded name="refused">
          <summary>
            {t("run.refused")} ({refused.length})
          </summary>
          <ul>
            {refused.map(([action]) => (
              <li key={action}>
                <Why run={run} action={action} />
              </li>
            ))}
          </ul>
        </Folded>
      )}
    </section>
  );
}

/** Which layer decided about a host call, in words, asked for when somebody wants to know. */
function Why({ run, action, resource }: { run: string; action: string; resource?: string }) {
  const { t } = useWords();
  const [told, setTold] = useKept<Explained | string | null>(`why ${action} ${resource ?? ""}`, null);
  const ask = () => {
    const about = resource ? `&resource=${encodeURIComponent(resource)}` : "";
    get<Explained>(`/api/v1/agent/runs/${run}/explain?action=${encodeURIComponent(action)}${about}`)
      .then(setTold)
      .catch((error: unknown) => setTold(sentence(asProblem(error), t)));
  };
  return (
    <span className="why">
      <code>{action}</code>{" "}
      {told === null ? (
        <button type="button" className="icon-button" onClick={ask} aria-label={`${t("run.why")} ${action}`}>
          {t("run.why")}
        </button>
      ) : (
        <span>{typeof told === "string" ? told : whyInWords(told, t)}</span>
      )}
    </span>
  );
}

function Timeline({ entries, run }: { entries: StoryEntry[]; run: RunEntry }) {
  const { t } = useWords();
  const [kind, setKind] = useKept<EntryKind | null>("kind", null);
  const present = KINDS.filter((one) => entries.some((entry) => entry.kind === one));
  const shown = named(entries).filter(([, entry]) => kind === null || entry.kind === kind);
  const start = entries[0] ? Date.parse(entries[0].time) : 0;
  const told = useMemo(() => filesTold(entries), [entries]);
  return (
    <section className="panel">
      <h2>
        {t("run.timeline")} {live(run) && <Status of={run.status} />}
      </h2>
      <div className="tabs" role="group" aria-label={t("run.filter")}>
        <button type="button" aria-pressed={kind === null} onClick={() => setKind(null)}>
          {t("run.all")} ({entries.length})
        </button>
        {present.map((one) => (
          <button key={one} type="button" aria-pressed={kind === one} onClick={() => setKind(one)}>
            {t(`run.kind.${one}` as WordKey)} ({entries.filter((entry) => entry.kind === one).length})
          </button>
        ))}
      </div>
      {shown.length === 0 && <Empty icon="path">{t("run.none")}</Empty>}
      <ol className="timeline">
        {shown.map(([name, entry]) => (
          <Entry key={name} name={name} entry={entry} start={start} run={run.taskId} told={told} />
        ))}
      </ol>
    </section>
  );
}

function Entry({ name, entry, start, run, told }: { name: string; entry: StoryEntry; start: number; run: string; told: ReadonlySet<string> }) {
  const { t, took, time } = useWords();
  const at = Date.parse(entry.time);
  const [unfolded] = useKept(name, false);
  const isCall = entry.kind === "decision" && asText(entry.detail.actor).startsWith("plugin:");
  return (
    <li className="entry">
      <time dateTime={entry.time} title={time(entry.time)}>
        +{took(Math.max(0, at - start))}
      </time>
      <Folded name={name}>
        <summary>
          <span className="kind">{t(`run.kind.${entry.kind}` as WordKey)}</span>
          <code>{entry.name}</code>
          {entry.kind === "decision" && <span className="hint">{asText(entry.detail.resource)}</span>}
          {entry.result && <Status of={entry.result} />}
          {entry.until && <span className="hint">{took(Date.parse(entry.until) - at)}</span>}
        </summary>
        {isCall && <Why run={run} action={entry.name} resource={asText(entry.detail.resource)} />}
        {unfolded && <Files entry={entry} told={told} />}
        <JsonView value={entry.detail} />
      </Folded>
    </li>
  );
}

/** What of an entry is to be looked at rather than read: the pictures and files of a tool's result, and those a run made. */
function Files({ entry, told }: { entry: StoryEntry; told: ReadonlySet<string> }) {
  const { t } = useWords();
  const id = asText(entry.detail.artifactId);
  const parts = entry.kind === "tool" ? partsOf(entry.detail.result) : null;
  const made = entry.kind === "artifact" && told.has(id) ? fileIn(entry) : null;
  return (
    <>
      {parts && <ResultParts parts={parts} from={entry.name} />}
      {entry.kind === "tool" && id && <FileLink id={id} name={entry.name} label={t("file.whole")} size={null} />}
      {made && <FileView file={made} from={entry.name} />}
    </>
  );
}

function RawEvents({ run }: { run: string }) {
  const { t } = useWords();
  const [lines, setLines] = useState<string[] | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const stopped = useRef<AbortController>(null);
  useEffect(() => () => stopped.current?.abort(), [run]);
  const show = async () => {
    const { signal } = (stopped.current = new AbortController());
    setLines([]);
    try {
      for await (const frames of stream(`/api/v1/agent/runs/${run}/events`, null, signal))
        setLines((before) => [...(before ?? []), ...frames.map((frame) => `${frame.id ?? ""}  ${frame.data}`)]);
    } catch (error) {
      if (!signal.aborted) setProblem(sentence(asProblem(error), t));
    }
  };
  return (
    <section className="panel">
      <h2>{t("run.raw")}</h2>
      {lines === null ? (
        <button type="button" className="button" onClick={() => void show()}>
          {t("run.raw_show")}
        </button>
      ) : (
        <JsonView value={lines.join("\n")} />
      )}
      {problem && <p className="error-text">{problem}</p>}
    </section>
  );
}

function Compare({ story, other }: { story: Story; other: string | null }) {
  const { t, time, took } = useWords();
  const runs = useLoaded<{ runs: RunEntry[] }>(`/api/v1/agent/runs?threadId=${story.run.threadId}&limit=50`);
  const second = useLoaded<Story>(other ? `/api/v1/agent/runs/${other}/story` : null);
  const choices = (runs.value?.runs ?? []).filter((run) => run.taskId !== story.run.taskId);
  return (
    <section className="panel">
      <h2>{t("run.compare_with")}</h2>
      {runs.value && choices.length === 0 && <p className="hint">{t("run.compare_none")}</p>}
      {choices.length > 0 && (
        <label className="field">
          <span>{t("run.compare")}</span>
          <select value={other ?? ""} onChange={(event) => go(toRun(story.run.taskId, event.target.value || undefined), true)}>
            <option value="" />
            {choices.map((run) => (
              <option key={run.taskId} value={run.taskId}>
                {run.agentId} · {time(run.createdAt)} · {t(`status.${run.status}`)}
              </option>
            ))}
          </select>
        </label>
      )}
      {second.value && (
        <div className="table-wrap" tabIndex={0}>
          <table className="full compare">
            <thead>
              <tr>
                <th scope="col" />
                <th scope="col">{time(story.run.createdAt)}</th>
                <th scope="col">{time(second.value.run.createdAt)}</th>
              </tr>
            </thead>
            <tbody>
              {differences(story, second.value, (run) => took(tookOf(run, Date.now()))).map((row) => (
                <tr key={row.what} className={row.one === row.other ? "" : "differs"}>
                  <th scope="row">{t((row.what in GRANT_WORDS ? `run.grant.${row.what}` : `run.${row.what}`) as WordKey)}</th>
                  <td>{row.one}</td>
                  <td>{row.other}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const GRANT_WORDS = namesIn({});
