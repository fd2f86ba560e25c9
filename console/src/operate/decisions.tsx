/** Approvals that wait, and the trail of everything that was decided. */
import { useState } from "react";
import { get } from "../api/client";
import type { Approval, AuditedDecision as Decision } from "../api/shapes";
import { ApprovalCard } from "../chat/Questions";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { Empty, Notice, ProblemNotice, Status } from "../ui/parts";
import { toRun } from "../ui/router";
import { useWords } from "../words";
import { reasonInWords } from "../words/said";
import { Listing } from "./table";

export function ApprovalsPart() {
  const { t } = useWords();
  const approvals = useLoaded<{ approvals: Approval[] }>("/api/v1/approvals?status=pending", 3_000);
  return (
    <section className="panel">
      <h2>{t("op.approvals")}</h2>
      {approvals.problem && <ProblemNotice problem={approvals.problem} again={approvals.again} />}
      {approvals.value?.approvals.length === 0 && <Empty icon="shield">{t("op.approvals_none")}</Empty>}
      {approvals.value?.approvals.map((one) => <ApprovalCard key={one.approvalId} approval={one} approvals={approvals} />)}
    </section>
  );
}

const UUID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

/** Ids are shown by their beginning, as in the list of runs; a name is shown whole. */
function Resource({ name }: { name: string }) {
  return UUID.test(name) ? <code title={name}>{name.slice(0, 8)}</code> : <span className="long">{name}</span>;
}

const RESULTS = ["allowed", "unauthorized", "not_found", "invalid_argument", "rate_limited", "payload_too_large", "deadline_exceeded", "runtime_error"] as const;

type Page = { decisions: Decision[]; next: string | null };

export function AuditPart() {
  const { t, time } = useWords();
  const [asked, setAsked] = useKept("audit", { action: "", result: "", actor: "" });
  const [older, setOlder] = useState<{ of: string; rows: Decision[]; next: string | null } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value.trim() !== ""));
  const path = `/api/v1/audit?limit=100&${query.toString()}`;
  const page = useLoaded<Page>(path);
  const more = older?.of === path ? older : null;
  const next = more ? more.next : page.value?.next;
  const load = () => {
    get<Page>(`${path}&before=${next}`)
      .then((found) => setOlder({ of: path, rows: [...(more?.rows ?? []), ...found.decisions], next: found.next }))
      .catch((error: unknown) => setProblem(sentence(asProblem(error), t)));
  };
  const set = (name: keyof typeof asked) => (event: { target: { value: string } }) => setAsked({ ...asked, [name]: event.target.value });
  return (
    <Listing
      title={t("op.audit")}
      icon="shield"
      empty={t("op.audit_none")}
      problem={page.problem}
      again={page.again}
      rows={page.value ? [...page.value.decisions, ...(more?.rows ?? [])] : null}
      keyOf={(row) => String(row.number)}
      columns={[
        { name: t("op.time"), show: (row) => time(row.time) },
        { name: t("op.actor"), show: (row) => row.actor },
        { name: t("op.action"), show: (row) => (row.taskId ? <a href={toRun(row.taskId)}>{row.action}</a> : row.action) },
        { name: t("op.resource"), show: (row) => <Resource name={row.resource} /> },
        {
          name: t("op.result"),
          show: (row) => (
            <>
              <Status of={row.result} />
              <p className="hint reason">{reasonInWords(row, t)}</p>
            </>
          ),
        },
      ]}
    >
      <p className="hint">{t("op.audit_text")}</p>
      <div className="row">
        <label className="field">
          <span>{t("op.action")}</span>
          <input value={asked.action} onChange={set("action")} placeholder={t("op.action_help")} />
        </label>
        <label className="field">
          <span>{t("op.actor")}</span>
          <input value={asked.actor} onChange={set("actor")} placeholder="user:ann" />
        </label>
        <label className="field">
          <span>{t("op.result")}</span>
          <select value={asked.result} onChange={set("result")}>
            <option value="">{t("op.any")}</option>
            {RESULTS.map((one) => (
              <option key={one} value={one}>
                {t(`status.${one}`)}
              </option>
            ))}
          </select>
        </label>
        {next && (
          <button type="button" className="button" onClick={load}>
            {t("op.older")}
          </button>
        )}
      </div>
      {problem && <Notice tone="bad" title={problem} />}
    </Listing>
  );
}
