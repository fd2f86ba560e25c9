/** What waits for the person's word, answered in place: permissions, questions of agents, handovers. */
import { useState, type FormEvent } from "react";
import { post } from "../api/client";
import type { Approval } from "../api/shapes";
import { asRecord } from "../model/events";
import type { Interrupt, Run, ToolPart } from "../model/run";
import type { Handover } from "../model/thread";
import { asProblem, sentence, type Loaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { JsonView } from "../ui/parts";
import { useWords } from "../words";
import type { Resume, ToolAnswer } from "./answers";
import { fieldsOf, isFilled, SchemaForm, type Values } from "./SchemaForm";
import { useWorld } from "./world";

export function ApprovalCard({ approval, approvals }: { approval: Approval; approvals: Loaded<{ approvals: Approval[] }> }) {
  const { t, time } = useWords();
  const { agentName } = useWorld();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const decide = (decision: "grant" | "deny") => {
    setBusy(true);
    post(`/api/v1/approvals/${approval.approvalId}`, { decision })
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)))
      .then(approvals.again)
      .finally(() => setBusy(false));
  };
  return (
    <section className="question host" aria-label={t("approval.title", { agent: agentName(approval.agentId) })}>
      <h3>{t("approval.title", { agent: agentName(approval.agentId) })}</h3>
      <p>
        {t("approval.action", { action: "" })}
        <code>{approval.action}</code>
      </p>
      <JsonView value={{ target: approval.target, payload: approval.payload }} />
      <p className="hint">{t("approval.expires", { time: time(approval.expiresAt) })}</p>
      {problem && (
        <p className="error-text" role="alert">
          {problem}
        </p>
      )}
      <div className="row">
        <button type="button" className="button primary" disabled={busy} onClick={() => decide("grant")}>
          {t("approval.grant")}
        </button>
        <button type="button" className="button" disabled={busy} onClick={() => decide("deny")}>
          {t("approval.deny")}
        </button>
      </div>
    </section>
  );
}

export function HandoverCard({ handover, onAnswer }: { handover: Handover; onAnswer: (yes: boolean) => void }) {
  const { t } = useWords();
  const { agentName } = useWorld();
  const names = { from: agentName(handover.from), to: agentName(handover.to) };
  return (
    <section className="question host" role="alertdialog" aria-label={t("handover.title", names)}>
      <h3>{t("handover.title", names)}</h3>
      <dl className="facts">
        {handover.reason && (
          <div>
            <dt>{t("handover.reason")}</dt>
            <dd>{handover.reason}</dd>
          </div>
        )}
        {handover.summary && (
          <div>
            <dt>{t("handover.summary")}</dt>
            <dd>{handover.summary}</dd>
          </div>
        )}
      </dl>
      <div className="row">
        <button type="button" className="button primary" onClick={() => onAnswer(true)}>
          {t("handover.yes")}
        </button>
        <button type="button" className="button" onClick={() => onAnswer(false)}>
          {t("handover.no", names)}
        </button>
      </div>
    </section>
  );
}

/** What a run left open when it ended: its questions, the host's approvals among them, and calls this page is to answer. */
export interface Open {
  interrupts: Interrupt[];
  tools: ToolPart[];
}

export function openOf(turn: Run | undefined): Open {
  if (!turn || turn.status !== "completed") return { interrupts: [], tools: [] };
  const asked = new Set(turn.interrupts.map((one) => one.toolCallId));
  const tools = turn.parts.filter((part): part is ToolPart => part.kind === "tool" && part.result === null && turn.pendingToolCallIds.includes(part.id) && !asked.has(part.id));
  return { interrupts: turn.interrupts, tools };
}

type Given = { status: "resolved" | "cancelled"; payload?: unknown };

interface OpenProps {
  turn: Run;
  open: Open;
  approvals: Approval[];
  onAnswer: (resume: Resume[], tools: ToolAnswer[]) => Promise<unknown>;
}

