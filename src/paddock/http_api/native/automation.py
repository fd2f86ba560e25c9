"""Operations on jobs, which agents do by themselves at set times, and on the calendar."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated

import msgspec
from starlette.responses import Response

from paddock.host.automation.automations import FIELDS, Automations, JobShape
from paddock.host.automation.automations import Automation as KeptAutomation
from paddock.host.automation.calendar import DEFAULT_RANGE_DAYS, Calendars, checked_span
from paddock.host.people.principals import Principal
from paddock.host.zones import find_zone
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import Content, Operations, Pydantic, operation
from paddock.http_api.edge.shapes import Accepted, Answer, Json, Moment, Query, about, accepted, invalid, iso, seen
from paddock.rules.rows.automation import TickRow
from paddock.rules.schedule.calendar import YEARS, Occurrence
from paddock.rules.schedule.schedule import Missed
from paddock.rules.schedule.time_zones import LAST_RESORT, day_start

BASE = "/api/v1/automations"
ONE = f"{BASE}/{{job}}"
MAX_LISTED = 200
EXAMPLE = {"name": "Morning", "prompt": "What is on today?", "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin"}

Job = Annotated[str, about("Its jobId.", example="0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10")]
NewAutomation = Annotated[Json, Pydantic("NewAutomation", JobShape, FIELDS)]
AutomationChange = Annotated[Json, Pydantic("AutomationChange", JobShape, FIELDS, partial=True)]


class AutomationContext(Answer):
    description: str
    value: str


class AutomationConfig(Answer):
    """Settings of the runs of a job."""

    enabled_tools: list[str] | None
    """Of its agent's tools only these; null for all."""
    context: list[AutomationContext]


class Automation(Answer):
    """A job with its next ticks."""

    job_id: str
    thread_id: str
    name: str
    prompt: str
    time_zone: str
    agent_id: str | None
    missed: Missed
    enabled: bool
    config: AutomationConfig
    starts_at: Moment
    next_at: Moment | None
    upcoming: list[Moment]
    created_at: Moment
    updated_at: Moment
    cron: Annotated[str, about(example="0 9 * * 1-5")] | None = None
    rrule: str | None = None


class AutomationList(Answer):
    automations: list[Automation]


class Firing(Answer):
    """The outcome of one tick. `tick` is also the cursor of the next page."""

    tick: Annotated[float, about(example=1773648000.0)]
    scheduled_at: Moment
    result: Annotated[str, about(example="fired")]
    at: Moment
    through: Moment | None = None
    task_id: str | None = None
    reason: str | None = None


class FiringList(Answer):
    firings: list[Firing]


class FiringsQuery(Query):
    before: (
        Annotated[float, about("Only ticks before this one: the `tick` of the last one seen.", example=1773648000.0)]
        | None
    ) = None
    limit: Annotated[int, about("How many, at most 200.", ge=1, le=MAX_LISTED)] = 50


@dataclass(frozen=True, kw_only=True)
class AutomationsDoor(Operations):
    group = "Automations"
    auth: Auth
    automations: Automations

    @operation("GET", BASE, {200: "The oldest first."})
    async def list(self, who: Principal) -> AutomationList:
        """List your automations"""
        return AutomationList([self._seen(one) for one in await self.automations.list(who)])

    @operation("POST", BASE, {201: "It fires from now on."}, errors=(409,), example=EXAMPLE)
    async def create(self, who: Principal, body: NewAutomation) -> Automation:
        """Make an automation

        Give either a cron line or an RRULE. Without a time zone your profile's counts, else UTC."""
        return self._seen(await self.automations.create(who, body))

    @operation("GET", ONE, {200: "With its next ticks."}, errors=(404,))
    async def get(self, who: Principal, job: Job) -> Automation:
        """Look at an automation"""
        return self._seen(await self.automations.get(who, job))

    @operation("PATCH", ONE, {200: "As it is now."}, errors=(404,), example={"enabled": False})
    async def change(self, who: Principal, job: Job, body: AutomationChange) -> Automation:
        """Change an automation"""
        return self._seen(await self.automations.change(who, job, body))

    @operation("DELETE", ONE, {204: "It fires no more; its conversation stays."}, errors=(404,))
    async def delete(self, who: Principal, job: Job) -> None:
        """Take an automation away"""
        await self.automations.delete(who, job)

    @operation("POST", f"{ONE}/run", {202: "Accepted."}, errors=(404, 409), rate="runs")
    async def fire(self, who: Principal, job: Job) -> Accepted:
        """Run an automation now"""
        return accepted(await self.automations.fire(who, job))

    @operation("GET", f"{ONE}/firings", {200: "The latest first."}, errors=(404,))
    async def firings(self, who: Principal, job: Job, query: FiringsQuery) -> FiringList:
        """List what became of its ticks"""
        found = await self.automations.firings(who, job, before=query.before, limit=query.limit)
        return FiringList([_firing(row) for row in found])

    def _seen(self, automation: KeptAutomation) -> Automation:
        row, job = automation.row, automation.job
        tools = None if job.enabled_tools is None else [*job.enabled_tools]
        return seen(
            Automation,
            row,
            **{name: getattr(job, name) for name in ("name", "prompt", "time_zone", "agent_id", "missed", "starts_at")},
            cron=job.text if job.kind == "cron" else None,
            rrule=job.text if job.kind == "rrule" else None,
            config=AutomationConfig(tools, [AutomationContext(**one) for one in job.context]),
            upcoming=[iso(tick) for tick in self.automations.upcoming(automation)],
        )


