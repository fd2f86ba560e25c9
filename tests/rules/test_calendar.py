"""Events on the wall of their zone: what is accepted, when they take place, also when clocks change, what overlaps."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from paddock.rules.schedule.calendar import (
    CalendarError,
    CalendarEvent,
    Occurrence,
    check_event,
    occurrences,
    overlapping,
)

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def an_event(start: str, end: str = "", zone: ZoneInfo = BERLIN, **more: Any) -> CalendarEvent:
    return check_event(CalendarEvent("x", zone.key, start, end, **more), zone)


def found(event: CalendarEvent, since: str, until: str) -> list[tuple[str, str]]:
    """Start and end in UTC."""
    zone = ZoneInfo(event.event_timezone)
    every = occurrences("e", event, zone, at(since), at(until))
    return [(_utc(one.starts_at), _utc(one.ends_at)) for one in every]


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%m-%dT%H:%M")


def test_a_weekly_event_keeps_its_hour_on_the_wall_when_clocks_change() -> None:
    event = an_event("2026-03-23T09:00", "2026-03-23T10:30", rrule="FREQ=WEEKLY;BYDAY=MO;COUNT=3")
    assert found(event, "2026-01-01", "2027-01-01") == [
        ("03-23T08:00", "03-23T09:30"),
        ("03-30T07:00", "03-30T08:30"),
        ("04-06T07:00", "04-06T08:30"),
    ]
    assert found(event, "2026-03-30T08:00", "2026-04-06T07:00") == [("03-30T07:00", "03-30T08:30")]


def test_a_time_that_is_skipped_comes_later_that_day_and_one_that_comes_twice_counts_once() -> None:
    daily = an_event("2026-03-28T02:30", rrule="FREQ=DAILY")
    assert found(daily, "2026-03-28", "2026-03-31")[:3] == [
        ("03-28T01:30", "03-28T02:30"),
        ("03-29T01:30", "03-29T02:30"),
        ("03-30T00:30", "03-30T01:30"),
    ]
    assert found(daily, "2026-10-24T12:00", "2026-10-26T00:00") == [("10-25T00:30", "10-25T01:30")]


def test_a_series_that_begins_at_a_skipped_time_goes_on_at_the_time_that_was_meant() -> None:
    event = an_event("2026-03-29T02:30", rrule="FREQ=DAILY;COUNT=2")
    assert found(event, "2026-03-01", "2026-05-01") == [("03-29T01:30", "03-29T02:30"), ("03-30T00:30", "03-30T01:30")]


def test_whole_days_are_those_of_the_zone_and_as_long_as_they_are_there() -> None:
    assert found(an_event("2026-03-29"), "2026-03-01", "2026-05-01") == [("03-28T23:00", "03-29T22:00")]
    two = an_event("2026-10-24", "2026-10-25", rrule="FREQ=YEARLY")
    assert two.all_day
    assert found(two, "2026-10-25T22:30", "2026-10-26") == [("10-23T22:00", "10-25T23:00")]


def test_a_rule_ends_where_it_says() -> None:
    event = an_event("2026-03-28T09:00", rrule="RRULE:FREQ=DAILY;UNTIL=20260330T070000Z")
    assert [start for start, _ in found(event, "2026-01-01", "2027-01-01")] == [
        "03-28T08:00",
        "03-29T07:00",
        "03-30T07:00",
    ]
    assert found(event, "2026-05-01", "2026-06-01") == []


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"title": " "}, "an event needs a title"),
        ({"title": "x" * 201}, "title may have at most 200"),
        ({"start": "tomorrow"}, "start='tomorrow' is not understood; write a time on the wall"),
        ({"start": "2026-03-15T09:00Z"}, "without Z or an offset"),
        ({"start": "2026-02-30"}, "start='2026-02-30' is not understood"),
        ({"start": "1900-01-01"}, "the years from 1970 to 2199"),
        ({"end": "2026-03-15"}, "either both days, or both times"),
        ({"end": "2026-03-15T09:00"}, "end must come after start"),
        ({"end": "2026-04-15T09:00"}, "at most 31 days"),
        ({"rrule": "every day"}, "rrule: 'EVERY DAY' is no part of an RRULE"),
        ({"rrule": "FREQ=HOURLY"}, "FREQ=HOURLY is too often"),
        ({"rrule": "FREQ=DAILY;BYHOUR=3"}, "leave out BYHOUR"),
        ({"rrule": "FREQ=WEEKLY;BYDAY=MO"}, "the first time of 'FREQ=WEEKLY;BYDAY=MO' is 2026-03-16"),
        ({"rrule": "FREQ=DAILY;UNTIL=20250101"}, "never comes true"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_write(given: dict[str, str], complaint: str) -> None:
    whole = {"title": "x", "event_timezone": "Europe/Berlin", "start": "2026-03-15T09:00", "end": ""}
    with pytest.raises(CalendarError) as refused:
        check_event(CalendarEvent(**(whole | given)), BERLIN)
    assert complaint in str(refused.value)


def test_only_what_shares_time_overlaps_and_each_event_is_named_once() -> None:
    def one(event_id: str, start: float, end: float) -> Occurrence:
        return Occurrence(event_id, an_event("2026-03-15"), "", "", start, end)

    mine = [one("m", 10, 30), one("m", 20, 40), one("m", 60, 80)]
    others = [one("before", 0, 10), one("a", 5, 11), one("b", 35, 36), one("between", 40, 60), one("a", 70, 71)]
    assert [other.event_id for other in overlapping(mine, others, 9)] == ["a", "b"]
    assert [other.event_id for other in overlapping(mine, others, 1)] == ["a"]
