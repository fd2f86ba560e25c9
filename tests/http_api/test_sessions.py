"""Conversations over real HTTP: listed, opened, spoken in, controlled, followed by several at once."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from http_api.doors import Doors, assert_problem, open_doors
from http_api.ordering import assert_official

pytestmark = pytest.mark.anyio
SESSIONS = "/api/v1/agent/sessions"


def a_thread() -> str:
    return str(uuid.uuid4())


async def a_turn(doors: Doors, thread: str, payload: Any = "hi", **more: Any) -> str:
    """One whole turn; returns who answered."""
    answer = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": payload, **more})
    assert answer.status_code == 202, answer.text
    run = await doors.gateway.next()
    await doors.answered(run, "fine")
    return run.context["conversation"]["bot_id"]


async def control(doors: Doors, thread: str, subtype: str, **more: Any) -> httpx.Response:
    return await doors.client.post(f"{SESSIONS}/{thread}/control", json={"subtype": subtype, **more})


class Viewer:
    """Reads a stream event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()
        self.cursor = ""

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name == "id":
                    self.cursor = value
                elif name == "data":
                    return json.loads(value)
        raise AssertionError("the stream ended")

    async def until(self, subtype: str) -> dict[str, Any]:
        while (event := await self.next())["subtype"] != subtype:
            pass
        return event


@asynccontextmanager
async def viewing(doors: Doors, thread: str, query: str = "", **headers: str) -> AsyncGenerator[Viewer]:
    async with doors.client.stream("GET", f"{SESSIONS}/{thread}/events{query}", headers=headers) as response:
        assert response.status_code == 200
        yield Viewer(response)


@pytest.mark.spec("http/sessions-open")
@pytest.mark.spec("http/sessions-look")
async def test_a_conversation_is_opened_and_looked_at() -> None:
    async with open_doors() as doors:
        opened = await doors.client.post(SESSIONS, json={"title": "Taxes"})
        assert opened.status_code == 201
        seen = opened.json()
        assert seen.items() >= {"title": "Taxes", "agentsInSession": ["one"], "activeAgentId": "one"}.items()
        assert (seen["archived"], seen["closed"], seen["inflight"], seen["transactions"]) == (False, False, {}, {})
        again = await doors.client.post(SESSIONS, json={"threadId": seen["threadId"]})
        assert again.status_code == 200
        await doors.client.post(f"{SESSIONS}/{seen['threadId']}/messages", json={"payload": "hi"})
        busy = (await doors.client.get(f"{SESSIONS}/{seen['threadId']}")).json()
        [turn] = busy["inflight"].values()
        assert (turn["targetAgentId"], turn["requestedBy"], turn["waiting"]) == ("one", "user:dev", ["INPUT_ACK"])
        assert busy["userInterruptible"]
        async with viewing(doors, seen["threadId"], f"?format=ag-ui&after={busy['inflightCursor']}") as viewer:
            began = await viewer.next()
        assert (began["type"], began["runId"]) == ("RUN_STARTED", turn["turnId"])


@pytest.mark.spec("http/sessions-list")
@pytest.mark.spec("http/sessions-change")
async def test_conversations_are_listed_named_and_archived() -> None:
    async with open_doors() as doors:
        threads = [(await doors.client.post(SESSIONS, json={})).json()["threadId"] for _ in range(3)]
        changed = await doors.client.patch(f"{SESSIONS}/{threads[0]}", json={"title": "Old", "archived": True})
        assert changed.json().items() >= {"title": "Old", "archived": True}.items()
        await doors.client.patch(f"{SESSIONS}/{threads[0]}", json={"title": "Older"})
        page = (await doors.client.get(SESSIONS, params={"limit": 2})).json()
        assert [entry["threadId"] for entry in page["sessions"]] == [threads[2], threads[1]]
        rest = (await doors.client.get(SESSIONS, params={"before": page["next"]})).json()
        assert [(entry["title"], entry["archived"]) for entry in rest["sessions"]] == [("Older", True)]
        assert rest["next"] is None
        hidden = (await doors.client.get(SESSIONS, params={"archived": "false"})).json()
        assert len(hidden["sessions"]) == 2
        bad = await doors.client.get(SESSIONS, params={"limit": 0})
        assert_problem(bad, 422, "invalid_argument", "limit must be")
        long = await doors.client.patch(f"{SESSIONS}/{threads[0]}", json={"title": "x" * 201})
        assert_problem(long, 422, "invalid_argument", "a title may have")