def _firing(row: TickRow) -> Firing:
    return seen(Firing, row, scheduled_at=row.tick, task_id=row.run_id, reason=row.reason or None)


# --- the calendar -----------------------------------------------------------------------------------------------------


ICS = "text/calendar; charset=utf-8"
CALENDAR_FILE = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Paddock//Calendar//EN\r\nEND:VCALENDAR\r\n"


class CalendarOccurrence(Answer):
    """One time that an event takes place. `start` and `end` are on the wall of `eventTimezone`."""

    event_id: Annotated[str, about(example="0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10")]
    title: Annotated[str, about(example="Stand-up")]
    start: Annotated[str, about(example="2026-03-16T09:00")]
    end: Annotated[str, about(example="2026-03-16T09:15")]
    all_day: bool
    event_timezone: Annotated[str, about(example="Europe/Berlin")]
    starts_at: Moment
    ends_at: Moment
    busy: bool
    rrule: Annotated[str, about(example="FREQ=WEEKLY;BYDAY=MO")] | None = None
    description: str | None = None
    location: str | None = None


class CalendarPage(Answer):
    since: Moment = msgspec.field(name="from")
    until: Moment = msgspec.field(name="to")
    events: list[CalendarOccurrence]
    has_more: bool


class CalendarQuery(Query):
    since: Annotated[str, about("A day, or a moment with its offset; now by default.", example="2026-03-15")] | None = (
        msgspec.field(name="from", default=None)
    )
    until: (
        Annotated[
            str,
            about(
                "The same; a day counts whole. 31 days later by default, at most 400 days later.", example="2026-03-31"
            ),
        ]
        | None
    ) = msgspec.field(name="to", default=None)
    time_zone: Annotated[str, about("The IANA zone that days are meant in; UTC by default.")] = LAST_RESORT


@dataclass(frozen=True, kw_only=True)
class CalendarDoor(Operations):
    group = "Calendar"
    auth: Auth
    calendars: Calendars

    @operation("GET", "/api/v1/calendar", {200: "Each occurrence, the earliest first."})
    async def list(self, who: Principal, query: CalendarQuery) -> CalendarPage:
        """List what takes place in your calendar

        `start` and `end` are on the wall of `eventTimezone`; of an event of whole days, `end` is the last day."""
        since, until = _span(query, self.calendars.clock())
        found, more = await self.calendars.between(who.workspace_id, who.user_id, since, until)
        return CalendarPage(iso(since), iso(until), [_occurrence(one) for one in found], more)

    @operation(
        "GET",
        "/api/v1/calendar.ics",
        {200: "iCalendar (RFC 5545), with its time zones."},
        response=[Content("text/calendar", str, CALENDAR_FILE)],
    )
    async def export(self, who: Principal) -> Response:
        """Take your calendar away as a file"""
        whole = await self.calendars.export(who.workspace_id, who.user_id)
        named = {"content-disposition": 'attachment; filename="calendar.ics"'}
        return Response(whole, headers={**GUARDED, **named}, media_type=ICS)


def _span(asked: CalendarQuery, now: float) -> tuple[float, float]:
    name = asked.time_zone
    zone = find_zone(name)
    if zone is None:
        raise invalid(f"timeZone: there is no time zone {name[:64]!r}; use an IANA name such as Europe/Berlin")
    since = now if asked.since is None else _moment_of("from", asked.since, zone, whole=False)
    ahead = since + DEFAULT_RANGE_DAYS * 86_400.0
    return checked_span(since, ahead if asked.until is None else _moment_of("to", asked.until, zone, whole=True))


def _moment_of(name: str, text: str, zone: tzinfo, *, whole: bool) -> float:
    """Read a day or a moment with its offset. `whole` returns the end of a day, not its beginning."""
    try:
        if len(text) == len("2026-03-15"):
            day = date.fromisoformat(text)
            found = day_start(day + timedelta(days=1) if whole else day, zone)
        else:
            found = _with_offset(text).timestamp()
        if not YEARS[0] <= datetime.fromtimestamp(found, UTC).year <= YEARS[1]:
            raise ValueError
    except (ValueError, OverflowError, OSError) as error:
        raise invalid(f"{name} must be a day such as 2026-03-15 or a moment such as 2026-03-15T09:00:00Z") from error
    return found


def _with_offset(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _occurrence(one: Occurrence) -> CalendarOccurrence:
    own = {name: getattr(one, name) for name in ("event_id", "start", "end", "starts_at", "ends_at")}
    told = {name: getattr(one.event, name) or None for name in ("rrule", "description", "location")}
    return seen(CalendarOccurrence, one.event, **own, **told)
