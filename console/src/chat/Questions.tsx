/** What waits for the person's word, answered in place: permissions, questions of agents, handovers. */
import { useState, type FormEvent } from "react";
import { post } from "../api/client";
import type { Approval } from "../api/shapes";
import type { Interrupt, Run } from "../model/run";
import type { Handover } from "../model/thread";
import { asProblem, sentence, type Loaded } from "../ui/data";
import { JsonView } from "../ui/parts";
import { useWords } from "../words";
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
      .finally(() => {
        setBusy(false);
        approvals.again();
      });
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

/** Questions a run ended with. Yes-or-no is asked with two buttons, anything else with a line to write in. */
export function InterruptCards({ turn, onAnswer }: { turn: Run; onAnswer: (interrupt: Interrupt, answer: unknown, words: string) => void }) {
  const { t } = useWords();
  const { agentName } = useWorld();
  return turn.interrupts.map((interrupt) => (
    <section key={interrupt.id} className="question" aria-label={t("question.title", { agent: agentName(turn.agentId) })}>
      <h3>{t("question.title", { agent: agentName(turn.agentId) })}</h3>
      <p>{interrupt.message}</p>
      {isYesOrNo(interrupt) ? (
        <div className="row">
          <button type="button" className="button primary" onClick={() => onAnswer(interrupt, { approved: true }, "yes")}>
            {t("question.yes")}
          </button>
          <button type="button" className="button" onClick={() => onAnswer(interrupt, { approved: false }, "no")}>
            {t("question.no")}
          </button>
        </div>
      ) : (
        <Answer onSend={(words) => onAnswer(interrupt, { answer: words }, words)} />
      )}
    </section>
  ));
}

function isYesOrNo(interrupt: Interrupt): boolean {
  const properties = interrupt.responseSchema?.["properties"];
  return typeof properties === "object" && properties !== null && "approved" in properties;
}

function Answer({ onSend }: { onSend: (words: string) => void }) {
  const { t } = useWords();
  const [words, setWords] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (words.trim()) onSend(words.trim());
  };
  return (
    <form className="row" onSubmit={submit}>
      <input value={words} onChange={(event) => setWords(event.target.value)} aria-label={t("question.answer")} />
      <button type="submit" className="button primary">
        {t("question.answer")}
      </button>
    </form>
  );
}
