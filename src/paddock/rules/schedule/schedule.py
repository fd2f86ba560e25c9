"""When a job is due: a cron line or an RRULE in a time zone, and ticks that were missed. Pure.

Zones and moments come in as values. People mean the clock on their wall, so a tick is a wall time; how that becomes a
moment when clocks are changed is decided here, once, for cron lines and rules alike: a time that is skipped comes as
much later as the clocks were put forward, a time that comes twice counts the first time, and what goes by the minute or
hour and names no hours misses and doubles nothing. Every search ends, also for a rule that matches nothing, and is
short, because schedules are strangers' words: ticks that are over are skipped, never counted off.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import MAXYEAR, UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from paddock.rules.values import Value, replace

if TYPE_CHECKING:
    from dateutil.rrule import rrule

ScheduleKind = Literal["cron", "rrule"]
Missed = Literal["skip", "run_once"]
GRACE_SECONDS = 60.0
"""A tick that is no older than this is late; one that is older was missed."""
MAX_TEXT = 500
MAX_COUNT = 1000
MAX_INTERVAL = 1000
MAX_TIMES_A_DAY = 96
"""Every quarter of an hour. What comes more often goes by the minute: FREQ=MINUTELY."""

_PART = re.compile(r"([A-Z]+)=([A-Z0-9,+\-]+)", re.ASCII)
_UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)
_BY_THE_CLOCK = frozenset({"HOURLY", "MINUTELY"})
_COUNTS_DAYS = _BY_THE_CLOCK | {"DAILY"}
_ALWAYS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYHOUR", "BYMINUTE")
_BY_DAY = (*_ALWAYS, "BYMONTH")
_BY_MONTH = (*_BY_DAY, "BYMONTHDAY", "BYSETPOS")
_PARTS = {
    "MINUTELY": _ALWAYS,
    "HOURLY": _ALWAYS,
    "DAILY": _BY_DAY,
    "WEEKLY": _BY_DAY,
    "MONTHLY": _BY_MONTH,
    "YEARLY": (*_BY_MONTH, "BYYEARDAY", "BYWEEKNO"),
}
"""What may go together. The library stops looking only where a rule matches, so a rule by the day that never does
would be followed, day by day, to the end of time."""
_NUMBERS = {
    "BYHOUR": (0, 23),
    "BYMINUTE": (0, 59),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYSETPOS": (1, 366),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
}
_STEPS = {
    "MINUTELY": timedelta(minutes=1),
    "HOURLY": timedelta(hours=1),
    "DAILY": timedelta(days=1),
    "WEEKLY": timedelta(weeks=1),
}
_LOOK_BACK = timedelta(hours=25)
"""No clock was ever put forward or back by more."""
_ONE_SECOND = 1.0
_ONE_MINUTE = 60.0
"""No two ticks are closer."""
_PERIODS = {"YEARLY": 100, "MONTHLY": 500}
"""So many years or months of a rule are looked at for its first tick: a 29 February that is a Monday comes within forty
years. The library would look to the year 9999."""
_ONE_PERIOD = MAXYEAR * 12
"""An interval that ends the library's search after the period it begins with."""


class ScheduleError(ValueError):
    """A schedule that means nothing. The text is a sentence for its author."""


class Schedule(Value, frozen=True):
    """A cron line or RRULE. An RRULE counts from `starts_at`; a cron line only begins then."""

    kind: ScheduleKind
    text: str
    starts_at: float


class Due(Value, frozen=True):
    """The outcome of a tick: one to fire, a stretch that was missed, and the next."""

    fire: float | None
    skipped: tuple[float, float] | None
    """The first and the last that are passed over."""
    next_at: float | None


def check(schedule: Schedule, zone: tzinfo) -> None:
    """Raises ScheduleError when the text is not understood or never comes true."""
    if len(schedule.text) > MAX_TEXT:
        raise ScheduleError(f"a schedule may have at most {MAX_TEXT} characters")
    if schedule.kind == "rrule":
        check_rule(schedule.text, zone)
    if next_tick(schedule, zone, schedule.starts_at - _ONE_SECOND) is None:
        raise ScheduleError(f"{schedule.text!r} never comes true")


