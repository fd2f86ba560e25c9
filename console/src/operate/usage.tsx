/** What was used and how long it took, as figures and as charts. */
import { useWorld } from "../chat/world";
import { useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { Empty, ProblemNotice } from "../ui/parts";
import { useWords } from "../words";
import { costInWords, secondsInWords } from "../words/said";
import { Chart, type Bar } from "./chart";
import { Listing } from "./table";
import type { UsageEntry as Line, UsageReport as Usage } from "../api/types";

const SPANS = ["day", "week", "month"] as const;

export function UsagePart() {
  const words = useWords();
  const { t, number, took } = words;
  const { admin, agentName } = useWorld();
  const [span, setSpan] = useKept<(typeof SPANS)[number]>("span of usage", "day");
  const usage = useLoaded<Usage>(`/api/v1/usage?span=${span}${admin ? "&scope=workspace" : ""}`, 30_000);
  const found = usage.value;
  const lines = summed(found?.usage ?? []);
  const spent = inAll(lines);
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
              <Figure name={t("op.usage_runs")} value={number(found.total.runs)} />
              <Figure name={t("op.usage_failed")} value={number(found.total.failed)} />
              <Figure name={t("op.usage_tokens")} value={number(spent.totalTokens)} />
              <Figure name={t("op.usage_cost")} value={costInWords(spent, words)} />
              <Figure name={t("op.usage_median")} value={secondsInWords(found.total.medianSeconds, took)} />
              <Figure name={t("op.usage_p95")} value={secondsInWords(found.total.p95Seconds, took)} />
            </div>
            {spent.unpricedCalls > 0 && <p className="hint">{t("op.cost_unknown", { count: number(spent.unpricedCalls) })}</p>}
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
          { name: t("op.usage_cost"), show: (line) => costInWords(line, words) },
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
            { name: t("op.usage_cost"), show: (one) => costInWords(one, words) },
          ]}
        />
      )}
    </>
  );
}

type Sum = Pick<Line, "modelCalls" | "totalTokens" | "cost"> & { unpricedCalls: number };
const NOTHING: Sum = { modelCalls: 0, totalTokens: 0, cost: 0, unpricedCalls: 0 };

/** Known costs are added up; where none is known, the sum is not either. */
export function inAll(lines: Pick<Line, "modelCalls" | "totalTokens" | "cost" | "unpricedCalls">[]): Sum {
  const sum = lines.reduce<Sum>(
    (before, line) => ({
      modelCalls: before.modelCalls + line.modelCalls,
      totalTokens: before.totalTokens + line.totalTokens,
      cost: (before.cost ?? 0) + (line.cost ?? 0),
      unpricedCalls: before.unpricedCalls + (line.unpricedCalls ?? 0),
    }),
    NOTHING,
  );
  return sum.unpricedCalls && !sum.cost ? { ...sum, cost: null } : sum;
}

function summed(lines: Line[]): Line[] {
  const kinds = new Map<string, Line[]>();
  for (const line of lines) {
    const key = `${line.agentId} ${line.modelId}`;
    kinds.set(key, [...(kinds.get(key) ?? []), line]);
  }
  return [...kinds.values()].flatMap((same) => (same[0] ? [{ ...same[0], ...inAll(same) }] : []));
}

const inMs = (seconds: number | undefined): number | null => (seconds === undefined ? null : seconds * 1000);
const runsIn = (usage: Usage): Bar[] => usage.runs.map((pace) => ({ start: pace.start, whole: pace.runs, part: pace.failed, tone: "bad" }));
const latencyIn = (usage: Usage): Bar[] => usage.runs.map((pace) => ({ start: pace.start, whole: inMs(pace.p95Seconds), part: inMs(pace.medianSeconds), tone: "busy" }));

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div className="figure">
      <b>{value}</b>
      <span>{name}</span>
    </div>
  );
}
