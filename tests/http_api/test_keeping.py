"""Deleting conversations, erasing messages, and cursors whose place was forgotten, over HTTP."""

import asyncio
import json
import uuid
from typing import Any

import pytest

from grants import a_grant
from host.scripted import AtRunner
from http_api.doors import Doors, a_body, assert_problem, open_doors
from paddock.host.calls.history import item_of
from paddock.host.keeping.retention import Retention
from paddock.http_api.ag_ui.connect import snapshot
from paddock.http_api.ag_ui.events import AgUiPeer
from paddock.rules.log.forgetting import DAY, Periods

pytestmark = pytest.mark.anyio

SESSIONS = "/api/v1/agent/sessions"


async def a_turn(doors: Doors, thread: str, text: str = "hello", run: str = "run-1", **options: Any) -> AtRunner:
    answer = await doors.post(a_body(thread, run, text), **options)
    assert answer.status_code == 202
    at_runner = await doors.gateway.next()
    await doors.answered(at_runner, "good ", "day")
    return at_runner


def events_of(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]


async def trim(doors: Doors, thread: str, run: AtRunner) -> None:
    """As a sweep does it to what was said up to the end of this run."""
    row = await doors.row(run.run_id)
    last = await doors.house.store.fact(thread, row.last_seq)
    assert last is not None
    house = doors.house
    later = Retention(
        house.store, house.sessions, house.keeping, clock=lambda: last.time + DAY + 1e-4, periods=Periods(1)
    )
    async with asyncio.timeout(30):
        while not (done := await later.sweep()):  # a conversation is left alone until its loop rests
            await asyncio.sleep(0.005)
    assert done == {"trimmed": 1}


@pytest.mark.spec("http/sessions-erase")
async def test_an_owner_erases_a_message_and_nobody_reads_it_again() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        run = await a_turn(doors, thread, "the code is 4711-zz")
        path = f"{SESSIONS}/{thread}/items/{run.run_id}.0/erase"
        answer = await doors.client.post(path)
        assert (answer.status_code, answer.json()) == (200, {"erased": True, "copies": 0, "artifacts": 0})
        for stream in (f"/api/v1/agent/runs/{run.run_id}/events", f"{SESSIONS}/{thread}"):
            assert "4711-zz" not in (await doors.client.get(stream)).text
        again = await doors.client.post(path, json={"artifacts": True})
        assert again.status_code == 200
        assert_problem(
            await doors.client.post(path, json={"artifacts": 1}), 422, "invalid_argument", "artifacts must be"
        )
        unknown = f"{SESSIONS}/{thread}/items/{run.run_id}.9/erase"
        assert_problem(await doors.client.post(unknown), 404, "not_found", "there is no such message")


@pytest.mark.spec("http/sessions-erase", "http/export")
async def test_an_erased_message_is_shown_as_erased_wherever_a_client_reads() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        run = await a_turn(doors, thread, "the code is 4711-zz")
        other = await a_turn(doors, thread, "and a harmless word", "run-2")
        items = (await doors.client.get(f"{SESSIONS}/{thread}/export?format=json")).json()["messages"]
        for item in items[:2]:
            assert (await doors.client.post(f"{SESSIONS}/{thread}/items/{item['id']}/erase")).status_code == 200

        day = (await doors.client.get("/api/v1/agent/history", params={"threadId": thread})).json()["messages"]
        shown = [(message["role"], message["content"], message.get("erased")) for message in day]
        kept = [("user", "and a harmless word", None), ("assistant", "good day", None)]
        assert shown == [("user", "", True), ("assistant", "", True), *kept]

        export = (await doors.client.get(f"{SESSIONS}/{thread}/export?format=json")).json()["messages"]
        assert [message.get("erased") for message in export] == [True, True, None, None]
        text = (await doors.client.get(f"{SESSIONS}/{thread}/export?format=markdown")).text
        assert text.count("*(This message was erased.)*") == 2

        events = events_of(await doors.client.get(f"/api/v1/agent/runs/{run.run_id}/events"))
        started = next(event for event in events if event["type"] == "RUN_STARTED")
        [asked, *_] = started["input"]["messages"]
        assert (asked["content"], asked["erased"]) == ("This message was erased.", True)
        [end] = [event for event in events if event["type"] == "TEXT_MESSAGE_END"]
        assert end["metadata"] == {"erased": True}
        whole = events_of(await doors.client.get(f"/api/v1/agent/runs/{other.run_id}/events"))
        assert all("erased" not in str(event) for event in whole)

        rows = await doors.house.store.transcript(thread, limit=10)
        frame = snapshot(rows, AgUiPeer("1", thread, "run", "1"))
        words = [message["content"] for message in json.loads(frame[5:])["messages"]]
        assert words == ["This message was erased."] * 2 + ["and a harmless word", "good day"]
        for_runners = [item_of(row, a_grant(), "c")["metadata"].get("erased") for row in rows]
        assert for_runners == [None, None, True, True]


