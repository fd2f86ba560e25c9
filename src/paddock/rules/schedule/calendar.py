"""Events of a calendar: what one is, when it takes place, and which overlap. Pure: zones come in as values.

An event is meant on the wall of its own zone, so it keeps its hour when clocks change; an event without a time takes
whole days there. How a wall time becomes a moment, and which rules can be followed, is decided in `schedule.py`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo

import msgspec

from paddock.rules.schedule.schedule import MAX_TEXT, ScheduleError, moments, read_rule, walls
from paddock.rules.schedule.time_zones import day_start
from paddock.rules.values import Value

MAX_TITLE = 200
MAX_LOCATION = 300
MAX_DESCRIPTION = 4000
MAX_DAYS = 31
"""How long one occurrence may be."""
YEARS = (1970, 2199)
LOOK_AHEAD = 366 * 86_400.0
"""How far the occurrences of a recurring event are held against others."""
_ONE_HOUR = 3600.0
_ONE_DAY = timedelta(days=1)
_MARGIN = timedelta(days=2)
"""No wall is further from the moment it is asked about."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_WALL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", re.ASCII)
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")


class CalendarError(ValueError):
    """An event that means nothing. The text is a sentence for its author."""


class CalendarEvent(Value, frozen=True):
    """An event as it is kept. `start` and `end` are days, the last one included, or times on the wall."""

    title: str
    event_timezone: str
    start: str
    end: str
    rrule: str = ""
    description: str = ""
    location: str = ""
    busy: bool = True
    """Whether it takes the time: only such events conflict."""

    @property
    def all_day(self) -> bool:
        return _DATE.fullmatch(self.start) is not None


class Occurrence(Value, frozen=True):
    """One time that an event takes place; `start` and `end` as in the event, the moments as everywhere."""

    event_id: str
    event: CalendarEvent
    start: str
    end: str
    starts_at: float
    ends_at: float


to_body = msgspec.json.Encoder().encode
from_body = msgspec.json.Decoder(CalendarEvent).decode


def check_event(event: CalendarEvent, zone: tzinfo) -> CalendarEvent:
    """The event, with an end. Raises CalendarError with what is wrong and what to write instead."""
    _check_texts(event)
    start = read_wall("start", event.start)
    whole = event if event.end else _with_end(event, start, zone)
    end = read_wall("end", whole.end)
    if (_DATE.fullmatch(whole.end) is not None) != whole.all_day:
        raise CalendarError("start and end are either both days, or both times such as 2026-03-15T09:00")
    if (end < start) if whole.all_day else (_moment(end, zone) <= _moment(start, zone)):
        raise CalendarError("end must come after start; for an event of one whole day it is the same day")
    if end - start >= MAX_DAYS * _ONE_DAY:
        raise CalendarError(f"an event may take at most {MAX_DAYS} days; use rrule for what comes again")
    if not whole.all_day:  # one way to write a time
        whole = msgspec.structs.replace(whole, start=_text(start), end=_text(end))
    return _with_rule(whole, start, zone) if whole.rrule else whole


def _check_texts(event: CalendarEvent) -> None:
    if not event.title.strip():
        raise CalendarError("an event needs a title")
    for name, most in (("title", MAX_TITLE), ("location", MAX_LOCATION), ("description", MAX_DESCRIPTION)):
        if len(getattr(event, name)) > most:
            raise CalendarError(f"{name} may have at most {most} characters")


def read_wall(name: str, text: str) -> datetime:
    """A day, or a time on the wall. Raises CalendarError."""
    fits = _DATE.fullmatch(text) or _WALL.fullmatch(text)
    try:
        if not fits:
            raise ValueError
        wall = datetime.fromisoformat(text)
    except ValueError as error:
        raise CalendarError(
            f"{name}={text[:64]!r} is not understood; write a time on the wall of event_timezone such as "
            "2026-03-15T09:00, without Z or an offset, or a day such as 2026-03-15"
        ) from error
    if not YEARS[0] <= wall.year <= YEARS[1]:
        raise CalendarError(f"{name}={text} is out of reach; the years from {YEARS[0]} to {YEARS[1]} can be used")
    return wall


def _with_end(event: CalendarEvent, start: datetime, zone: tzinfo) -> CalendarEvent:
    hour = datetime.fromtimestamp(_moment(start, zone) + _ONE_HOUR, zone)  # not on the wall: it may skip or repeat one
    end = event.start if event.all_day else _text(hour)
    return msgspec.structs.replace(event, end=end)


