"""Titles that agents suggest: taken where there is none, never in the place of a person's, and gone with the words."""

import json
import uuid
from typing import Any

import pytest

from host.scripted import AtRunner
from http_api.doors import Doors, a_body, open_doors

pytestmark = pytest.mark.anyio
SESSIONS = "/api/v1/agent/sessions"


async def a_turn(doors: Doors, thread: str, text: str, *titles: Any) -> AtRunner:
    assert (await doors.post(a_body(thread, str(uuid.uuid4()), text))).status_code == 202
    run = await doors.gateway.next()
    run.message("done")
    for title in titles:
        run.say("action.requested", action="session.title", target={}, payload={"title": title})
    run.say("run.completed")
    await doors.ended(run.run_id)
    return run


async def title_of(doors: Doors, thread: str) -> Any:
    return (await doors.client.get(f"{SESSIONS}/{thread}")).json().get("title")


@pytest.mark.spec("http/sessions-title")
async def test_a_suggested_title_counts_where_there_is_none_and_for_nobody_else() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        run = await a_turn(doors, thread, "plan my trip", "A trip\nto\u0000 Oslo " + "x" * 100, "another")
        title = await title_of(doors, thread)
        assert (title[:16], len(title), title[-1]) == ("A trip to Oslo x", 80, "…")
        await doors.client.patch(f"{SESSIONS}/{thread}", json={"title": "Mine"})
        await a_turn(doors, thread, "and now?", "Not mine")
        assert await title_of(doors, thread) == "Mine"
        rows = [row for row in await doors.house.store.audit(run_id=run.run_id) if row.action == "session.title"]
        assert [row.result for row in rows] == ["allowed", "allowed"]
        assert (await doors.client.get("/api/v1/approvals")).json() == {"approvals": []}


@pytest.mark.spec("http/sessions-title")
async def test_a_title_without_words_is_none_and_the_run_goes_on() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        run = await a_turn(doors, thread, "hi", " \n", 7, None)
        assert await title_of(doors, thread) == "hi"
        assert (await doors.row(run.run_id)).status == "completed"


@pytest.mark.spec("http/sessions-title")
async def test_a_title_made_of_erased_words_goes_with_them_and_is_nowhere_in_the_log() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        run = await a_turn(doors, thread, "my secret plan for sunday", "my secret plan…")
        assert await title_of(doors, thread) == "my secret plan…"
        await doors.client.post(f"{SESSIONS}/{thread}/items/{run.run_id}.0/erase")
        assert await title_of(doors, thread) is None
        facts = await doors.house.store.read(thread)
        assert "secret" not in json.dumps([fact.read_payload() for fact in facts])


@pytest.mark.spec("http/sessions-title")
async def test_a_conversation_that_nobody_named_is_called_by_how_it_begins() -> None:
    """Whatever began over the API was `New conversation`, one like the other."""
    async with open_doors() as doors:
        thread, empty = str(uuid.uuid4()), str(uuid.uuid4())
        run = await a_turn(doors, thread, "plan my\ntrip to Oslo, " + "please " * 20)
        await a_turn(doors, thread, "and now?")
        name = "plan my trip to Oslo, please please please please please…"
        assert await title_of(doors, thread) == name
        assert [one["title"] for one in (await doors.client.get(SESSIONS)).json()["sessions"]] == [name]
        found = (await doors.client.get(SESSIONS, params={"query": "oslo"})).json()["sessions"]
        assert [(one["title"], "title" in one["found"]) for one in found] == [(name, False)]
        assert name in (await doors.client.get(f"{SESSIONS}/{thread}/export?format=markdown")).text.splitlines()[0]
        await doors.client.post(SESSIONS, json={"threadId": empty})
        assert await title_of(doors, empty) is None
        await doors.client.post(f"{SESSIONS}/{thread}/items/{run.run_id}.0/erase")
        assert await title_of(doors, thread) == "and now?"