@pytest.mark.spec("http/sessions-search")
async def test_conversations_are_found_by_title_and_by_what_was_said_in_pages() -> None:
    async with open_doors() as doors:
        threads = [a_thread() for _ in range(3)]
        for thread, words in zip(threads, ("Weather in Oslo", "我们谈谈预算表", "And the weather?"), strict=True):
            await a_turn(doors, thread, words)
        await doors.client.patch(f"{SESSIONS}/{threads[1]}", json={"title": "Weather money"})
        page = (await doors.client.get(SESSIONS, params={"query": "weath", "limit": 2})).json()
        assert [entry["threadId"] for entry in page["sessions"]] == [threads[2], threads[1]]
        assert page["complete"] is True
        last, named = (entry["found"] for entry in page["sessions"])
        assert (last.keys(), last["message"]["role"]) == ({"message"}, "user")
        assert [(piece["text"], piece["hit"]) for piece in last["message"]["snippet"]] == [
            *(("And the ", False), ("weath", True), ("er?", False)),
        ]
        assert named == {"title": [{"text": "Weath", "hit": True}, {"text": "er money", "hit": False}]}
        rest = (await doors.client.get(SESSIONS, params={"query": "weath", "before": page["next"]})).json()
        assert ([entry["threadId"] for entry in rest["sessions"]], rest["next"]) == ([threads[0]], None)
        await doors.client.patch(f"{SESSIONS}/{threads[1]}", json={"archived": True})
        for archived, found in (("true", [threads[1]]), ("false", [])):
            params = {"query": "预算", "archived": archived}
            shown = (await doors.client.get(SESSIONS, params=params)).json()["sessions"]
            assert [entry["threadId"] for entry in shown] == found


@pytest.mark.spec("http/sessions-search")
async def test_nobody_finds_the_conversations_of_somebody_else() -> None:
    async with open_doors() as doors:
        ann, bob = await doors.key_for("ann"), await doors.key_for("bob")
        thread = a_thread()
        said = {"payload": "a secret needle"}
        sent = await doors.client.post(f"{SESSIONS}/{thread}/messages", json=said, headers=ann)
        assert sent.status_code == 202
        await doors.answered(await doors.gateway.next(), "a needle, yes")
        for who, found in ((ann, [thread]), (bob, [])):
            answer = await doors.client.get(SESSIONS, params={"query": "needle"}, headers=who)
            assert [entry["threadId"] for entry in answer.json()["sessions"]] == found
        assert (await doors.client.get(SESSIONS, params={"query": "needle"})).status_code == 401


@pytest.mark.spec("http/sessions-search")
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("", "query is empty"),
        ("  ", "query is empty"),
        ("x" * 201, "query may have at most 200"),
        (" ".join(map(str, range(33))), "a query may have at most 32 words"),
    ],
)
async def test_a_search_that_cannot_be_meant_says_why(query: str, sentence: str) -> None:
    async with open_doors() as doors:
        answer = await doors.client.get(SESSIONS, params={"query": query})
        assert_problem(answer, 422, "invalid_argument", sentence)


