/** What was used and how long it took, as figures and as charts. */
import { useState } from "react";
import { useWorld } from "../chat/world";
import { useLoaded } from "../ui/data";
import { Empty, ProblemNotice } from "../ui/parts";
import { useWords } from "../words";
import { Chart, type Bar } from "./chart";
import { Listing } from "./table";

interface Line {
  start: string;
  agentId: string;
  modelId: string;
  modelCalls: number;
  totalTokens: number;
  cost: number;
}
interface Pace {
  start: string;
  runs: number;
  completed: number;
  failed: number;
  cancelled: number;
  medianSeconds?: number;
  p95Seconds?: number;
}
interface Spender {
  userId: string;
  modelCalls: number;
  totalTokens: number;
  cost: number;
}
interface Usage {
  since: string;
  everySeconds: number;
  usage: Line[];
  runs: Pace[];
  people?: Spender[];
}
const SPANS = ["day", "week", "month"] as const;

export function UsagePart() {
  const { t, number, took } = useWords();
  const { admin, agentName } = useWorld();
  const [span, setSpan] = useState<(typeof SPANS)[number]>("day");
  const usage = useLoaded<Usage>(`/api/v1/usage?span=${span}${admin ? "&scope=workspace" : ""}`, 30_000);
  const found = usage.value;
  const lines = summed(found?.usage ?? []);
  const total = (pick: (pace: Pace) => number) => (found?.runs ?? []).reduce((sum, pace) => sum + pick(pace), 0);
  const latest = found?.runs.at(-1);
  return (
    <>
      <section className="panel">
        <h2>{t("op.usage")}</h2>
        <div className="tabs" role="group" aria-label={t("op.time")}>
          {SPANS.map((one) => (
            <button key={one} type="button" aria-pressed={one === span} onClick={() => setSpan(one)}>
              {t(`op.${one}`)}
            </button>
          ))}
        </div>
        {usage.problem && <ProblemNotice problem={usage.problem} again={usage.again} />}
        {usage.loading && <p className="hint">{t("app.loading")}</p>}
        {found && found.runs.length === 0 && <Empty icon="gauge">{t("op.usage_none")}</Empty>}
        {found && found.runs.length > 0 && (
          <>
            <div className="figures-row">
              <Figure name={t("op.usage_runs")} value={number(total((pace) => pace.runs))} />
              <Figure name={t("op.usage_failed")} value={number(total((pace) => pace.failed))} />
              <Figure name={t("op.usage_tokens")} value={number(lines.reduce((sum, line) => sum + line.totalTokens, 0))} />
              <Figure name={t("op.usage_cost")} value={number(lines.reduce((sum, line) => sum + line.cost, 0))} />
              <Figure name={t("op.usage_median")} value={took((latest?.medianSeconds ?? 0) * 1000)} />
              <Figure name={t("op.usage_p95")} value={took((latest?.p95Seconds ?? 0) * 1000)} />
            </div>
            <div className="two charts">
              <Chart title={t("op.usage_runs")} since={found.since} every={found.everySeconds} bars={runsIn(found)} names={[t("op.usage_runs"), t("op.usage_failed")]} show={number} />
              <Chart title={t("op.latency")} since={found.since} every={found.everySeconds} bars={latencyIn(found)} names={[t("op.usage_p95"), t("op.usage_median")]} show={took} />
            </div>
          </>
        )}
      </section>
      <Listing
        title={t("op.usage_tokens")}
        icon="gauge"
        empty={t("op.usage_none")}
        rows={found ? lines : null}
        keyOf={(line) => `${line.agentId} ${line.modelId}`}
        columns={[
          { name: t("op.agent"), show: (line) => (line.agentId ? agentName(line.agentId) : t("op.usage_no_run")) },
          { name: t("run.kind.model"), show: (line) => line.modelId },
          { name: t("run.model_calls"), show: (line) => number(line.modelCalls) },
          { name: t("op.usage_tokens"), show: (line) => number(line.totalTokens) },
          { name: t("op.usage_cost"), show: (line) => number(line.cost) },
        ]}
      />
      {found?.people && found.people.length > 0 && (
        <Listing
          title={t("op.usage_people")}
          icon="key"
          empty={t("op.usage_none")}
          rows={found.people}
          keyOf={(one) => one.userId}
          columns={[
            { name: t("op.user"), show: (one) => one.userId },
            { name: t("run.model_calls"), show: (one) => number(one.modelCalls) },
            { name: t("op.usage_tokens"), show: (one) => number(one.totalTokens) },
            { name: t("op.usage_cost"), show: (one) => number(one.cost) },
          ]}
        />
      )}
    </>
  );
}

function summed(lines: Line[]): Line[] {
  const sums = new Map<string, Line>();
  for (const line of lines) {
    const key = `${line.agentId} ${line.modelId}`;
    const before = sums.get(key);
    sums.set(key, before ? { ...before, modelCalls: before.modelCalls + line.modelCalls, totalTokens: before.totalTokens + line.totalTokens, cost: before.cost + line.cost } : line);
  }
  return [...sums.values()];
}

const runsIn = (usage: Usage): Bar[] => usage.runs.map((pace) => ({ start: pace.start, whole: pace.runs, part: pace.failed, tone: "bad" }));
const latencyIn = (usage: Usage): Bar[] => usage.runs.map((pace) => ({ start: pace.start, whole: (pace.p95Seconds ?? 0) * 1000, part: (pace.medianSeconds ?? 0) * 1000, tone: "busy" }));

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className="figure">
      <b>{value}</b>
      <span>{name}</span>
    </div>
  );
}
