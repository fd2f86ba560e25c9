/** Knowledge bases: what is in them, and how far documents on their way in have come. */
import { useCallback, useEffect, useRef, useState, type FormEvent } from "react";
import { get, post, remove } from "../api/client";
import { useWorld } from "../chat/world";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { Icon } from "../ui/icons";
import { Empty, Notice, ProblemNotice, Status } from "../ui/parts";
import { useWords } from "../words";
import { useAttempts } from "./attempts";
import type { Base, Document, IngestJob as Job } from "../api/shapes";


export function KnowledgePart() {
  const { t } = useWords();
  const { admin } = useWorld();
  const bases = useLoaded<{ bases: Base[] }>("/api/v1/knowledge", 15_000);
  const [id, setId] = useKept("new base", "");
  const [problem, setProblem] = useState<string | null>(null);
  const create = (event: FormEvent) => {
    event.preventDefault();
    post("/api/v1/knowledge", { kbId: id.trim() })
      .then(() => {
        setId("");
        setProblem(null);
      })
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)))
      .finally(bases.again);
  };
  return (
    <section className="panel">
      <h2>{t("op.knowledge")}</h2>
      {bases.problem && <ProblemNotice problem={bases.problem} again={bases.again} />}
      {problem && <Notice tone="bad" title={problem} />}
      {admin && (
        <form className="row" onSubmit={create}>
          <label className="field">
            <span>{t("ag.name")}</span>
            <input value={id} required pattern="[a-z0-9_\-]{1,64}" onChange={(event) => setId(event.target.value)} />
          </label>
          <button type="submit" className="button">
            {t("op.kb_new")}
          </button>
        </form>
      )}
      {bases.value?.bases.length === 0 && <Empty icon="book">{t("op.knowledge_none")}</Empty>}
      <div className="tiles">
        {bases.value?.bases.map((base) => (
          <BaseTile key={base.kbId} base={base} admin={admin} />
        ))}
      </div>
    </section>
  );
}

const SOON_MS = 700;
const SOMETIMES_MS = 10_000;
const AT_FIRST = 8;
/** Ends that are told at once; older ones give way. */
const MOST_ENDS = 20;

/** Documents on their way in, whoever sent them, and how those ended that were seen here. */
function useJobs(path: string, onArrived: () => void): { jobs: Job[]; begin: (job: Job) => void } {
  const [ended, setEnded] = useState<Job[]>([]);
  const [mine, setMine] = useState<Job[]>([]);
  const [quick, setQuick] = useState(false);
  const found = useLoaded<{ jobs: Job[] }>(`${path}/jobs`, quick ? SOON_MS : SOMETIMES_MS);
  const waiting = found.value?.jobs ?? [];
  const known = useRef(new Set<string>());
  const { again } = found;
  useEffect(() => {
    const here = new Set(waiting.map((job) => job.jobId));
    const gone = [...known.current].filter((id) => !here.has(id));
    here.forEach((id) => known.current.add(id));
    setQuick(known.current.size > 0);
    for (const id of gone) {
      get<Job>(`${path}/jobs/${id}`)
        .then((job) => {
          if (job.status === "queued" || job.status === "running") return; // it was sent after the list was written
          known.current.delete(id);
          setMine((before) => before.filter((one) => one.jobId !== id));
          setEnded((before) => [job, ...before.filter((one) => one.jobId !== id)].slice(0, MOST_ENDS));
          onArrived();
        })
        .catch(() => undefined); // asked again with the next list
    }
  }, [found.value]);
  const begin = useCallback(
    (job: Job) => {
      known.current.add(job.jobId);
      setMine((before) => [...before, job]);
      setQuick(true);
      void again();
    },
    [again],
  );
  const listed = new Set([...waiting, ...ended].map((job) => job.jobId));
  return { jobs: [...waiting, ...mine.filter((job) => !listed.has(job.jobId)), ...ended], begin };
}

function BaseTile({ base, admin }: { base: Base; admin: boolean }) {
  const { t } = useWords();
  const path = `/api/v1/knowledge/${encodeURIComponent(base.kbId)}`;
  const documents = useLoaded<{ documents: Document[]; hasMore: boolean }>(`${path}/documents`);
  const { problem: refused, busy, attempt } = useAttempts(documents.again);
  const { jobs, begin } = useJobs(path, documents.again);
  const [problem, setProblem] = useState<string | null>(null);
  const [all, setAll] = useState(false);
  const listed = documents.value?.documents ?? [];
  const more = documents.value?.hasMore === true;
  const add = async (files: File[]) => {
    setProblem(null);
    for (const file of files) {
      try {
        const bytes = new Uint8Array(await file.arrayBuffer());
        begin(await post<Job>(`${path}/documents`, { name: file.name, contentBase64: base64(bytes) }));
      } catch (error) {
        setProblem(`${file.name}: ${sentence(asProblem(error), t)}`);
      }
    }
  };
  return (
    <article className="tile">
      <div className="tile-head">
        <h3>{base.name || base.kbId}</h3>
        <span className="hint">{documents.value && t("op.documents", { count: more ? `${listed.length}+` : listed.length })}</span>
      </div>
      <p>{base.description}</p>
      <ul>
        {listed.slice(0, all ? listed.length : AT_FIRST).map((one) => (
          <li key={one.documentId} className="document">
            <span>{one.name}</span>
            {admin && (
              <button type="button" className="icon-button" disabled={busy === one.documentId} aria-label={t("op.kb_remove", { name: one.name })} title={t("op.kb_remove", { name: one.name })} onClick={() => void attempt(one.documentId, () => remove(`${path}/documents/${encodeURIComponent(one.documentId)}`))}>
                <Icon name="close" size={14} />
              </button>
            )}
          </li>
        ))}
      </ul>
      {!all && listed.length > AT_FIRST && (
        <button type="button" className="button quiet" onClick={() => setAll(true)}>
          {t("op.kb_all", { count: listed.length })}
        </button>
      )}
      {all && more && <p className="hint">{t("op.kb_first", { count: listed.length })}</p>}
      {jobs.length > 0 && (
        <div role="status">
          <ul className="jobs">
            {jobs.map((job) => (
              <JobLine key={job.jobId} job={job} />
            ))}
          </ul>
        </div>
      )}
      {(problem ?? refused) && (
        <p className="error-text" role="alert">
          {problem ?? refused}
        </p>
      )}
      {admin && (
        <label className="field">
          <span>{t("op.kb_add")}</span>
          <input
            type="file"
            multiple
            onChange={(event) => {
              void add([...(event.target.files ?? [])]);
              event.target.value = ""; // so that the same file can be chosen once more
            }}
          />
        </label>
      )}
    </article>
  );
}

function JobLine({ job }: { job: Job }) {
  const { t } = useWords();
  const going = job.status === "queued" || job.status === "running";
  return (
    <li>
      <span>
        {job.name} <Status of={job.status} /> {going && job.total > 0 && t("op.kb_progress", { done: job.done, total: job.total })} {job.message}
      </span>
      {going && <progress className="full" aria-label={job.name} max={job.total || 1} {...(job.total ? { value: job.done } : {})} />}
    </li>
  );
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