@pytest.mark.spec("http/sessions-delete")
async def test_a_conversation_is_deleted_when_nothing_goes_on_in_it() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": "hi"})
        run = await doors.gateway.next()
        assert_problem(await doors.client.delete(f"{SESSIONS}/{thread}"), 409, "conflict", "something is still")
        await doors.answered(run, "fine")
        assert (await doors.client.delete(f"{SESSIONS}/{thread}")).status_code == 204
        assert_problem(await doors.client.get(f"{SESSIONS}/{thread}"), 404, "not_found", "there is no such thread")
        assert (await doors.client.get(f"/api/v1/agent/runs/{run.run_id}")).status_code == 404


@pytest.mark.spec("http/sessions-deleted-stream")
@pytest.mark.parametrize("form", ["messages", "ag-ui"])
async def test_whoever_follows_a_conversation_is_told_that_it_was_deleted(form: str) -> None:
    async with open_doors() as doors:
        thread = a_thread()
        await a_turn(doors, thread)
        async with viewing(doors, thread, f"?format={form}") as viewer:
            assert (await doors.client.delete(f"{SESSIONS}/{thread}")).status_code == 204
            told = await viewer.next()
            with pytest.raises(AssertionError, match="the stream ended"):
                await viewer.next()
        assert viewer.cursor == "", "nothing to go on from"
        if form == "messages":
            assert (told["event"], told["subtype"], told["target"]) == ("EVENT", "SESSION_DELETED", "FRONTEND")
            assert told["session_id"] == thread
        else:
            assert (told["type"], told["name"]) == ("CUSTOM", "paddock.session.session_deleted")


@pytest.mark.spec("http/sessions-deleted-stream")
async def test_a_reader_that_did_not_hear_of_it_finds_out_with_the_next_keep_alive() -> None:
    async with open_doors(keep_alive=0.05) as doors:
        thread = a_thread()
        await a_turn(doors, thread)
        async with viewing(doors, thread) as viewer:
            doors.house.tails.gone = lambda _thread: None  # pyright: ignore[reportAttributeAccessIssue] - the word is lost
            assert (await doors.client.delete(f"{SESSIONS}/{thread}")).status_code == 204
            assert (await viewer.next())["subtype"] == "SESSION_DELETED"


@pytest.mark.spec("http/sessions-messages")
async def test_a_message_is_text_or_a_choice_and_may_ask_for_an_agent() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        assert await a_turn(doors, thread, "hello") == "one"
        assert await a_turn(doors, thread, "and you?", mentioned_agent_id="two") == "two"
        await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": {"choice": "tea"}, "agentId": "one"})
        run = await doors.gateway.next()
        assert run.context["input"]["text"] == '{"choice":"tea"}'
        assert run.context["adapter"]["extra"]["params"] == {"payload": {"choice": "tea"}}
        unknown = await doors.client.post(
            f"{SESSIONS}/{thread}/messages", json={"payload": "zoe?", "mentioned_agent_id": "zoe"}
        )
        assert_problem(unknown, 404, "not_found", "there is no agent 'zoe'; known are: one, two")
        empty = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": ""})
        assert_problem(empty, 422, "invalid_argument", "payload must be")
        both = await doors.client.post(
            f"{SESSIONS}/{thread}/messages", json={"payload": "x", "agent_id": "one", "mentioned_agent_id": "two"}
        )
        assert_problem(both, 422, "invalid_argument", "one agent answers")


@pytest.mark.spec("http/sessions-messages")
async def test_the_same_message_under_the_same_name_is_one_run() -> None:
    async with open_doors() as doors:
        thread, body = a_thread(), {"payload": "hi", "runId": "r1"}
        first = await doors.client.post(f"{SESSIONS}/{thread}/messages", json=body)
        assert (await doors.client.post(f"{SESSIONS}/{thread}/messages", json=body)).json() == first.json()
        other = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={**body, "payload": "ho"})
        assert_problem(other, 409, "conflict", "runId 'r1' was already used")


