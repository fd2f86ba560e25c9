"""A run writes and reads the calendar of its user through the gate; what is wrong or in the way is said clearly."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.automation import calendar
from paddock.host.people.principals import Principal
from paddock.ports import Caller

pytestmark = pytest.mark.anyio

HERE = Caller("test/one", "c1")
AGENTS = 'default_agent: one\nagents:\n  one: {runner: "plugin:test/one/default", tools: all}\n'
BOB = Principal("default", "bob", "user")
LUNCH = {
    "action": "create",
    "title": "Lunch",
    "event_timezone": "Europe/Berlin",
    "start": "2026-03-16T12:00",
    "end": "2026-03-16T13:00",
}
Call = Callable[..., Any]


@asynccontextmanager
async def a_house() -> AsyncIterator[SmallHouse]:
    async with small_house(gateway=ScriptedGateway({"tools": ["detail", "call"]}), agents=AGENTS) as house:
        yield house


async def a_run(house: SmallHouse, who: Principal = ANN) -> AtRunner:
    await house.say(thread=str(uuid.uuid4()), who=who)
    return await house.gateway.next()


async def call(house: SmallHouse, run: AtRunner, tool: str, given: Mapping[str, Any]) -> Any:
    asked = {"run_id": run.run_id, "tool_name": tool, "parameters": given}
    return await house.calls(HERE, "tools.call", asked, 1000)


async def write(house: SmallHouse, run: AtRunner, **changes: Any) -> Any:
    return await call(house, run, "calendar_write", LUNCH | changes)


async def titles(house: SmallHouse, run: AtRunner) -> list[tuple[str, str]]:
    asked = {"event_timezone": "UTC", "start": "2026-03-01", "end": "2026-04-30"}
    found = await call(house, run, "calendar_read", asked)
    return [(one["title"], one["start"]) for one in found["result"]["events"]]


@pytest.mark.spec("http/calendar-tools")
async def test_a_run_writes_changes_reads_and_deletes_events_and_each_change_is_on_record() -> None:
    async with a_house() as house:
        run = await a_run(house)
        made = (await write(house, run, rrule="FREQ=WEEKLY;COUNT=3"))["result"]["event"]
        assert await titles(house, run) == [("Lunch", f"2026-03-{day}T12:00") for day in (16, 23, 30)]
        which = {"event_id": made["event_id"]}
        asked = {"event_timezone": "UTC", **which}
        moved = {"action": "update", **which, "event_timezone": "Asia/Tokyo", "start": "2026-03-17T18:00", "rrule": ""}
        changed = (await call(house, run, "calendar_write", moved))["result"]["event"]
        assert (changed["end"], changed["event_timezone"]) == ("2026-03-17T19:00", "Asia/Tokyo")
        assert (await call(house, run, "calendar_read", asked))["result"]["event"] == changed
        gone = await call(house, run, "calendar_write", {"action": "delete", **which})
        assert gone["result"] == {"deleted": made["event_id"]}
        assert await titles(house, run) == []
        run.say("run.completed")
        await house.story(await house.view.find(ANN, run.run_id))
        rows = [row for row in await house.store.audit(run_id=run.run_id) if row.action.startswith("calendar.")]
        assert {(row.action, row.result) for row in rows} == {
            (f"calendar.{action}", "allowed") for action in ("create", "update", "delete")
        }
        assert {row.resource for row in rows} == {made["event_id"]}


@pytest.mark.spec("http/calendar-tools")
async def test_an_overlap_is_named_and_nothing_is_written_unless_it_is_meant() -> None:
    async with a_house() as house:
        run = await a_run(house)
        await write(house, run, rrule="FREQ=DAILY")
        talk = {"title": "Talk", "start": "2026-04-07T11:30", "end": "2026-04-07T12:30"}
        refused = await write(house, run, **talk)
        assert refused["is_error"] is True
        assert "'Lunch' from 2026-04-07T12:00 to 2026-04-07T13:00 Europe/Berlin" in refused["result"]["error"]
        assert [one["start"] for one in refused["result"]["conflicts"]] == ["2026-04-07T12:00"]
        assert ("Talk", "2026-04-07T11:30") not in await titles(house, run)
        assert "is_error" not in await write(house, run, **talk | {"end": "2026-04-07T12:00"}, busy=True)
        assert "is_error" not in await write(house, run, title="Birthday", start="2026-04-07", end="", busy=False)
        meant = await write(house, run, **talk, allow_conflict=True)
        assert {one["title"] for one in meant["result"]["conflicts"]} == {"Lunch", "Talk"}


@pytest.mark.spec("http/calendar-tools")
async def test_of_runs_that_take_the_same_hour_at_once_one_gets_it() -> None:
    async with a_house() as house:
        runs = [await a_run(house) for _ in range(3)]
        answers = await asyncio.gather(*(write(house, run) for run in runs))
        assert sorted("is_error" in answer for answer in answers) == [False, True, True]
        assert len(await titles(house, runs[0])) == 1


@pytest.mark.spec("http/calendar-tools")
@pytest.mark.parametrize("zone", [None, "", "Berlin", "+01:00", "../etc/passwd"])
async def test_a_time_without_an_iana_zone_is_refused_with_a_sentence(zone: str | None) -> None:
    async with a_house() as house:
        run = await a_run(house)
        refused = await write(house, run, event_timezone=zone)
        assert refused["is_error"] is True
        assert "event_timezone" in refused["result"]["error"]
        assert "such as Europe/Berlin" in refused["result"]["error"]
        assert await titles(house, run) == []


@pytest.mark.spec("http/calendar-tools")
async def test_an_event_of_somebody_else_looks_like_none() -> None:
    async with a_house() as house:
        run, bobs = await a_run(house), await a_run(house, BOB)
        event_id = (await write(house, run))["result"]["event"]["event_id"]
        for given in ({"action": "delete"}, {"action": "update", "title": "Mine"}):
            foreign = await call(house, bobs, "calendar_write", {**given, "event_id": event_id})
            random = await call(house, bobs, "calendar_write", {**given, "event_id": "nothing"})
            assert foreign == random
            assert foreign["is_error"] is True
        assert await titles(house, bobs) == []
        assert "is_error" not in await write(house, bobs)
        assert await titles(house, run) == [("Lunch", "2026-03-16T12:00")]


async def test_a_calendar_has_an_end_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calendar, "MAX_EVENTS", 2)
    monkeypatch.setattr(calendar, "MAX_RECURRING", 1)
    async with a_house() as house:
        run = await a_run(house)
        first = await write(house, run, rrule="FREQ=YEARLY")
        full = await write(house, run, start="2026-03-17T12:00", end="", rrule="FREQ=YEARLY")
        assert "at most 1 recurring events" in full["result"]["error"]
        await write(house, run, start="2026-03-17T12:00", end="")
        full = await write(house, run, start="2026-03-18T12:00", end="")
        assert "at most 2 events; delete some first" in full["result"]["error"]
        again = {"action": "update", "event_id": first["result"]["event"]["event_id"], "title": "Feast"}
        assert (await call(house, run, "calendar_write", again))["result"]["event"]["title"] == "Feast"