def next_tick(schedule: Schedule, zone: tzinfo, after: float) -> float | None:
    """The first tick later than a moment; None when there is none any more. Raises ScheduleError."""
    after = max(after, schedule.starts_at - _ONE_SECOND)
    if schedule.kind == "cron":
        return _next_of_cron(schedule.text, zone, after)
    return _next_of_rule(schedule, zone, after)


def latest_tick(schedule: Schedule, zone: tzinfo, since: float, until: float) -> float | None:
    """The last tick from `since` to `until`, both included; looks back ever further, never tick by tick."""
    span = 60.0
    while True:
        start = max(since - _ONE_SECOND, until - span)
        found = next_tick(schedule, zone, start)
        if found is not None and found <= until:
            return _last_from(schedule, zone, found, until)
        if start < since:
            return None
        span *= 30


def _last_from(schedule: Schedule, zone: tzinfo, found: float, until: float) -> float:
    """The last tick from a known one on: half of what is left is ruled out with each look."""
    while until - found >= _ONE_MINUTE:
        middle = (found + until) / 2
        following = next_tick(schedule, zone, middle)
        if following is not None and following <= until:
            found = following
        else:
            until = middle
    return found


def due(schedule: Schedule, zone: tzinfo, pending: float, now: float, missed: Missed) -> Due:
    """Decide about a tick that has come. At most one is fired, however many were missed."""
    latest = latest_tick(schedule, zone, pending, now)
    if latest is None:  # the schedule was changed under it
        return Due(None, None, next_tick(schedule, zone, now))
    fire = latest if now - latest <= GRACE_SECONDS or missed == "run_once" else None
    last = latest if fire is None else latest_tick(schedule, zone, pending, latest - _ONE_SECOND)
    return Due(fire, None if last is None else (pending, last), next_tick(schedule, zone, latest))


def _next_of_cron(text: str, zone: tzinfo, after: float) -> float | None:
    from cronsim import CronSim, CronSimError

    if len(text.split()) != 5:
        raise ScheduleError(f"{text!r} is no cron line: it has five fields, minute hour day month weekday")
    try:
        since = wall_time(after, zone) - _changed(zone, after) - timedelta(minutes=1)
        return _earliest(CronSim(text, since), zone, after, every=text.split()[1].startswith("*"))
    except CronSimError as error:
        raise ScheduleError(f"{text!r} is no cron line: {error}") from error


class Rule(Value, frozen=True):
    """An RRULE taken apart: its frequency, the parts that are left to the library, and its end on the wall."""

    frequency: str
    interval: int
    by_the_clock: bool
    """Whether it goes by the minute or the hour and names no hours."""
    counted: bool
    text: str
    until: datetime | None


def read_rule(text: str, zone: tzinfo) -> Rule:
    """Raises ScheduleError for what is no rule, and for rules that nobody could follow."""
    given = _parts(text.strip().upper().removeprefix("RRULE:"))
    frequency = given.get("FREQ", "")
    if frequency not in _PARTS:
        raise ScheduleError(f"an RRULE needs FREQ, one of {', '.join(_PARTS)}")
    if odd := next((name for name in given if name not in _PARTS[frequency]), None):
        raise ScheduleError(f"{odd} cannot be used with FREQ={frequency} here; {', '.join(_PARTS[frequency])} can")
    interval = _number(given, "INTERVAL", MAX_INTERVAL)
    _number(given, "COUNT", MAX_COUNT)
    for name, (least, most) in _NUMBERS.items():
        if name in given and not all(_is_within(one, least, most) for one in given[name].split(",")):
            raise ScheduleError(f"{name}={given[name]} is not understood; its numbers go from {least} to {most}")
    if "BYDAY" in given and interval % 7 == 0 and frequency in _COUNTS_DAYS:
        raise ScheduleError(f"FREQ={frequency} with BYDAY needs an INTERVAL that is no multiple of 7; use FREQ=WEEKLY")
    until = _until(given["UNTIL"], zone) if "UNTIL" in given else None
    kept = ";".join(f"{name}={value}" for name, value in given.items() if name != "UNTIL")
    by_the_clock = frequency in _BY_THE_CLOCK and "BYHOUR" not in given
    return Rule(frequency, interval, by_the_clock, "COUNT" in given, kept, until)


