/** What agents do by themselves: when next, on and off, once now, and a new one. */
import { useState, type FormEvent } from "react";
import { patch, post, remove } from "../api/client";
import { useWorld } from "../chat/world";
import { useLoaded } from "../ui/data";
import { Folded, useKept } from "../ui/kept";
import { Confirm, Notice, Status } from "../ui/parts";
import { toRun, toThread } from "../ui/router";
import { useWords } from "../words";
import { useAttempts } from "./attempts";
import { Listing } from "./table";
import type { Automation } from "../api/shapes";

const pathOf = (job: Automation) => `/api/v1/automations/${encodeURIComponent(job.jobId)}`;

export function AutomationsPart() {
  const { t, time } = useWords();
  const { agentName } = useWorld();
  const found = useLoaded<{ automations: Automation[] }>("/api/v1/automations", 10_000);
  const { problem, busy, attempt } = useAttempts(found.again);
  const [started, setStarted] = useState<string | null>(null);
  const [asked, setAsked] = useState<Automation | null>(null);
  const fire = (job: Automation) => attempt(job.jobId, () => post<{ taskId: string }>(`${pathOf(job)}/run`, {}).then((run) => setStarted(run.taskId)));
  return (
    <>
      {problem && <Notice tone="bad" title={problem} />}
      {started && (
        <Notice tone="info" title={t("op.started")}>
          <a href={toRun(started)}>{t("op.see_run")}</a>
        </Notice>
      )}
      <Listing
        title={t("op.automations")}
        icon="clock"
        empty={t("op.automations_none")}
        problem={found.problem}
        again={found.again}
        rows={found.value?.automations ?? null}
        keyOf={(job) => job.jobId}
        columns={[
          {
            name: t("ag.name"),
            show: (job) => (
              <>
                <a href={toThread(job.threadId)}>{job.name || job.jobId}</a>
                <p className="hint clip">{job.prompt}</p>
              </>
            ),
          },
          { name: t("op.agent"), show: (job) => (job.agentId ? agentName(job.agentId) : t("ag.default")) },
          {
            name: t("op.when"),
            show: (job) => (
              <>
                <code>{job.cron ?? job.rrule}</code>
                <p className="hint">{job.timeZone}</p>
              </>
            ),
          },
          {
            name: t("op.next"),
            show: (job) =>
              job.enabled ? (
                <ol className="times">
                  {(job.upcoming.length ? job.upcoming : job.nextAt ? [job.nextAt] : []).slice(0, 3).map((moment) => (
                    <li key={moment}>{time(moment)}</li>
                  ))}
                </ol>
              ) : (
                <Status of="paused" />
              ),
          },
          {
            name: t("op.action"),
            show: (job) => (
              <div className="row">
                <button type="button" className="button" disabled={busy === job.jobId} onClick={() => void fire(job)}>
                  {t("op.run_now")}
                </button>
                <button type="button" className="button quiet" disabled={busy === job.jobId} onClick={() => void attempt(job.jobId, () => patch(pathOf(job), { enabled: !job.enabled }))}>
                  {t(job.enabled ? "op.pause" : "op.resume")}
                </button>
                <button type="button" className="button quiet" onClick={() => setAsked(job)}>
                  {t("app.delete")}
                </button>
              </div>
            ),
          },
        ]}
      />
      <NewAutomation attempt={attempt} />
      {asked && (
        <Confirm
          text={t("op.automation_sure", { name: asked.name || asked.jobId })}
          word={t("app.delete")}
          onNo={() => setAsked(null)}
          onYes={() => {
            setAsked(null);
            void attempt(asked.jobId, () => remove(pathOf(asked)));
          }}
        />
      )}
    </>
  );
}

function NewAutomation({ attempt }: { attempt: (name: string, work: () => Promise<unknown>) => Promise<boolean> }) {
  const { t } = useWords();
  const { known } = useWorld();
  const fresh = { name: "", prompt: "", cron: "0 9 * * 1-5", agentId: "" };
  const [draft, setDraft] = useKept("new automation", fresh);
  const set = (change: Partial<typeof fresh>) => setDraft({ ...draft, ...change });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { agentId, ...rest } = draft;
    const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    void attempt("new", () => post("/api/v1/automations", { ...rest, timeZone, ...(agentId ? { agentId } : {}) })).then((done) => done && setDraft(fresh));
  };
  return (
    <Folded name="new automation, open" className="panel">
      <summary>{t("op.automation_new")}</summary>
      <form onSubmit={submit}>
        <label className="field">
          <span>{t("ag.name")}</span>
          <input required value={draft.name} onChange={(event) => set({ name: event.target.value })} />
        </label>
        <label className="field">
          <span>{t("op.prompt")}</span>
          <textarea required rows={3} value={draft.prompt} onChange={(event) => set({ prompt: event.target.value })} />
        </label>
        <label className="field">
          <span>{t("op.cron")}</span>
          <input required className="mono" value={draft.cron} onChange={(event) => set({ cron: event.target.value })} />
          <small className="hint">{t("op.cron_help")}</small>
        </label>
        <label className="field">
          <span>{t("op.agent")}</span>
          <select value={draft.agentId} onChange={(event) => set({ agentId: event.target.value })}>
            <option value="">{t("ag.default")}</option>
            {known.map((one) => (
              <option key={one.agentId} value={one.agentId}>
                {one.label || one.agentId}
              </option>
            ))}
          </select>
        </label>
        <div className="row end">
          <button type="submit" className="button primary">
            {t("app.save")}
          </button>
        </div>
      </form>
    </Folded>
  );
}
