/** Knowledge bases: what is in them, and how far documents on their way in have come. */
import { useState, type FormEvent } from "react";
import { get, post } from "../api/client";
import { useWorld } from "../chat/world";
import { asProblem, sentence, useLoaded, useRhythm } from "../ui/data";
import { Empty, Notice, ProblemNotice, Status } from "../ui/parts";
import { useWords } from "../words";

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
      {bases.value?.bases.length === 0 && <Empty icon="search">{t("op.knowledge_none")}</Empty>}
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
  const [job, setJob] = useState<Job | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const going = job?.status === "queued" || job?.status === "running";
  useRhythm(going ? 700 : 0, () => {
    if (!job) return;
    get<Job>(`${path}/jobs/${job.jobId}`)
      .then((found) => {
        setJob(found);
        if (found.status === "completed") documents.again();
      })
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)));
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
          <li key={one.documentId}>{one.name}</li>
        ))}
      </ul>
      {job && (
        <p>
          {job.name} <Status of={job.status} /> {going && t("op.kb_progress", { done: job.done, total: job.total })} {job.message}
        </p>
      )}
      {problem && <p className="error-text">{problem}</p>}
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