def check_rule(text: str, zone: tzinfo) -> Rule:
    """Read a rule that is new; one that has too many times a day is refused. Raises ScheduleError."""
    rule = read_rule(text, zone)
    given = _parts(rule.text)
    times_a_day = len(given.get("BYHOUR", "").split(",")) * len(given.get("BYMINUTE", "").split(","))
    if rule.frequency not in _BY_THE_CLOCK and times_a_day > MAX_TIMES_A_DAY:
        raise ScheduleError(f"FREQ={rule.frequency} has more than {MAX_TIMES_A_DAY} times a day; use FREQ=MINUTELY")
    return rule


def _parts(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.rstrip(";").split(";"):
        match = _PART.fullmatch(part)
        if match is None:
            raise ScheduleError(f"{part[:64]!r} is no part of an RRULE; an example is FREQ=WEEKLY;BYDAY=MO,WE;BYHOUR=9")
        name, value = match.groups()
        if name in found:
            raise ScheduleError(f"{name} is there twice")
        found[name] = value
    return found


def _number(given: dict[str, str], name: str, most: int) -> int:
    text = given.get(name, "1")
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise ScheduleError(f"{name} must be a whole number from 1 to {most}")
    return int(text)


def _is_within(text: str, least: int, most: int) -> bool:
    """Return true for a number of that size or, where there is no zero, for so many from the end."""
    digits = text.lstrip("+-") if least else text
    return digits.isdigit() and least <= int(digits) <= most


def _until(text: str, zone: tzinfo) -> datetime:
    """The last moment on the wall that still counts: a day counts whole, a time with Z is that of the zone then."""
    match = _UNTIL.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        day, time, utc = match.groups()
        moment = datetime.strptime(day + (time or "235959"), "%Y%m%d%H%M%S")  # noqa: DTZ007 - a wall time
    except ValueError as error:
        raise ScheduleError(f"UNTIL={text} is no date; write UNTIL=20261231 or UNTIL=20261231T235959Z") from error
    return moment.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) if utc else moment


def _next_of_rule(schedule: Schedule, zone: tzinfo, after: float) -> float | None:
    rule = read_rule(schedule.text, zone)
    since = wall_time(after, zone) - _changed(zone, after)
    found = walls(rule, wall_time(schedule.starts_at, zone), since)
    return _earliest(found, zone, after, every=rule.by_the_clock)


def _earliest(walls: Iterator[datetime], zone: tzinfo, after: float, *, every: bool) -> float | None:
    """The first moment later than `after` that these wall times, which come in order, stand for."""
    best: float | None = None
    enough: datetime | None = None
    for wall in walls:
        if enough is not None and wall > enough:
            break
        for moment in moments(wall, zone, every=every):
            if moment > after and (best is None or moment < best):
                best, enough = moment, wall + _changed(zone, moment)
    return best


def _changed(zone: tzinfo, moment: float) -> timedelta:
    """Return how far wall times may be out of order around a moment: zero where no clock changes."""
    day = _LOOK_BACK.total_seconds()
    offsets = {datetime.fromtimestamp(at, zone).utcoffset() for at in (moment - day, moment, moment + day)}
    return _LOOK_BACK if len(offsets) > 1 else timedelta()


def wall_time(moment: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None, second=0, microsecond=0)


