/** What was used and how long it took, as figures and as bars. */
import { useState } from "react";
import { useWorld } from "../chat/world";
import { useLoaded } from "../ui/data";
import { Empty, ProblemNotice } from "../ui/parts";
import { useWords } from "../words";
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
interface Usage {
  since: string;
  everySeconds: number;
  usage: Line[];
  runs: Pace[];
}
const SPANS = ["day", "week", "month"] as const;

export function UsagePart() {
  const { t, number, took } = useWords();
  const { admin, agentName } = useWorld();
  const [span, setSpan] = useState<(typeof SPANS)[number]>("day");
  const usage = useLoaded<Usage>(`/api/v1/usage?span=${span}${admin ? "&scope=workspace" : ""}`, 30_000);
  const found = usage.value;
  const total = (pick: (pace: Pace) => number) => (found?.runs ?? []).reduce((sum, pace) => sum + pick(pace), 0);
  const lines = (found?.usage ?? []).reduce<Record<string, Line>>((sums, line) => {
    const key = `${line.agentId} ${line.modelId}`;
    const before = sums[key];
    sums[key] = before ? { ...before, modelCalls: before.modelCalls + line.modelCalls, totalTokens: before.totalTokens + line.totalTokens, cost: before.cost + line.cost } : line;
    return sums;
  }, {});
  const tokens = Object.values(lines).reduce((sum, line) => sum + line.totalTokens, 0);
  const cost = Object.values(lines).reduce((sum, line) => sum + line.cost, 0);
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
        {found && found.runs.length === 0 && <Empty icon="gauge">{t("op.usage_none")}</Empty>}
        {found && found.runs.length > 0 && (
          <>
            <div className="figures-row">
              <Figure name={t("op.usage_runs")} value={number(total((pace) => pace.runs))} />
              <Figure name={t("op.usage_failed")} value={number(total((pace) => pace.failed))} />
              <Figure name={t("op.usage_tokens")} value={number(tokens)} />
              <Figure name={t("op.usage_cost")} value={number(cost)} />
              <Figure name={t("op.usage_median")} value={took((found.runs.at(-1)?.medianSeconds ?? 0) * 1000)} />
              <Figure name={t("op.usage_p95")} value={took((found.runs.at(-1)?.p95Seconds ?? 0) * 1000)} />
            </div>
            <Bars usage={found} />
          </>
        )}
      </section>
      <Listing
        title={t("op.usage_tokens")}
        icon="gauge"
        empty={t("op.usage_none")}
        rows={found ? Object.values(lines) : null}
        keyOf={(line) => `${line.agentId} ${line.modelId}`}
        columns={[
          { name: t("op.agent"), show: (line) => agentName(line.agentId) },
          { name: t("run.kind.model"), show: (line) => line.modelId },
          { name: t("run.model_calls"), show: (line) => number(line.modelCalls) },
          { name: t("op.usage_tokens"), show: (line) => number(line.totalTokens) },
          { name: t("op.usage_cost"), show: (line) => number(line.cost) },
        ]}
      />
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

/** Runs by span of time; what failed is the lower, other-coloured part. */
function Bars({ usage }: { usage: Usage }) {
  const { t, time } = useWords();
  const start = Date.parse(usage.since);
  const every = usage.everySeconds * 1000;
  const count = Math.max(1, Math.ceil((Date.now() - start) / every));
  const most = Math.max(1, ...usage.runs.map((pace) => pace.runs));
  const width = 600 / count;
  return (
    <svg className="chart" viewBox="0 0 600 130" role="img" aria-label={`${t("op.usage_runs")}: ${usage.runs.map((pace) => `${time(pace.start)} ${pace.runs}`).join(", ")}`} preserveAspectRatio="none">
      <line x1="0" y1="120" x2="600" y2="120" />
      {usage.runs.map((pace) => {
        const x = Math.round((Date.parse(pace.start) - start) / every) * width;
        const all = (pace.runs / most) * 110;
        const bad = (pace.failed / most) * 110;
        return (
          <g key={pace.start}>
            <rect className="bar-ok" x={x + 1} y={120 - all} width={Math.max(1, width - 2)} height={all} />
            <rect className="bar-bad" x={x + 1} y={120 - bad} width={Math.max(1, width - 2)} height={bad} />
          </g>
        );
      })}
    </svg>
  );
}
