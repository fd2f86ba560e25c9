/** Knowledge bases: what is in them, and how far documents on their way in have come. */
import { useRef, useState, type FormEvent } from "react";
import { get, post, remove } from "../api/client";
import { useWorld } from "../chat/world";
import { asProblem, sentence, useLoaded, useRhythm } from "../ui/data";
import { Icon } from "../ui/icons";
import { Empty, Notice, ProblemNotice, Status } from "../ui/parts";
import { useWords } from "../words";
import { useAttempts } from "./attempts";

interface Base {
  kbId: string;
  name?: string;
  description?: string;
}
interface Job {
  jobId: string;
  kbId: string;
  name: string;
  status: string;
  done: number;
  total: number;
  message?: string;
}

export function KnowledgePart() {
  const { t } = useWords();
  const { admin } = useWorld();
  const bases = useLoaded<{ bases: Base[] }>("/api/v1/knowledge", 15_000);
  const [id, setId] = useState("");
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

function BaseTile({ base, admin }: { base: Base; admin: boolean }) {
  const { t } = useWords();
  const path = `/api/v1/knowledge/${encodeURIComponent(base.kbId)}`;
  const documents = useLoaded<{ documents: { documentId: string; name: string }[] }>(`${path}/documents`);
  const { problem: refused, busy, attempt } = useAttempts(documents.again);
  const [job, setJob] = useState<Job | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const asking = useRef(false);
  const going = job?.status === "queued" || job?.status === "running";
  useRhythm(going ? 500 : 0, () => {
    if (!job || asking.current) return;
    asking.current = true;
    get<Job>(`${path}/jobs/${job.jobId}`)
      .then((found) => {
        setJob(found);
        if (found.status === "completed") documents.again();
      })
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)))
      .finally(() => {
        asking.current = false;
      });
  });
  const add = (file: File | undefined) => {
    if (!file) return;
    file
      .arrayBuffer()
      .then((bytes) => post<Job>(`${path}/documents`, { name: file.name, contentBase64: base64(new Uint8Array(bytes)) }))
      .then(setJob)
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)));
  };
  return (
    <article className="tile">
      <div className="tile-head">
        <h3>{base.name || base.kbId}</h3>
        <span className="hint">{documents.value && t("op.documents", { count: documents.value.documents.length })}</span>
      </div>
      <p>{base.description}</p>
      <ul>
        {documents.value?.documents.slice(0, 8).map((one) => (
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
      {job && (
        <div role="status">
          <p>
            {job.name} <Status of={job.status} /> {going && job.total > 0 && t("op.kb_progress", { done: job.done, total: job.total })} {job.message}
          </p>
          {going && <progress className="full" aria-label={job.name} max={job.total || 1} {...(job.total ? { value: job.done } : {})} />}
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
          <input type="file" onChange={(event) => add(event.target.files?.[0])} />
        </label>
      )}
    </article>
  );
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