def walls(rule: Rule, start: datetime, since: datetime) -> Iterator[datetime]:
    if rule.frequency in _PERIODS:
        rule = replace(rule, text=_spelled_out(rule.text, rule.frequency, start))
        if not _ever_comes(rule.text, rule.frequency, rule.interval, start):
            return
    try:
        for wall in _library_rule(rule.text, _moved(rule, start, since)):
            if rule.until is not None and wall > rule.until:
                return
            if wall >= since:
                yield wall
    except (ValueError, OverflowError) as error:
        raise ScheduleError(f"{rule.text!r} cannot be followed: {error}") from error


def _library_rule(text: str, start: datetime) -> "rrule":
    from dateutil.rrule import rrulestr

    try:
        return cast("rrule", rrulestr(text, dtstart=start))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise ScheduleError(f"{text!r} is not understood: {error}") from error


def _spelled_out(text: str, frequency: str, start: datetime) -> str:
    """A rule by the month or year with what it takes from its start, so that any day of a period can stand for it."""
    given = _parts(text)
    if not given.keys() & {"BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"}:
        given["BYMONTHDAY"] = str(start.day)
        if frequency == "YEARLY":
            given.setdefault("BYMONTH", str(start.month))
    for name, value in (("BYHOUR", start.hour), ("BYMINUTE", start.minute), ("BYSECOND", start.second)):
        given.setdefault(name, str(value))
    return ";".join(f"{name}={value}" for name, value in given.items())


@lru_cache(maxsize=1024)
def _ever_comes(text: str, frequency: str, interval: int, start: datetime) -> bool:
    given = _parts(text) | {"INTERVAL": str(_ONE_PERIOD)}
    one = ";".join(f"{name}={value}" for name, value in given.items())
    for number in range(_PERIODS[frequency]):
        period = _period(start, frequency, interval * number)
        if period is None:
            return False
        if any(True for _ in _library_rule(one, max(start, period))):
            return True
    return False


def _period(start: datetime, frequency: str, later: int) -> datetime | None:
    months = start.year * 12 + start.month - 1 + (later if frequency == "MONTHLY" else 0)
    year = months // 12 + (later if frequency == "YEARLY" else 0)
    return None if year > MAXYEAR else datetime(year, months % 12 + 1 if frequency == "MONTHLY" else 1, 1)  # noqa: DTZ001 - a wall time


def _moved(rule: Rule, start: datetime, since: datetime) -> datetime:
    """A later start in step with the first one, so that years of past ticks need not be counted off."""
    if rule.counted or since <= start:
        return start
    if rule.frequency in _PERIODS:
        years = since.year - start.year
        apart = years if rule.frequency == "YEARLY" else years * 12 + since.month - start.month
        return max(start, _period(start, rule.frequency, apart // rule.interval * rule.interval) or start)
    step = _STEPS[rule.frequency]
    whole = step * rule.interval
    return start + max(0, (since - start) // whole - 1) * whole


def moments(wall: datetime, zone: tzinfo, *, every: bool) -> list[float]:
    """The moments a wall time stands for: one; with `every`, none when it is skipped and two when it comes twice."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if first == second:
        return [first]
    if first > second:  # it is skipped: read with the clock as it was before
        return [] if every else [first]
    return [first, second] if every else [first]


MODE = "automation"
"""The `runtime_mode` of a job's runs."""


class Job(Value, frozen=True):
    """A job as it is kept: who is asked what, when, and the part of `AutomationJob.config` that a run is given."""

    name: str
    prompt: str
    kind: ScheduleKind
    text: str
    time_zone: str
    starts_at: float
    agent_id: str | None = None
    missed: Missed = "skip"
    enabled_tools: tuple[str, ...] | None = None
    """Of its agent's tools only these; None leaves it all of them."""
    context: tuple[Mapping[str, str], ...] = ()

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.kind, self.text, self.starts_at)

    def params(self) -> Mapping[str, Any]:
        """Parameters of a run of the job, in the place where other runs find their client's."""
        told: dict[str, Any] = {"forwardedProps": {"runtime_mode": MODE}}
        return told | ({"context": [dict(one) for one in self.context]} if self.context else {})


to_body = msgspec.json.Encoder().encode
from_body = msgspec.json.Decoder(Job).decode
