"""Cards: what an agent hints at is compiled once, kept with its message, streamed beside it and told by history."""

import asyncio
import json
import time
import uuid
from typing import Any

import httpx
import pytest

from host.scripted import AtRunner
from http_api.doors import LOCAL_TOKEN, Doors, a_body, open_doors
from http_api.facts import events_of
from http_api.frames import split
from http_api.ordering import assert_official, assert_ordered
from paddock.rules.ui_schema.compiler import COMPILER
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


@pytest.mark.spec("ui/meta")
async def test_a_document_says_which_run_and_whose_it_belongs_to() -> None:
    async with open_doors() as doors:
        run = await a_card(doors, {**CARD, "meta": {"userId": "somebody else"}})
        meta = {
            "requestId": run.run_id,
            "traceId": run.context["runtime"]["trace_id"],
            "userId": "dev",
        }
        assert (await told(doors, run))["ui_schema"]["meta"] == meta
        [card] = [event for event in await events(doors, run) if event["type"] == "ACTIVITY_SNAPSHOT"]
        assert card["content"]["meta"] == meta


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


@pytest.mark.spec("ui/on-record")
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


@pytest.mark.spec("ui/actions")
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
    async with (
        asyncio.timeout(30),
        httpx.AsyncClient(base_url=doors.url, timeout=30) as client,
        client.stream("GET", path) as got,
    ):
        seen = b""
        async for piece in got.aiter_raw():
            seen += piece
            if until in seen:
                break
        return seen


@pytest.mark.spec("http/ui-unseen")
@pytest.mark.spec("ui/only-the-host")
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


# --- buttons and forms ------------------------------------------------------------------------------------------------

FORM = {
    "kind": "form",
    "submit": "Book",
    "fields": [
        {"name": "day", "label": "Day", "input": "date", "required": True},
        {"name": "seat", "label": "Seat", "input": "choice", "options": ["window", "aisle"]},
        {"name": "quiet", "label": "Quiet", "input": "toggle"},
        {"name": "bags", "label": "Bags", "input": "number"},
    ],
}


async def ref_in(doors: Doors, hints: Any) -> str:
    """The name under which the only action of a card is used."""
    document = (await told(doors, await a_card(doors, hints)))["ui_schema"]
    [ref] = [node["action"]["ref"] for node in nodes_of(document["root"]) if "action" in node]
    return ref


async def press(doors: Doors, ref: str, values: Any = None, **options: Any) -> httpx.Response:
    body = {} if values is None else {"json": {"values": values}}
    return await doors.client.post(f"/api/v1/agent/ui-actions/{ref}", **body, **options)


@pytest.mark.spec("http/ui-actions")
async def test_a_button_says_what_it_stands_for_in_its_conversation() -> None:
    async with open_doors() as doors:
        ref = await ref_in(doors, CHOICES)
        answer = await press(doors, ref)
        assert answer.status_code == 202, answer.text
        run = await doors.gateway.next()
        assert run.run_id == answer.json()["taskId"]
        assert run.context["input"]["text"] == "cancel the secret meeting"
        [item] = await doors.house.store.transcript(answer.json()["threadId"], limit=1)
        assert (item.role, item.content) == ("user", "cancel the secret meeting")
        rows = await doors.house.store.audit()
        assert [row.resource for row in rows if row.action == "ui.action"] == [ref]


@pytest.mark.spec("http/ui-actions")
async def test_a_form_tells_what_was_filled_in_and_only_what_it_asks_for() -> None:
    async with open_doors() as doors:
        ref = await ref_in(doors, FORM)
        for values, reason in (
            ({}, "day must be filled in"),
            ({"day": "2026-02-30"}, "day must be a day such as"),
            ({"day": "2026-03-15", "seat": "roof"}, "seat must be one of window, aisle"),
            ({"day": "2026-03-15", "bags": "2"}, "bags must be a number"),
            ({"day": "2026-03-15", "admin": True}, "there is no field 'admin'"),
        ):
            answer = await press(doors, ref, values)
            assert (answer.status_code, answer.json()["detail"][: len(reason)]) == (422, reason)
        values = {"day": "2026-03-15", "seat": "aisle", "quiet": True}
        assert (await press(doors, ref, values)).status_code == 202
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == "Book\nDay: 2026-03-15\nSeat: aisle\nQuiet: yes"
        assert run.context["adapter"]["extra"]["params"]["ui_action"]["values"] == values


@pytest.mark.spec("http/ui-actions-once")
async def test_a_button_counts_once_for_its_owner_and_for_a_day() -> None:
    later = 0.0
    async with open_doors(clock=lambda: time.time() + later) as doors:
        ref, late = await ref_in(doors, FORM), await ref_in(doors, CHOICES)
        first = await press(doors, ref, {"day": "2026-03-15"})
        again = await press(doors, ref, {"day": "2026-03-15"})
        assert (again.status_code, again.json()["taskId"]) == (202, first.json()["taskId"])
        other = await press(doors, ref, {"day": "2026-03-16"})
        assert (other.status_code, other.json()["code"]) == (409, "conflict")
        bob = await doors.key_for("bob")
        owner = {"Authorization": f"Bearer {LOCAL_TOKEN}"}
        for name, who in ((ref, bob), (ref[:-1] + "!", owner), ("nothing", owner), (f"{uuid.uuid4()}.x", owner)):
            assert (await press(doors, name, headers=who)).status_code == 404
        later = 86_400.0
        gone = await press(doors, late, headers=owner)
        assert (gone.status_code, gone.json()["detail"][:28]) == (409, "this button does not count a")


@pytest.mark.spec("http/ui-actions-answer")
async def test_an_answer_resumes_what_the_agent_asked() -> None:
    yes = {"label": "Yes", "action": {"kind": "answer", "interrupt_id": "call-1", "approved": True}}
    async with open_doors() as doors:
        assert (await press(doors, await ref_in(doors, {"kind": "choices", "items": [yes]}))).status_code == 202
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == "Yes"
        assert run.context["adapter"]["extra"]["params"]["resume"] == [
            {"interruptId": "call-1", "status": "resolved", "payload": {"approved": True}}
        ]


@pytest.mark.spec("http/ui-erased")
async def test_a_button_of_an_erased_message_is_gone() -> None:
    async with open_doors() as doors:
        run = await a_card(doors, CHOICES)
        card, thread = await told(doors, run), (await doors.row(run.run_id)).session_id
        [ref] = [node["action"]["ref"] for node in nodes_of(card["ui_schema"]["root"]) if "action" in node]
        await doors.client.post(f"/api/v1/agent/sessions/{thread}/items/{card['id']}/erase")
        assert (await press(doors, ref)).status_code == 404
