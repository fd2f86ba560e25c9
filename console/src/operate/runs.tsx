/** Runs in flight, which can be stopped, and the latest that ended. */
import { useEffect } from "react";
import type { RunEntry } from "../api/shapes";
import { cancelRun } from "../chat/send";
import { useWorld } from "../chat/world";
import { useLoaded } from "../ui/data";
import { Notice, Status } from "../ui/parts";
import { toRun, toThread } from "../ui/router";
import { tookOf } from "../run/story";
import { useWords } from "../words";
import { UNKNOWN } from "../words/said";
import { useAttempts } from "./attempts";
import { Listing, type Column } from "./table";

type Page = { runs: RunEntry[]; next: string | null };

export function RunsPart() {
  const { t, time, took } = useWords();
  const { admin, agentName, me } = useWorld();
  const scope = admin ? "&scope=workspace" : "";
  const live = useLoaded<Page>(`/api/v1/agent/runs?status=running,queued&limit=200${scope}`, 2_000);
  const recent = useLoaded<Page>(`/api/v1/agent/runs?status=completed,failed,cancelled&limit=50${scope}`, 5_000);
  // A run that leaves the first list shows in the second at once, not a rhythm later.
  const flying = live.value?.runs.map((run) => run.taskId).join() ?? null;
  const { again: askRecent } = recent;
  useEffect(() => {
    if (flying !== null) askRecent();
  }, [flying, askRecent]);
  const { problem, busy, attempt } = useAttempts(live.again);
  const flights = live.value?.runs ?? [];
  const columns: Column<RunEntry>[] = [
    { name: t("op.began"), show: (run) => <a href={toRun(run.taskId)}>{time(run.createdAt)}</a> },
    { name: t("op.agent"), show: (run) => agentName(run.agentId) },
    { name: t("run.status"), show: (run) => <Status of={run.status} /> },
    { name: t("run.took"), show: (run) => took(tookOf(run, Date.now())) },
    ...(admin ? [{ name: t("op.user"), show: (run: RunEntry) => run.userId }] : []),
    { name: t("op.thread"), show: (run) => (run.userId === me.value?.userId ? <a href={toThread(run.threadId)}>{run.threadId.slice(0, 8)}</a> : run.threadId.slice(0, 8)) },
  ];
  const stoppable: Column<RunEntry> = {
    name: t("op.action"),
    show: (run) => (
      <button type="button" className="button" disabled={busy === run.taskId} onClick={() => void attempt(run.taskId, () => cancelRun(run.taskId))}>
        {t("chat.stop")}
      </button>
    ),
  };
  return (
    <>
      {problem && <Notice tone="bad" title={problem} />}
      <div className="panel figures-row" role="group" aria-label={t("op.live")}>
        <Count name={t("op.sessions_alive")} value={live.value && new Set(flights.map((run) => run.threadId)).size} />
        <Count name={t("status.running")} value={live.value && flights.filter((run) => run.status === "running").length} />
        <Count name={t("status.queued")} value={live.value && flights.filter((run) => run.status === "queued").length} />
        <Count name={t("op.users_alive")} value={live.value && new Set(flights.map((run) => run.userId)).size} />
      </div>
      <Listing title={t("op.live")} icon="gauge" columns={[...columns, stoppable]} rows={live.value?.runs ?? null} keyOf={(run) => run.taskId} empty={t("op.live_none")} problem={live.problem} again={live.again} />
      <Listing title={t("op.recent")} icon="chat" columns={columns} rows={recent.value?.runs ?? null} keyOf={(run) => run.taskId} empty={t("op.recent_none")} problem={recent.problem} again={recent.again} />
    </>
  );
}

/** Null: the host has not told yet, which is not zero. */
function Count({ name, value }: { name: string; value: number | null }) {
  return (
    <div className="figure">
      <b>{value ?? UNKNOWN}</b>
      <span>{name}</span>
    </div>
  );
}