@pytest.mark.spec("http/sessions-erase")
async def test_an_erased_call_of_a_tool_and_its_erased_result_say_that_they_were_erased() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        await doors.post(a_body(thread, "run-1"))
        run = await doors.gateway.next()
        run.say("tool.call.started", tool_call_id="t1", tool_name="unlock", parameters={"code": "4711-zz"})
        run.say("tool.call.completed", tool_call_id="t1", tool_name="unlock", result="opened with 4711-zz")
        run.say("tool.call.started", tool_call_id="t2", tool_name="unlock", parameters={"code": "kept"})
        run.say("tool.call.completed", tool_call_id="t2", tool_name="unlock", result="")
        run.say("run.completed")
        await doors.ended(run.run_id)
        items = (await doors.client.get(f"{SESSIONS}/{thread}/export?format=json")).json()["messages"]
        for item in items[1:3]:
            assert (await doors.client.post(f"{SESSIONS}/{thread}/items/{item['id']}/erase")).status_code == 200

        rows = await doors.house.store.transcript(thread, limit=10)
        [_, *told] = json.loads(snapshot(rows, AgUiPeer("1", thread, "run", "1"))[5:])["messages"]
        assert [message.get("content") for message in told] == ["This message was erased."] * 2 + [None, ""]
        assert told[0]["toolCalls"][0]["function"] == {"name": "unlock", "arguments": "{}"}

        events = events_of(await doors.client.get(f"/api/v1/agent/runs/{run.run_id}/events"))
        assert "4711-zz" not in str(events)
        ends = [event.get("metadata") for event in events if event["type"] == "TOOL_CALL_END"]
        assert ends == [{"erased": True}, None]
        results = [(event["content"], event.get("metadata")) for event in events if event["type"] == "TOOL_CALL_RESULT"]
        assert results == [("This message was erased.", {"erased": True}), ("", None)]


@pytest.mark.spec("http/sessions-deleted-id")
async def test_others_may_not_erase_or_delete_and_an_administrator_may() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        boss, elsewhere = await doors.key_for("boss", role="admin"), await doors.key_for("x", "other", "admin")
        run = await a_turn(doors, thread, headers=ann)
        path = f"{SESSIONS}/{thread}/items/{run.run_id}.1/erase"
        for stranger in (bob, elsewhere):
            assert_problem(await doors.client.post(path, headers=stranger), 404, "not_found", "there is no such thread")
            gone = await doors.client.delete(f"{SESSIONS}/{thread}", headers=stranger)
            assert_problem(gone, 404, "not_found", "there is no such thread")
        assert (await doors.client.post(path, headers=boss)).status_code == 200
        assert (await doors.client.delete(f"{SESSIONS}/{thread}", headers=boss)).status_code == 204
        assert_problem(
            await doors.client.get(f"{SESSIONS}/{thread}", headers=ann), 404, "not_found", "there is no such thread"
        )
        refused = await doors.post(a_body(thread, "run-2"), headers=ann)
        assert_problem(refused, 404, "not_found", "there is no such thread")


@pytest.mark.spec("http/cursor-expired")
async def test_a_reader_whose_place_was_forgotten_gets_a_snapshot_to_go_on_from() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        old = await a_turn(doors, thread, "long ago")
        await a_turn(doors, thread, "lately", "run-2")
        await trim(doors, thread, old)
        late = await doors.client.get(f"{SESSIONS}/{thread}/events", headers={"Last-Event-ID": "1.3.0"})
        assert (late.status_code, late.json()["code"]) == (410, "cursor_expired")
        snapshot = late.json()["snapshot"]
        assert [item["content"] for item in snapshot["items"]] == ["lately", "good day"]
        assert int(snapshot["cursor"]) > snapshot["trimmedThrough"] >= 3
        async with doors.client.stream("GET", f"{SESSIONS}/{thread}/events?after={snapshot['cursor']}") as on:
            assert on.status_code == 200


async def test_the_stream_of_a_run_whose_words_were_forgotten_says_so_and_tells_what_is_left() -> None:
    thread = str(uuid.uuid4())
    async with open_doors() as doors:
        old = await a_turn(doors, thread, "long ago")
        new = await a_turn(doors, thread, "lately", "run-2")
        await trim(doors, thread, old)
        for headers in ({}, {"Last-Event-ID": "1.3.0"}):
            late = await doors.client.get(f"/api/v1/agent/runs/{old.run_id}/events", headers=headers)
            assert (late.status_code, late.json()["code"]) == (410, "cursor_expired")
            assert late.json()["snapshot"]["run"]["status"] == "completed"
        kept = await doors.client.get(f"/api/v1/agent/runs/{new.run_id}/events")
        assert (kept.status_code, kept.text.count("RUN_FINISHED")) == (200, 1)