/** All of it is answered at once, because the run that goes on needs all of it. One yes-or-no is one click. */
export function OpenQuestions({ turn, open, approvals, onAnswer }: OpenProps) {
  const { t } = useWords();
  const { agentName } = useWorld();
  const [given, setGiven] = useKept<Record<string, Given>>("given", {});
  const [results, setResults] = useKept<Record<string, string>>("results", {});
  const [busy, setBusy] = useKept("busy", false);
  const [problem, setProblem] = useKept<string | null>("problem", null);
  const count = open.interrupts.length + open.tools.length;
  const ready = open.interrupts.every((one) => given[one.id]) && open.tools.every((one) => (results[one.id] ?? "").trim() !== "");
  const title = t("question.title", { agent: agentName(turn.agentId) });

  const send = (answers: Record<string, Given>) => {
    setBusy(true);
    const resume = open.interrupts.map((one) => ({ interruptId: one.id, ...(answers[one.id] ?? { status: "cancelled" as const }) }));
    const tools = open.tools.map((one) => ({ toolCallId: one.id, content: results[one.id] ?? "" }));
    onAnswer(resume, tools)
      .then(() => setProblem(null))
      .catch((error: unknown) => {
        setBusy(false);
        setProblem(sentence(asProblem(error), t));
      });
  };
  const give = (id: string, answer: Given) => {
    const all = { ...given, [id]: answer };
    setGiven(all);
    if (count === 1) send(all);
  };

  return (
    <section className={`question${open.interrupts.some((one) => approvals.some((known) => known.approvalId === one.id)) ? " host" : ""}`} aria-label={title}>
      <h3>{title}</h3>
      {open.interrupts.map((one) => (
        <Question key={one.id} interrupt={one} approval={approvals.find((known) => known.approvalId === one.id)} given={given[one.id]} busy={busy} give={(answer) => give(one.id, answer)} />
      ))}
      {open.tools.map((one) => (
        <form
          key={one.id}
          className="open-tool"
          onSubmit={(event: FormEvent) => {
            event.preventDefault();
            if (ready && !busy) send(given);
          }}
        >
          <label className="field">
            <span>{t("question.tool", { agent: agentName(turn.agentId), tool: one.name })}</span>
            {one.args && <JsonView value={pretty(one.args)} />}
            <input value={results[one.id] ?? ""} disabled={busy} onChange={(event) => setResults({ ...results, [one.id]: event.target.value })} />
          </label>
        </form>
      ))}
      {problem && (
        <p className="error-text" role="alert">
          {problem}
        </p>
      )}
      {(count > 1 || open.tools.length > 0) && (
        <div className="row">
          <button type="button" className="button primary" disabled={!ready || busy} onClick={() => send(given)}>
            {t(busy ? "chat.sending" : "question.send")}
          </button>
        </div>
      )}
    </section>
  );
}

interface QuestionProps {
  interrupt: Interrupt;
  approval: Approval | undefined;
  given: Given | undefined;
  busy: boolean;
  give: (answer: Given) => void;
}

function Question({ interrupt, approval, given, busy, give }: QuestionProps) {
  const { t } = useWords();
  const [values, setValues] = useKept<Values>(`${interrupt.id} values`, {});
  const [words, setWords] = useKept(`${interrupt.id} words`, "");
  const fields = fieldsOf(interrupt.responseSchema);
  const answered = given?.status === "resolved" ? given.payload : undefined;
  const said = (yes: boolean) => (answered === undefined ? undefined : asRecord(answered)["approved"] === yes);
  if (isYesOrNo(interrupt))
    return (
      <div className="one-question">
        <p>{approval ? `${t("approval.action", { action: approval.action })}` : interrupt.message}</p>
        {approval && <JsonView value={{ target: approval.target, payload: approval.payload }} />}
        <div className="row">
          <button type="button" className="button primary" disabled={busy} aria-pressed={said(true)} onClick={() => give({ status: "resolved", payload: { approved: true } })}>
            {t(approval ? "approval.grant" : "question.yes")}
          </button>
          <button type="button" className="button" disabled={busy} aria-pressed={said(false)} onClick={() => give({ status: "resolved", payload: { approved: false } })}>
            {t(approval ? "approval.deny" : "question.no")}
          </button>
        </div>
      </div>
    );
  const payload = fields.length ? values : { answer: words.trim() };
  const ready = fields.length ? isFilled(fields, values) : words.trim() !== "";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready) give({ status: "resolved", payload });
  };
  return (
    <form className="one-question" onSubmit={submit}>
      <p>{interrupt.message}</p>
      {fields.length ? <SchemaForm fields={fields} values={values} onChange={setValues} /> : <input value={words} disabled={busy} onChange={(event) => setWords(event.target.value)} aria-label={t("question.answer")} />}
      <div className="row">
        <button type="submit" className="button primary" disabled={busy || !ready} aria-pressed={given ? given.status === "resolved" : undefined}>
          {t("question.answer")}
        </button>
        <button type="button" className="button" disabled={busy} onClick={() => give({ status: "cancelled" })}>
          {t("question.decline")}
        </button>
      </div>
    </form>
  );
}

function isYesOrNo(interrupt: Interrupt): boolean {
  const names = Object.keys(asRecord(interrupt.responseSchema?.["properties"]));
  return names.length === 1 && names[0] === "approved";
}

export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
