"""Ticks: on the wall clock of a zone, right when clocks are changed, and never more than one for what was missed."""

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.rules.schedule.schedule import (
    GRACE_SECONDS,
    Due,
    Missed,
    Schedule,
    ScheduleError,
    check,
    due,
    latest_tick,
    next_tick,
)

BERLIN, NEW_YORK, SHANGHAI, LORD_HOWE = map(
    ZoneInfo, ("Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe")
)
START = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
ZONES = st.sampled_from([BERLIN, NEW_YORK, SHANGHAI, LORD_HOWE, ZoneInfo("UTC"), ZoneInfo("Pacific/Apia")])
MOMENTS = st.integers(int(START), int(START) + 4 * 366 * 86_400).map(float)
LINES = st.sampled_from(
    [
        ("cron", "*/15 * * * *"),
        ("cron", "30 2 * * *"),
        ("cron", "0 9 * * 1-5"),
        ("cron", "0 0 1 * *"),
        ("cron", "30 1 * * 0"),
        ("rrule", "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"),
        ("rrule", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;BYHOUR=9;BYMINUTE=0"),
        ("rrule", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0"),
        ("rrule", "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=0;BYMINUTE=0"),
        ("rrule", "FREQ=HOURLY;BYMINUTE=30"),
        ("rrule", "FREQ=MINUTELY;INTERVAL=20"),
        ("rrule", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=12;BYMINUTE=0"),
    ]
)


def cron(text: str, start: float = START) -> Schedule:
    return Schedule("cron", text, start)


def rule(text: str, start: float = START) -> Schedule:
    return Schedule("rrule", text, start)


def at(zone: ZoneInfo, *when: int, fold: int = 0) -> float:
    return datetime(*when, tzinfo=zone, fold=fold).timestamp()


def some(schedule: Schedule, zone: ZoneInfo, after: float, count: int) -> list[str]:
    found = []
    for _ in range(count):
        tick = next_tick(schedule, zone, after)
        assert tick is not None
        found.append(datetime.fromtimestamp(tick, zone).isoformat(timespec="minutes"))
        after = tick
    return found


@pytest.mark.parametrize("schedule", [cron("0 9 * * *"), rule("FREQ=DAILY;BYHOUR=9;BYMINUTE=0")])
def test_nine_in_the_morning_is_nine_on_the_wall_all_year(schedule: Schedule) -> None:
    assert some(schedule, BERLIN, at(BERLIN, 2026, 3, 28, 12), 2) == [
        "2026-03-29T09:00+02:00",
        "2026-03-30T09:00+02:00",
    ]
    assert some(schedule, BERLIN, at(BERLIN, 2026, 10, 24, 8), 2) == [
        "2026-10-24T09:00+02:00",
        "2026-10-25T09:00+01:00",
    ]


@pytest.mark.parametrize("schedule", [cron("30 2 * * *"), rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30")])
def test_a_time_that_is_skipped_still_comes_once_that_day(schedule: Schedule) -> None:
    ticks = some(schedule, BERLIN, at(BERLIN, 2026, 3, 28, 12), 2)
    assert ticks[0].startswith("2026-03-29T03:")
    assert ticks[1] == "2026-03-30T02:30+02:00"


@pytest.mark.parametrize("schedule", [cron("30 2 * * *"), rule("FREQ=DAILY;BYHOUR=2;BYMINUTE=30")])
def test_a_time_that_comes_twice_counts_once(schedule: Schedule) -> None:
    ticks = some(schedule, BERLIN, at(BERLIN, 2026, 10, 24, 12), 2)
    assert ticks == ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]


@pytest.mark.parametrize("schedule", [cron("*/30 * * * *"), rule("FREQ=MINUTELY;INTERVAL=30")])
@pytest.mark.parametrize(("month", "day"), [(3, 29), (10, 25)])
def test_what_goes_by_the_clock_misses_and_doubles_nothing_when_clocks_change(
    schedule: Schedule, month: int, day: int
) -> None:
    after, found = at(BERLIN, 2026, month, day, 0) - 1, list[float]()
    for _ in range(12):
        tick = next_tick(schedule, BERLIN, after)
        assert tick is not None
        found.append(tick)
        after = tick
    assert {later - earlier for earlier, later in pairwise(found)} == {1800.0}


ALIKE = {
    "30 2 * * *": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
    "0 2 * * *": "FREQ=HOURLY;BYHOUR=2;BYMINUTE=0",
    "*/30 2 * * *": "FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30",
    "*/20 2,3 * * *": "FREQ=HOURLY;BYHOUR=2,3;BYMINUTE=0,20,40",
    "30 1-3 * * *": "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=30",
    "30 2 * * 0": "FREQ=WEEKLY;BYDAY=SU;BYHOUR=2;BYMINUTE=30",
    "0 * * * *": "FREQ=HOURLY;BYMINUTE=0",
    "*/30 * * * *": "FREQ=MINUTELY;INTERVAL=30",
    "0 */2 * * *": "FREQ=HOURLY;INTERVAL=2",
}


@pytest.mark.parametrize(("line", "text"), ALIKE.items(), ids=ALIKE)
@pytest.mark.parametrize(
    ("zone", "month", "day"),
    [
        ("Europe/Berlin", 3, 28),
        ("Europe/Berlin", 10, 24),
        ("America/New_York", 3, 7),
        ("America/New_York", 10, 31),
        ("Australia/Lord_Howe", 10, 3),
        ("Australia/Lord_Howe", 4, 4),
        ("Asia/Shanghai", 3, 28),
    ],
)
def test_cron_and_rrule_agree_when_clocks_change(line: str, text: str, zone: str, month: int, day: int) -> None:
    place = ZoneInfo(zone)
    start = at(place, 2026, month, day, 0)
    assert some(cron(line, start), place, start - 1, 60) == some(rule(text, start), place, start - 1, 60)


def test_times_that_are_skipped_come_later_and_together_if_they_fall_together() -> None:
    after = at(BERLIN, 2026, 3, 28, 12)
    assert some(cron("30 2 * * *"), BERLIN, after, 1) == ["2026-03-29T03:30+02:00"]
    assert some(cron("*/30 2 * * *"), BERLIN, after, 2) == ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]
    assert some(cron("30 2,3 * * *"), BERLIN, after, 2) == ["2026-03-29T03:30+02:00", "2026-03-30T02:30+02:00"]


def test_the_last_friday_of_the_month_and_every_second_week() -> None:
    assert some(rule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0"), SHANGHAI, START, 2) == [
        "2026-01-30T17:00+08:00",
        "2026-02-27T17:00+08:00",
    ]
    weekly = rule("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=8;BYMINUTE=0", at(SHANGHAI, 2026, 1, 5))
    [tick] = some(weekly, SHANGHAI, at(SHANGHAI, 2036, 1, 1), 1)
    assert (datetime.fromisoformat(tick) - datetime(2026, 1, 5, 8, tzinfo=SHANGHAI)).days % 14 == 0


def test_a_rule_ends_by_count_or_by_date() -> None:
    thrice = rule("FREQ=DAILY;COUNT=3;BYHOUR=12;BYMINUTE=0")
    assert some(thrice, SHANGHAI, START, 3)[-1] == "2026-01-03T12:00+08:00"
    assert next_tick(thrice, SHANGHAI, at(SHANGHAI, 2026, 1, 3, 12)) is None
    until = rule("FREQ=DAILY;UNTIL=20260102T040000Z;BYHOUR=12;BYMINUTE=0")
    assert next_tick(until, SHANGHAI, at(SHANGHAI, 2026, 1, 2, 11)) == at(SHANGHAI, 2026, 1, 2, 12)
    assert next_tick(until, SHANGHAI, at(SHANGHAI, 2026, 1, 2, 12)) is None


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        (cron("0 9 * *"), "five fields"),
        (cron("61 9 * * *"), "no cron line"),
        (cron("0 0 30 2 *"), "never|no cron line"),
        (rule("every day"), "no part of an RRULE"),
        (rule("FREQ=SECONDLY"), "needs FREQ"),
        (rule("INTERVAL=2"), "needs FREQ"),
        (rule("FREQ=DAILY;INTERVAL=0"), "INTERVAL must be"),
        (rule("FREQ=DAILY;COUNT=5000"), "COUNT must be"),
        (rule("FREQ=DAILY;BYEASTER=1"), "BYEASTER cannot be used"),
        (rule("FREQ=DAILY;FREQ=DAILY"), "twice"),
        (rule("FREQ=DAILY;UNTIL=tomorrow"), "UNTIL"),
        (rule("FREQ=DAILY;BYHOUR=99"), "not understood|cannot be followed|never"),
        (rule("FREQ=WEEKLY;BYDAY=XX"), "not understood"),
        (rule("FREQ=MINUTELY;BYSETPOS=2"), "BYSETPOS"),
        (rule("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30"), "BYMONTH cannot be used"),
        (rule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"), "BYMONTHDAY cannot be used"),
        (rule("FREQ=DAILY;BYMONTH=13"), "BYMONTH=13 is not understood"),
        (rule("FREQ=DAILY;INTERVAL=7;BYDAY=TU"), "no multiple of 7"),
        (rule("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"), "never comes true"),
        (rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), "never comes true"),
        (rule("FREQ=DAILY;UNTIL=20200101"), "never comes true"),
        (rule("FREQ=DAILY;" + "BYHOUR=1," * 90), "at most"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused_soon_and_in_words(schedule: Schedule, says: str) -> None:
    began = time.process_time()
    with pytest.raises(ScheduleError, match=says):
        check(schedule, BERLIN)
    assert time.process_time() - began < 5


@settings(max_examples=60, deadline=None)
@given(line=LINES, zone=ZONES, after=MOMENTS)
def test_ticks_go_forward_and_none_lies_between_two_that_follow_each_other(
    line: tuple[str, str], zone: ZoneInfo, after: float
) -> None:
    schedule = Schedule(line[0], line[1], START)  # type: ignore[arg-type]
    first = next_tick(schedule, zone, after)
    assert first is not None
    assert first > after
    second = next_tick(schedule, zone, first)
    assert second is not None
    assert second > first
    assert next_tick(schedule, zone, (first + second) / 2) == second
    assert next_tick(schedule, zone, first - 1) == first


@settings(max_examples=60, deadline=None)
@given(
    line=LINES,
    zone=ZONES,
    after=MOMENTS,
    away=st.integers(0, 40 * 86_400),
    missed=st.sampled_from(["skip", "run_once"]),
)
def test_whatever_was_missed_at_most_one_is_fired_and_the_next_lies_ahead(
    line: tuple[str, str], zone: ZoneInfo, after: float, away: int, missed: Missed
) -> None:
    schedule = Schedule(line[0], line[1], START)  # type: ignore[arg-type]
    pending = next_tick(schedule, zone, after)
    assert pending is not None
    now = pending + away
    found = due(schedule, zone, pending, now, missed)
    latest = latest_tick(schedule, zone, pending, now)
    assert latest is not None
    assert pending <= latest <= now
    assert found.next_at is None or found.next_at > now
    assert found.fire == (latest if missed == "run_once" or now - latest <= GRACE_SECONDS else None)
    if found.skipped is not None:
        assert found.skipped[0] == pending
        assert found.skipped[1] == latest or found.fire == latest > found.skipped[1]
    else:
        assert found.fire == pending == latest


def test_a_tick_on_time_is_fired_and_nothing_was_missed() -> None:
    tick = at(BERLIN, 2026, 5, 5, 9)
    found = due(cron("0 9 * * *"), BERLIN, tick, tick + 3, "skip")
    assert found == Due(tick, None, at(BERLIN, 2026, 5, 6, 9))


def test_after_a_year_away_one_look_is_enough() -> None:
    began = time.process_time()
    pending = at(BERLIN, 2026, 2, 1)
    now = pending + timedelta(days=365).total_seconds() + 200
    found = due(cron("* * * * *"), BERLIN, pending, now, "run_once")
    assert found.fire == now - 200 + 180
    assert time.process_time() - began < 1
