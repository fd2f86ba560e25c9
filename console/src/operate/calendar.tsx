/** The caller's calendar, day by day. Agents write it; people look, and take it along as a file. */
import { useState } from "react";
import { download } from "../api/client";
import { asProblem, sentence, useLoaded } from "../ui/data";
import { useKept } from "../ui/kept";
import { Empty, Notice, ProblemNotice } from "../ui/parts";
import { useWords } from "../words";
import type { CalendarOccurrence as Entry } from "../api/shapes";

const SPANS = [7, 30, 90] as const;

export function CalendarPart() {
  const { t, day } = useWords();
  const [days, setDays] = useKept<number>("days of the calendar", 30);
  const [problem, setProblem] = useState<string | null>(null);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [from, to] = [0, days].map((ahead) => localDay(Date.now() + ahead * 86_400_000));
  const found = useLoaded<{ events: Entry[]; hasMore: boolean }>(`/api/v1/calendar?from=${from}&to=${to}&timeZone=${encodeURIComponent(zone)}`, 15_000);
  const byDay = new Map<string, Entry[]>();
  for (const entry of found.value?.events ?? []) {
    const name = entry.allDay ? entry.start.slice(0, 10) : localDay(Date.parse(entry.startsAt));
    byDay.set(name, [...(byDay.get(name) ?? []), entry]);
  }
  const take = () => void download("/api/v1/calendar.ics", "calendar.ics").catch((error: unknown) => setProblem(sentence(asProblem(error), t)));
  return (
    <section className="panel">
      <h2>{t("op.calendar")}</h2>
      <div className="row">
        <div className="tabs" role="group" aria-label={t("op.time")}>
          {SPANS.map((one) => (
            <button key={one} type="button" aria-pressed={one === days} onClick={() => setDays(one)}>
              {t("op.days", { count: one })}
            </button>
          ))}
        </div>
        <button type="button" className="button" onClick={take}>
          {t("op.calendar_take")}
        </button>
      </div>
      {problem && <Notice tone="bad" title={problem} />}
      {found.problem && <ProblemNotice problem={found.problem} again={found.again} />}
      {found.loading && <p className="hint">{t("app.loading")}</p>}
      {found.value?.events.length === 0 && <Empty icon="calendar">{t("op.calendar_none")}</Empty>}
      {[...byDay].map(([name, entries]) => (
        <section key={name} className="agenda">
          <h3>{day(`${name}T12:00:00`)}</h3>
          <ul>
            {entries.map((entry) => (
              <AgendaLine key={`${entry.eventId} ${entry.startsAt}`} entry={entry} />
            ))}
          </ul>
        </section>
      ))}
      {found.value?.hasMore && <p className="hint">{t("op.calendar_more")}</p>}
    </section>
  );
}

function AgendaLine({ entry }: { entry: Entry }) {
  const { t, clock } = useWords();
  return (
    <li>
      <span className="when">{entry.allDay ? t("op.all_day") : `${clock(entry.startsAt)} – ${clock(entry.endsAt)}`}</span>
      <div>
        <strong>{entry.title}</strong> {entry.rrule && <span className="badge plain">{t("op.repeats")}</span>}
        {entry.location && <p className="hint">{entry.location}</p>}
        {entry.description && <p className="hint">{entry.description}</p>}
      </div>
    </li>
  );
}

function localDay(moment: number): string {
  const at = new Date(moment);
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
}