@pytest.mark.spec("http/sessions-mention")
@pytest.mark.parametrize(
    "asking",
    [
        {"payload": {"text": "hello", "mentioned_agent_id": "two"}},
        {"payload": {"text": "hello", "mentionedAgentId": "two"}},
        {"payload": "hello", "metadata": {"subtype": "MENTION", "mentioned_agent_id": "two"}},
        {"payload": "@two hello", "metadata": {"subtype": "MENTION"}},
        {"payload": {"text": "hello", "mentioned_agent_id": "two"}, "mentioned_agent_id": "two"},
    ],
    ids=["payload", "payload, camelCase", "metadata", "words", "twice alike"],
)
async def test_a_message_mentions_an_agent_in_every_way_the_session_knows(asking: dict[str, Any]) -> None:
    async with open_doors() as doors:
        thread = a_thread()
        assert (await doors.client.post(f"{SESSIONS}/{thread}/messages", json=asking)).status_code == 202
        run = await doors.gateway.next()
        assert run.context["conversation"]["bot_id"] == "two"
        assert (await doors.client.get(f"{SESSIONS}/{thread}")).json()["activeAgentId"] == "two"
        await doors.answered(run, "ok")


@pytest.mark.spec("http/sessions-mention")
async def test_a_mention_that_names_nobody_or_two_is_refused() -> None:
    async with open_doors() as doors:
        path = f"{SESSIONS}/{a_thread()}/messages"
        unknown = {"payload": {"text": "x", "mentioned_agent_id": "zoe"}}
        assert_problem(await doors.client.post(path, json=unknown), 404, "not_found", "there is no agent 'zoe'")
        two = {"payload": {"text": "x", "mentioned_agent_id": "one"}, "agent_id": "two"}
        assert_problem(await doors.client.post(path, json=two), 422, "invalid_argument", "one agent answers")
        wrong = {"payload": {"text": "x", "mentioned_agent_id": 7}}
        assert_problem(await doors.client.post(path, json=wrong), 422, "invalid_argument", "mentioned_agent_id must be")
        assert_problem(
            await doors.client.post(path, json={"payload": "x", "metadata": "MENTION"}),
            422,
            "invalid_argument",
            "metadata must be an object",
        )


@pytest.mark.spec("http/sessions-mention")
async def test_a_leading_name_asks_for_that_agent() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        assert await a_turn(doors, thread, "@two hello") == "two"
        assert await a_turn(doors, thread, "@nobody hello") == "two"


@pytest.mark.spec("http/cursor")
async def test_a_cursor_that_a_live_conversation_has_not_come_to_is_refused_at_once() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        accepted = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": "hi"})
        run = await doors.gateway.next()
        run.delta("well")
        await doors.recorded(run.run_id, "well")
        events = f"/api/v1/agent/runs/{accepted.json()['taskId']}/events"
        for path in (f"{events}?after=1.99999.0", f"{SESSIONS}/{thread}/events?after=1.99999.0"):
            assert_problem(await doors.client.get(path), 422, "invalid_argument", "this cursor lies beyond the end")
        path = f"{SESSIONS}/{thread}/events?after=99999"
        assert_problem(await doors.client.get(path), 422, "invalid_argument", "this cursor lies beyond the end")
        async with viewing(doors, thread, "?after="):
            await doors.answered(run, "well")
        assert b"RUN_FINISHED" in (await doors.client.get(f"{events}?after=")).content


@pytest.mark.spec("http/sessions-control")
async def test_whether_an_invited_agent_becomes_active_is_said_with_true_or_false() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        await control(doors, thread, "SESSION_OPEN")
        await doors.house.until(thread, "EVENT:SESSION_OPENED")
        for wrong in ("yes", 1, None):
            answer = await control(doors, thread, "INVITE_AGENT", payload={"agent_id": "two", "activate": wrong})
            assert_problem(answer, 422, "invalid_argument", "payload.activate must be true or false")
        right = await control(doors, thread, "INVITE_AGENT", payload={"agent_id": "two", "activate": True})
        assert right.status_code == 202


