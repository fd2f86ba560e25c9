"""The calendar over HTTP: occurrences as JSON, and a file that other programs read the same times from."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dateutil.rrule import rrulestr
from icalendar import Calendar

from http_api.doors import Doors, assert_problem, open_doors
from http_api.test_openapi import check, described
from paddock.ports.tools import ToolUse

pytestmark = pytest.mark.anyio
BASE = "/api/v1/calendar"
SPRING = {"from": "2026-03-16", "to": "2026-04-05", "timeZone": "Europe/Berlin"}


async def made(doors: Doors, user: str, **given: Any) -> str:
    use = ToolUse("c", "calendar_write", {}, "default", user, "one", "s", "r", 0.0)
    event = {"title": "Stand-up", "event_timezone": "Europe/Berlin", **given}
    return (await doors.house.calendars.write(use, "create", event))["event"]["event_id"]


@pytest.mark.spec("http/calendar")
async def test_occurrences_are_told_on_the_wall_and_as_moments_and_only_to_their_owner() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        event_id = await made(doors, "ann", start="2026-03-23T09:00", rrule="FREQ=WEEKLY", location="Hall")
        await made(doors, "ann", title="Holiday", start="2026-04-03", end="2026-04-05")
        answer = await doors.client.get(BASE, params=SPRING, headers=ann)
        page = answer.json()
        check(described(BASE, "GET", 200), page)
        assert (page["from"], page["to"]) == ("2026-03-15T23:00:00.000Z", "2026-04-05T22:00:00.000Z")
        assert [(one["start"], one["startsAt"], one["allDay"]) for one in page["events"]] == [
            ("2026-03-23T09:00", "2026-03-23T08:00:00.000Z", False),
            ("2026-03-30T09:00", "2026-03-30T07:00:00.000Z", False),
            ("2026-04-03", "2026-04-02T22:00:00.000Z", True),
        ]
        assert (page["events"][0]["eventId"], page["events"][0]["location"]) == (event_id, "Hall")
        assert page["hasMore"] is False
        others = await doors.client.get(BASE, params=SPRING, headers=bob)
        assert others.json()["events"] == []


@pytest.mark.spec("http/calendar")
@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"from": "soon"}, "from must be a day such as"),
        ({"from": "2026-03-15T09:00:00"}, "from must be a day such as"),
        ({"to": "9999-12-31"}, "to must be a day such as"),
        ({"from": "2026-03-15", "to": "2026-03-14"}, "the end must come after the start"),
        ({"from": "2026-03-15", "to": "2028-03-14"}, "at most 400 days"),
        ({"timeZone": "Berlin"}, "timeZone: there is no time zone 'Berlin'"),
    ],
)
async def test_a_question_that_means_nothing_is_refused(asked: dict[str, str], complaint: str) -> None:
    async with open_doors() as doors:
        assert_problem(await doors.client.get(BASE, params=asked), 422, "invalid_argument", complaint)


@pytest.mark.spec("http/calendar-ics")
async def test_the_file_gives_other_programs_the_same_times() -> None:
    async with open_doors() as doors:
        ann = await doors.key_for("ann")
        rule = "FREQ=WEEKLY;BYDAY=MO;UNTIL=20260406"
        event_id = await made(doors, "ann", start="2026-03-23T09:00", rrule=rule, description="a;b,c\nd")
        await made(doors, "ann", title="Holiday", start="2026-04-03", end="2026-04-04", busy=False)
        answer = await doors.client.get(f"{BASE}.ics", headers=ann)
        assert answer.headers["content-type"] == "text/calendar; charset=utf-8"
        read = Calendar.from_ical(answer.content)
        assert [str(zone["TZID"]) for zone in read.walk("VTIMEZONE")] == ["Europe/Berlin"]
        events: list[Any] = read.walk("VEVENT")
        meeting, holiday = events
        assert (str(meeting["UID"]), str(meeting["DESCRIPTION"])) == (event_id, "a;b,c\nd")
        start = meeting["DTSTART"].dt
        every = rrulestr(meeting["RRULE"].to_ical().decode(), dtstart=start)
        moments = [one.astimezone(UTC) for one in every]
        assert moments == [datetime(2026, *day, tzinfo=UTC) for day in ((3, 23, 8), (3, 30, 7), (4, 6, 7))]
        told = (await doors.client.get(BASE, params=SPRING | {"to": "2026-05-30"}, headers=ann)).json()["events"]
        assert [datetime.fromisoformat(one["startsAt"]) for one in told if not one["allDay"]] == moments
        assert holiday["DTEND"].dt - holiday["DTSTART"].dt == timedelta(days=2)
        assert str(holiday["TRANSP"]) == "TRANSPARENT"
        empty = await doors.client.get(f"{BASE}.ics", headers=await doors.key_for("bob"))
        assert Calendar.from_ical(empty.content).walk("VEVENT") == []


@pytest.mark.spec("http/calendar-ics")
async def test_a_series_that_begins_at_a_skipped_time_is_exported_at_the_time_that_was_meant() -> None:
    async with open_doors() as doors:
        await made(doors, "ann", start="2026-03-29T02:30", rrule="FREQ=DAILY")
        whole = (await doors.client.get(f"{BASE}.ics", headers=await doors.key_for("ann"))).text
        assert "DTSTART;TZID=Europe/Berlin:20260329T023000\r\n" in whole
