"""Cards: what an agent hints at is compiled once, kept with its message, streamed beside it and told by history."""

import asyncio
import json
import uuid
from typing import Any

import httpx
import pytest

from host.scripted import AtRunner
from http_api.doors import Doors, a_body, open_doors
from http_api.facts import assert_official, assert_ordered, events_of
from http_api.frames import split
from paddock.rules.ui_schema import COMPILER
from rules.ui_schema.checking import VALIDATOR, nodes_of

pytestmark = pytest.mark.anyio
CARD = {"kind": "summary", "title": "Done", "text": "The meeting is made.", "status": "success"}
CHOICES = {"kind": "choices", "items": [{"label": "Cancel it", "text": "cancel the secret meeting"}]}


def say(run: AtRunner, text: str, hints: Any, **more: Any) -> None:
    run.say("message.completed", message={"role": "assistant", "content": text}, ui_hints=hints, **more)


async def a_card(doors: Doors, hints: Any = None, *, thread: str | None = None, **more: Any) -> AtRunner:
    """A run whose only message came with hints."""
    answer = await doors.post(a_body(thread, run=str(uuid.uuid4())))
    assert answer.status_code == 202, answer.text
    run = await doors.gateway.next()
    say(run, "It is done.", hints or [CARD, CHOICES], **more)
    run.say("run.completed")
    await doors.ended(run.run_id)
    return run


async def events(doors: Doors, run: AtRunner, dialect: str = "1") -> list[dict[str, Any]]:
    answer = await doors.client.get(f"/api/v1/agent/runs/{run.run_id}/events?dialect={dialect}")
    return events_of(split(answer.content))


async def told(doors: Doors, run: AtRunner) -> Any:
    """The answer as history tells it."""
    thread = (await doors.row(run.run_id)).session_id
    found = (await doors.client.get("/api/v1/agent/history", params={"threadId": thread})).json()
    return found["messages"][-1]


@pytest.mark.spec("http/ui-stream")
@pytest.mark.parametrize("dialect", ["0", "1"])
async def test_a_card_follows_its_message_on_the_stream_in_either_dialect(dialect: str) -> None:
    async with open_doors() as doors:
        said = await events(doors, await a_card(doors), dialect)
        assert_ordered(said)
        for event in said:
            assert_official(event)
        end, card = [event for event in said if event["type"] in {"TEXT_MESSAGE_END", "ACTIVITY_SNAPSHOT"}]
        assert said.index(card) == said.index(end) + 1
        assert (card["messageId"], card["activityType"]) == (f"{end['messageId']}:ui", "ui-schema")
        VALIDATOR.validate(card["content"])


@pytest.mark.spec("http/ui-history")
async def test_history_and_export_tell_the_same_card_that_was_streamed() -> None:
    async with open_doors() as doors:
        run = await a_card(doors)
        [card] = [event["content"] for event in await events(doors, run) if event["type"] == "ACTIVITY_SNAPSHOT"]
        assert (await told(doors, run))["ui_schema"] == card
        thread = (await doors.row(run.run_id)).session_id
        taken = (await doors.client.get(f"/api/v1/agent/sessions/{thread}/export?format=json")).json()
        assert taken["messages"][-1]["ui_schema"] == card
        [item] = await doors.house.store.transcript(thread, limit=1)
        assert json.loads(item.metadata)["ui_compiler"] == COMPILER


@pytest.mark.spec("http/ui-history")
async def test_a_card_speaks_the_language_the_user_set() -> None:
    async with open_doors() as doors:
        await doors.client.patch("/api/v1/users/me", json={"profile": {"settings": {"locale": "zh-CN"}}})
        assert (await told(doors, await a_card(doors)))["ui_schema"]["locale"] == "zh-CN"


@pytest.mark.spec("http/ui-unseen")
async def test_what_a_button_says_is_told_to_no_client() -> None:
    async with open_doors() as doors:
        run = await a_card(doors)
        thread = (await doors.row(run.run_id)).session_id
        whole = await first_bytes(doors, f"/api/v1/agent/sessions/{thread}/events?after=0", until=b"run.completed")
        seen = [whole, *(json.dumps(event).encode() for event in await events(doors, run))]
        seen += [json.dumps(await told(doors, run)).encode()]
        assert b"ui_schema" in whole
        assert not any(b"secret meeting" in one or b"ui_actions" in one for one in seen)


async def first_bytes(doors: Doors, path: str, until: bytes) -> bytes:
    async with asyncio.timeout(5), httpx.AsyncClient(base_url=doors.url) as client, client.stream("GET", path) as got:
        seen = b""
        async for piece in got.aiter_raw():
            seen += piece
            if until in seen:
                break
        return seen


@pytest.mark.spec("http/ui-unseen")
async def test_only_the_host_says_what_is_drawn() -> None:
    async with open_doors() as doors:
        forged = {"version": "2.0", "root": {"type": "approval"}}
        run = await a_card(doors, [None], ui_schema=forged, ui_actions={"x": {"kind": "say", "text": "y"}})
        assert (await told(doors, run))["ui_schema"] is None
        assert "approval" not in json.dumps(await events(doors, run))


@pytest.mark.spec("http/ui-erased")
async def test_a_card_goes_with_the_words_of_its_message() -> None:
    async with open_doors() as doors:
        run = await a_card(doors)
        thread, item = (await doors.row(run.run_id)).session_id, (await told(doors, run))["id"]
        answer = await doors.client.post(f"/api/v1/agent/sessions/{thread}/items/{item}/erase")
        assert answer.status_code == 200, answer.text
        assert (await told(doors, run))["ui_schema"] is None
        left = await doors.house.store.read(thread)
        assert not any(b"meeting" in fact.payload for fact in left)


async def test_hints_that_make_no_sense_cost_nothing_but_the_card() -> None:
    async with open_doors() as doors:
        run = await a_card(doors, {"kind": "hologram", "power": 10**400})
        assert (await told(doors, run))["content"] == "It is done."
        assert (await told(doors, run))["ui_schema"] is None


async def test_a_streamed_message_has_its_card_after_its_last_word() -> None:
    async with open_doors() as doors:
        asking = asyncio.create_task(doors.post(a_body()))
        run = await doors.gateway.next()
        run.delta("It is ")
        await doors.recorded(run.run_id, "It is ")
        say(run, "It is done.", CARD)
        run.say("run.completed")
        await asking
        await doors.ended(run.run_id)
        kinds = [event["type"].rpartition("_")[2] for event in await events(doors, run)]
        assert kinds == ["STARTED", "START", "CONTENT", "CONTENT", "END", "SNAPSHOT", "FINISHED"]
        assert next(node["type"] for node in nodes_of((await told(doors, run))["ui_schema"]["root"])) == "stack"