@pytest.mark.spec("http/sessions-control")
async def test_every_control_of_a_front_end_is_taken() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        opened = await control(doors, thread, "SESSION_OPEN")
        assert (opened.status_code, opened.json()["said"][0]) == (202, "CONTROL:SESSION_OPEN")
        await doors.house.until(thread, "EVENT:SESSION_OPENED")
        invited = await control(doors, thread, "INVITE_AGENT", payload={"agent_id": "two"})
        assert invited.json()["txId"] == (await doors.house.until(thread, "EVENT:AGENT_ADDED")).tx_id
        assert (await control(doors, thread, "SWITCH_AGENT", payload={"agent_id": "two"})).status_code == 202
        repeated = await control(doors, thread, "SWITCH_AGENT", payload={"agent_id": "two"})
        assert repeated.json()["note"] == "already_active"
        assert (await control(doors, thread, "CANCEL")).json()["said"] == ["EVENT:NO_ACTIVE_SPEAKING"]
        assert (await control(doors, thread, "INTERRUPT")).status_code == 202
        nothing = await control(doors, thread, "HANDOVER_CONFIRM")
        assert_problem(nothing, 409, "conflict", "no handover waits")
        assert_problem(await control(doors, thread, "HANDOVER_REJECT"), 409, "conflict", "no handover waits")
        assert (await control(doors, thread, "REMOVE_AGENT", payload={"agent_id": "two"})).status_code == 202
        await doors.house.until(thread, "EVENT:AGENT_REMOVED")
        gone = await control(doors, thread, "REMOVE_AGENT", payload={"agent_id": "two"})
        assert_problem(gone, 404, "not_found", "Agent 'two' is not in this session; here are: one")
        assert (await control(doors, thread, "SESSION_CLOSE")).status_code == 202
        await doors.house.until(thread, "EVENT:SESSION_CLOSED")
        closed = await control(doors, thread, "SWITCH_AGENT", payload={"agent_id": "one"})
        assert_problem(closed, 409, "session_closed", "this conversation is closed")
        said = await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": "hi"})
        assert_problem(said, 409, "session_closed", "this conversation is closed")
        assert_problem(await control(doors, thread, "DANCE"), 422, "invalid_argument", "there is no control 'DANCE'")
        missing = await control(doors, thread, "INVITE_AGENT")
        assert_problem(missing, 422, "invalid_argument", "INVITE_AGENT needs payload.agent_id")


@pytest.mark.spec("http/foreign-is-unknown")
async def test_a_foreign_conversation_is_an_unknown_one_on_every_way_in() -> None:
    async with open_doors() as doors:
        thread = (await doors.client.post(SESSIONS, json={})).json()["threadId"]
        ann = await doors.key_for("ann")
        mine = (await doors.client.post(SESSIONS, json={}, headers=ann)).json()["threadId"]
        one = f"{SESSIONS}/{thread}"
        answers = [
            await doors.client.get(one, headers=ann),
            await doors.client.patch(one, json={"title": "mine"}, headers=ann),
            await doors.client.delete(one, headers=ann),
            await doors.client.post(f"{one}/messages", json={"payload": "hi"}, headers=ann),
            await doors.client.post(f"{one}/control", json={"subtype": "SESSION_CLOSE"}, headers=ann),
            await doors.client.post(f"{one}/control", json={"subtype": "SESSION_OPEN"}, headers=ann),
            await doors.client.get(f"{one}/events", headers=ann),
        ]
        for answer in answers:
            assert_problem(answer, 404, "not_found", "there is no such thread")
        listed = (await doors.client.get(SESSIONS, headers=ann)).json()["sessions"]
        assert [entry["threadId"] for entry in listed] == [mine]