def _with_rule(event: CalendarEvent, start: datetime, zone: tzinfo) -> CalendarEvent:
    if len(event.rrule) > MAX_TEXT:
        raise CalendarError(f"rrule may have at most {MAX_TEXT} characters")
    try:
        rule = read_rule(event.rrule, zone)
        _check_frequency(rule.frequency, rule.text)
        first = next(walls(rule, start, start), None)
    except ScheduleError as error:
        raise CalendarError(f"rrule: {error}") from error
    if first is None:
        raise CalendarError(f"rrule: {event.rrule!r} never comes true")
    if first != start:
        raise CalendarError(f"rrule: the first time of {event.rrule!r} is {first.date()}; let start be on that day")
    return msgspec.structs.replace(event, rrule=event.rrule.strip().upper().removeprefix("RRULE:").rstrip(";"))


def _check_frequency(frequency: str, text: str) -> None:
    if frequency not in _FREQUENCIES:
        raise CalendarError(f"rrule: FREQ={frequency} is too often for an event; use {', '.join(_FREQUENCIES)}")
    if "BYHOUR" in text or "BYMINUTE" in text:
        raise CalendarError("rrule: the time of day is that of start; leave out BYHOUR and BYMINUTE")


def occurrences(event_id: str, event: CalendarEvent, zone: tzinfo, since: float, until: float) -> Iterator[Occurrence]:
    """Those that take place between two moments, in order."""
    length = _length(event, zone)
    for start in _starts(event, zone, since, until):
        one = _occurrence(event_id, event, zone, start, length)
        if one.starts_at >= until:
            return
        if one.ends_at > since:
            yield one


def span(event: CalendarEvent, zone: tzinfo) -> tuple[float, float]:
    first = _occurrence("", event, zone, datetime.fromisoformat(event.start), _length(event, zone))
    return first.starts_at, first.ends_at


def _length(event: CalendarEvent, zone: tzinfo) -> timedelta:
    """Whole days on the wall; else time that passes, the same for each occurrence, also when clocks change."""
    first, last = datetime.fromisoformat(event.start), datetime.fromisoformat(event.end)
    return last - first if event.all_day else timedelta(seconds=_moment(last, zone) - _moment(first, zone))


def _starts(event: CalendarEvent, zone: tzinfo, since: float, until: float) -> Iterator[datetime]:
    first = datetime.fromisoformat(event.start)
    if not event.rrule:
        return iter((first,))
    length = datetime.fromisoformat(event.end) - first
    began = max(first, datetime.fromtimestamp(since, zone).replace(tzinfo=None) - length - _MARGIN)
    ended = datetime.fromtimestamp(until, zone).replace(tzinfo=None) + _MARGIN
    return _until(walls(read_rule(event.rrule, zone), first, began), ended)


def _until(found: Iterator[datetime], ended: datetime) -> Iterator[datetime]:
    for wall in found:
        if wall > ended or wall.year > YEARS[1]:
            return
        yield wall


def _occurrence(event_id: str, event: CalendarEvent, zone: tzinfo, start: datetime, length: timedelta) -> Occurrence:
    if event.all_day:
        first, last = start.date(), (start + length).date()
        moments_of = day_start(first, zone), day_start(last + _ONE_DAY, zone)
        return Occurrence(event_id, event, str(first), str(last), *moments_of)
    starts_at = _moment(start, zone)
    ends_at = starts_at + length.total_seconds()
    shown_start, shown_end = (_text(datetime.fromtimestamp(at, zone)) for at in (starts_at, ends_at))
    return Occurrence(event_id, event, shown_start, shown_end, starts_at, ends_at)


def until_of(event: CalendarEvent, zone: tzinfo) -> date | float | None:
    """The last day, or for an event with a time the last moment, that its rule names."""
    until = read_rule(event.rrule, zone).until
    if until is None:
        return None
    return until.date() if event.all_day else moments(until, zone, every=False)[-1]


def _moment(wall: datetime, zone: tzinfo) -> float:
    return moments(wall, zone, every=False)[0]


def _text(wall: datetime) -> str:
    return wall.replace(tzinfo=None).isoformat(timespec="seconds" if wall.second else "minutes")


def overlapping(mine: Sequence[Occurrence], others: Iterable[Occurrence], limit: int) -> list[Occurrence]:
    """The others, each event once, that take time which one of mine takes too. Mine are of one event, in order: of
    those that begin before another ends the last one also ends last, so it is the only one to look at."""
    begins = [one.starts_at for one in mine]
    found: dict[str, Occurrence] = {}
    for other in others:
        before = bisect_left(begins, other.ends_at)
        if before and mine[before - 1].ends_at > other.starts_at:
            found.setdefault(other.event_id, other)
        if len(found) >= limit:
            break
    return list(found.values())
