/** What happens by itself and what was sent out. A host that does not offer one of these is said to, not guessed at. */
import { useState } from "react";
import { Problem, post } from "../api/client";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { Notice, Status } from "../ui/parts";
import { toRun, toThread } from "../ui/router";
import { useWords } from "../words";
import { Listing } from "./table";

type Row = Record<string, unknown>;
const text = (row: Row, ...names: string[]): string => {
  const found = names.map((name) => row[name]).find((value) => value !== undefined && value !== null);
  return found === undefined ? "" : typeof found === "object" ? JSON.stringify(found) : String(found);
};

function useRows(path: string, name: string): { rows: Row[] | null; absent: boolean; problem: Problem | null; again: () => void } {
  const found = useLoaded<Record<string, Row[]>>(path, 10_000);
  const absent = found.problem?.status === 404 || found.problem?.status === 405;
  const rows = found.value ? (found.value[name] ?? Object.values(found.value).find(Array.isArray) ?? []) : null;
  return { rows, absent, problem: absent ? null : found.problem, again: found.again };
}

export function AutomationsPart() {
  const { t, time } = useWords();
  const { rows, absent, problem, again } = useRows("/api/v1/automations", "automations");
  const [said, setSaid] = useState<string | null>(null);
  const fire = (row: Row) => {
    post(`/api/v1/automations/${encodeURIComponent(text(row, "jobId"))}/run`, {})
      .then(() => setSaid(null))
      .catch((error: unknown) => setSaid(sentence(asProblem(error), t)))
      .finally(again);
  };
  if (absent) return <Notice tone="wait" title={t("op.not_here")} />;
  return (
    <>
      {said && <Notice tone="bad" title={said} />}
      <Listing
        title={t("op.automations")}
        icon="again"
        empty={t("op.automations_none")}
        problem={problem}
        again={again}
        rows={rows}
        keyOf={(row) => text(row, "jobId")}
        columns={[
          { name: t("ag.name"), show: (row) => <a href={toThread(text(row, "threadId"))}>{text(row, "name", "jobId")}</a> },
          { name: t("op.agent"), show: (row) => text(row, "agentId", "agent", "agent_id") },
          { name: t("op.time"), show: (row) => `${text(row, "cron", "rrule")} ${text(row, "timezone", "timeZone", "time_zone")}` },
          { name: t("op.next"), show: (row) => time(text(row, "nextAt") || null) },
          {
            name: t("op.action"),
            show: (row) => (
              <button type="button" className="button" onClick={() => fire(row)}>
                {t("op.run_now")}
              </button>
            ),
          },
        ]}
      />
    </>
  );
}

export function CalendarPart() {
  const { t, time } = useWords();
  const { rows, absent, problem, again } = useRows("/api/v1/calendar", "events");
  if (absent) return <Notice tone="wait" title={t("op.not_here")} />;
  return (
    <Listing
      title={t("op.calendar")}
      icon="gauge"
      empty={t("op.calendar_none")}
      problem={problem}
      again={again}
      rows={rows}
      keyOf={(row) => `${text(row, "eventId")} ${text(row, "startsAt")}`}
      columns={[
        { name: t("op.time"), show: (row) => (row.allDay ? text(row, "start") : time(text(row, "startsAt") || null)) },
        { name: t("ag.label"), show: (row) => text(row, "title") },
        { name: t("ag.description"), show: (row) => text(row, "description", "location") },
      ]}
    />
  );
}

export function DeliveriesPart() {
  const { t, time } = useWords();
  const { rows, absent, problem, again } = useRows("/api/v1/deliveries", "deliveries");
  const [said, setSaid] = useState<string | null>(null);
  const redeliver = (row: Row) => {
    post(`/api/v1/deliveries/${encodeURIComponent(text(row, "deliveryId", "id"))}/redeliver`, {})
      .then(() => setSaid(null))
      .catch((error: unknown) => setSaid(sentence(asProblem(error), t)))
      .finally(again);
  };
  if (absent) return <Notice tone="wait" title={t("op.not_here")} />;
  return (
    <>
      {said && <Notice tone="bad" title={said} />}
      <Listing
        title={t("op.deliveries")}
        icon="send"
        empty={t("op.deliveries_none")}
        problem={problem}
        again={again}
        rows={rows}
        keyOf={(row) => text(row, "deliveryId", "id")}
        columns={[
          { name: t("op.time"), show: (row) => time(text(row, "createdAt", "at") || null) },
          { name: t("op.resource"), show: (row) => text(row, "url", "target", "endpoint") },
          { name: t("run.status"), show: (row) => <Status of={text(row, "status", "result")} /> },
          { name: t("run.title"), show: (row) => (row["taskId"] ? <a href={toRun(text(row, "taskId"))}>{text(row, "taskId").slice(0, 8)}</a> : "") },
          {
            name: t("op.action"),
            show: (row) => (
              <button type="button" className="button" onClick={() => redeliver(row)}>
                {t("op.redeliver")}
              </button>
            ),
          },
        ]}
      />
    </>
  );
}
