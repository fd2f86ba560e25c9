/** What was sent to chat platforms: what waits, what arrived, what was given up, and once more. */
import { post } from "../api/client";
import { useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { Notice, Status } from "../ui/parts";
import { toRun } from "../ui/router";
import { useWords } from "../words";
import type { WordKey } from "../words/en";
import { useAttempts } from "./attempts";
import { Listing } from "./table";
import type { Delivery } from "../api/shapes";

const STATUSES = ["", "pending", "delivered", "dead"] as const;

export function DeliveriesPart() {
  const { t, time } = useWords();
  const [status, setStatus] = useKept<(typeof STATUSES)[number]>("deliveries", "");
  const found = useLoaded<{ deliveries: Delivery[] }>(`/api/v1/deliveries?limit=100${status ? `&status=${status}` : ""}`, 5_000);
  const { problem, busy, attempt } = useAttempts(found.again);
  const again = (one: Delivery) => void attempt(one.deliveryId, () => post(`/api/v1/deliveries/${encodeURIComponent(one.deliveryId)}/redeliver`, {}));
  return (
    <>
      {problem && <Notice tone="bad" title={problem} />}
      <Listing
        title={t("op.deliveries")}
        icon="send"
        empty={t("op.deliveries_none")}
        problem={found.problem}
        again={found.again}
        rows={found.value?.deliveries ?? null}
        keyOf={(one) => one.deliveryId}
        columns={[
          { name: t("op.time"), show: (one) => time(one.createdAt) },
          { name: t("op.platform"), show: (one) => one.platform },
          { name: t("op.kind"), show: (one) => <code>{one.type}</code> },
          {
            name: t("run.status"),
            show: (one) => (
              <>
                <Status of={one.status} />
                {one.dueAt && <p className="hint">{t("op.due", { time: time(one.dueAt) })}</p>}
              </>
            ),
          },
          {
            name: t("op.attempts"),
            show: (one) => (
              <>
                {one.attempts}
                {one.detail && <p className="hint clip">{one.detail}</p>}
              </>
            ),
          },
          { name: t("run.title"), show: (one) => <a href={toRun(one.taskId)}>{one.taskId.slice(-8)}</a> },
          {
            name: t("op.action"),
            show: (one) =>
              one.status === "dead" && (
                <button type="button" className="button" disabled={busy === one.deliveryId} onClick={() => again(one)}>
                  {t("op.redeliver")}
                </button>
              ),
          },
        ]}
      >
        <div className="tabs" role="group" aria-label={t("run.status")}>
          {STATUSES.map((one) => (
            <button key={one} type="button" aria-pressed={one === status} onClick={() => setStatus(one)}>
              {one ? t(`status.${one}` as WordKey) : t("run.all")}
            </button>
          ))}
        </div>
      </Listing>
    </>
  );
}