@pytest.mark.spec("http/sessions-events")
@pytest.mark.spec("http/sessions-viewers")
async def test_several_viewers_see_the_same_and_one_that_comes_back_gets_what_it_missed() -> None:
    async with open_doors() as doors:
        thread = (await doors.client.post(SESSIONS, json={})).json()["threadId"]
        async with viewing(doors, thread) as first, viewing(doors, thread, "?after=0") as second:
            assert (await second.next())["subtype"] == "SESSION_OPENED"
            await a_turn(doors, thread)
            seen = [await first.until("TURN_ACCEPTED"), await first.until("AGENT_STARTED"), await first.until("FINAL")]
            assert [await second.until(event["subtype"]) for event in seen] == seen
            cursor = first.cursor
        await a_turn(doors, thread, "again", agentId="two")
        async with viewing(doors, thread, **{"Last-Event-ID": cursor}) as back:
            said = await back.next()
            assert (said["event"], said["payload"]["text"]) == ("USER_INPUT", "again")
            added = await back.next()
            assert (added["subtype"], added["payload"]) == ("AGENT_ADDED", {"agent_id": "two"})
            switched = await back.next()
            assert (switched["event"], switched["subtype"], switched["target"]) == (
                "CONTROL",
                "SWITCH_AGENT",
                "BROADCAST",
            )
            final = await back.until("FINAL")
            assert (final["session_id"], final["sender"]) == (thread, "agent:two")


@pytest.mark.spec("http/sessions-events")
async def test_the_stream_tells_a_handover_and_both_ways_it_can_end() -> None:
    async with open_doors() as doors:
        thread = a_thread()
        await doors.client.post(f"{SESSIONS}/{thread}/messages", json={"payload": "my taxes"})
        run = await doors.gateway.next()
        async with viewing(doors, thread, "?after=0") as viewer:
            payload = {"target_agent_id": "two", "reason": "taxes", "summary": "rent is known"}
            run.say("action.requested", action="session.handover", target={}, payload=payload)
            prompt = await viewer.until("HANDOVER_UI_PROMPT")
            assert prompt["payload"]["target_agent_id"] == "two"
            answer = await control(doors, thread, "HANDOVER_REJECT", txId=prompt["tx_id"])
            assert answer.status_code == 202
            assert (await viewer.until("HANDOVER_REJECT"))["payload"]["reason"] == "user"
            run.say("action.requested", action="session.handover", target={}, payload=payload)
            await viewer.until("HANDOVER_UI_PROMPT")
            await control(doors, thread, "HANDOVER_CONFIRM")
            run.say("run.completed")
            switched = await viewer.until("SWITCH_AGENT")
            assert switched["payload"]["reason"] == "handover"
            assert (await viewer.until("TURN_ACCEPTED"))["payload"]["parent_turn_id"] == run.run_id


@pytest.mark.spec("http/sessions-events-ag-ui")
async def test_the_stream_speaks_ag_ui_when_asked_to() -> None:
    async with open_doors() as doors:
        thread = (await doors.client.post(SESSIONS, json={})).json()["threadId"]
        async with viewing(doors, thread, "?format=ag-ui") as viewer:
            await a_turn(doors, thread, agentId="two")
            events = []
            while not events or events[-1]["type"] != "RUN_FINISHED":
                events.append(await viewer.next())
        kinds = [event["type"] for event in events]
        assert kinds[0] == "RUN_STARTED"
        assert "TEXT_MESSAGE_CONTENT" in kinds
        custom = {event["name"]: event["value"] for event in events if event["type"] == "CUSTOM"}
        assert custom["paddock.session.switch_agent"]["payload"]["to"] == "two"
        assert custom["paddock.session.agent_added"]["payload"] == {"agent_id": "two"}
        turn = events[0]["runId"]
        told = [event for event in events if not event.get("name", "").startswith("paddock.session.")]
        assert {event["metadata"]["turnId"] for event in told} == {turn}
        for event in events:
            assert_official(event)
        bad = await doors.client.get(f"{SESSIONS}/{thread}/events?format=xml")
        assert_problem(bad, 422, "invalid_argument", "format must be")
