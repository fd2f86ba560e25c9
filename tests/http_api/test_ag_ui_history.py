"""Whole histories at the AG-UI door: what is new is asked, what we know stays ours, another course is a branch."""

import asyncio
import uuid
from typing import Any

import httpx
import pytest

from host.scripted import AtRunner
from http_api.doors import Doors, assert_problem, open_doors
from http_api.ordering import assert_ordered, events_in
from paddock.rules.rows.rows import TranscriptRow

pytestmark = pytest.mark.anyio
AG_UI = "/api/v1/agent/ag-ui"


def user(name: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": name, "role": "user", "content": name if text is None else text, **more}


ASKS = {"Accept": "text/event-stream"}


class Chat:
    """A client that keeps its own messages, as they all do."""

    def __init__(self, doors: Doors, thread: str = "main") -> None:
        self.doors = doors
        self.thread = thread
        self.messages: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []

    def body(self, **changes: Any) -> dict[str, Any]:
        return {
            "threadId": self.thread,
            "runId": str(uuid.uuid4()),
            "protocolVersion": "1.0",
            "messages": self.messages,
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
            **changes,
        }

    async def begin(self, **changes: Any) -> tuple[AtRunner, asyncio.Task[httpx.Response]]:
        asking = asyncio.create_task(self.doors.client.post(AG_UI, json=self.body(**changes), headers=ASKS))
        started = asyncio.create_task(self.doors.gateway.next())
        await asyncio.wait([asking, started], return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            raise AssertionError(asking.result().text)
        return await started, asking

    async def say(self, name: str, answer: str = "ok", **changes: Any) -> AtRunner:
        """One more turn, and the answer in the client's list as the client would put it there."""
        self.messages.append(user(name))
        return await self.answered(answer, **changes)

    async def answered(self, answer: str = "ok", **changes: Any) -> AtRunner:
        run, asking = await self.begin(**changes)
        await self.doors.answered(run, answer)
        self.take((await asking).content)
        return run

    def take(self, body: bytes) -> None:
        self.events = events_in(body)
        assert_ordered(self.events)
        for event in self.events:
            if event["type"] == "MESSAGES_SNAPSHOT":
                self.messages = list(event["messages"])
            elif event["type"] == "TEXT_MESSAGE_START":
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            elif event["type"] == "TEXT_MESSAGE_CONTENT":
                self.messages[-1]["content"] += event["delta"]

    @property
    def snapshots(self) -> list[list[dict[str, Any]]]:
        return [event["messages"] for event in self.events if event["type"] == "MESSAGES_SNAPSHOT"]

    async def items(self) -> list[TranscriptRow]:
        sessions = (await self.doors.client.get("/api/v1/agent/sessions")).json()["sessions"]
        thread = sessions[0]["threadId"]
        return list(await self.doors.house.store.transcript(thread, newest_first=False))

    async def said(self) -> list[str]:
        return [item.content for item in await self.items()]


@pytest.mark.spec("http/ag-ui-history")
async def test_turn_after_turn_only_what_is_new_enters_the_conversation_and_nothing_is_told_twice() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        for name in ("u1", "u2", "u3"):
            await chat.say(name, f"re {name}")
            assert chat.snapshots == []
        assert await chat.said() == ["u1", "re u1", "u2", "re u2", "u3", "re u3"]


@pytest.mark.spec("http/ag-ui-history")
async def test_what_we_know_counts_as_we_know_it() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1", "the truth")
        chat.messages[1]["content"] = "a lie"
        await chat.say("u2")
        assert await chat.said() == ["u1", "the truth", "u2", "ok"]


@pytest.mark.spec("http/ag-ui-import")
async def test_the_history_of_a_new_thread_is_taken_over_and_marked_as_the_clients() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [
            {"id": "s", "role": "system", "content": "never kept"},
            user("u1", "first"),
            {
                "id": "a1",
                "role": "assistant",
                "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q":1}'}}],
            },
            {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "grey"},
            {"id": "a2", "role": "assistant", "content": "it is grey"},
        ]
        run = await chat.say("u2", "indeed")
        items = await chat.items()
        assert [(item.role, item.item_type, item.content) for item in items] == [
            ("user", "message", "first"),
            ("assistant", "tool_call", "look"),
            ("tool", "tool_result", "grey"),
            ("assistant", "message", "it is grey"),
            ("user", "message", "u2"),
            ("assistant", "message", "indeed"),
        ]
        assert [b'"client_supplied":true' in item.metadata for item in items] == [True] * 4 + [False] * 2
        assert run.context["context"]["has_history_before"] is True
        await chat.say("u3")
        assert (await chat.said())[-2:] == ["u3", "ok"]
        assert len(await chat.items()) == 8


@pytest.mark.spec("http/ag-ui-branches")
async def test_an_edit_leaves_what_followed_behind_and_the_client_is_told_how_things_stand() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        for name in ("u1", "u2", "u3"):
            await chat.say(name, f"re {name}")
        chat.messages = chat.messages[:2]
        await chat.say("u9", "another course")
        assert await chat.said() == ["u1", "re u1", "u9", "another course"]
        assert [message["content"] for message in chat.snapshots[0]] == ["u1", "re u1", "u9"]
        await chat.say("u10")
        assert chat.snapshots == []


@pytest.mark.spec("http/ag-ui-branches")
@pytest.mark.parametrize("changes", [{}, {"protocolVersion": None}], ids=["1.0", "0.x"])
async def test_an_edit_of_the_first_message_begins_the_conversation_anew(changes: dict[str, Any]) -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        for name in ("u1", "u2"):
            await chat.say(name, f"re {name}", **changes)
        chat.messages = []
        run = await chat.say("u9", "another beginning", **changes)
        assert run.context["input"]["text"] == "u9"
        assert await chat.said() == ["u9", "another beginning"]
        assert [message["content"] for message in chat.snapshots[0]] == ["u9"]
        await chat.say("u10", **changes)
        assert chat.snapshots == []
        assert await chat.said() == ["u9", "another beginning", "u10", "ok"]


@pytest.mark.spec("http/ag-ui-history")
@pytest.mark.parametrize("by_hand", [{"Accept": "*/*"}, "tools"], ids=["any answer will do", "no whole input"])
async def test_a_client_that_is_no_library_and_sends_only_what_is_new_loses_nothing(by_hand: Any) -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1", "re u1")
        body = chat.body(messages=[user("u2")])
        headers = by_hand if isinstance(by_hand, dict) else ASKS
        if isinstance(by_hand, str):
            del body[by_hand]
        asking = asyncio.create_task(doors.client.post(AG_UI, json=body, headers=headers))
        await doors.answered(await doors.gateway.next(), "re u2")
        assert (await asking).status_code == 200
        assert await chat.said() == ["u1", "re u1", "u2", "re u2"]


@pytest.mark.spec("http/ag-ui-branches")
async def test_an_edit_of_the_first_message_replaces_a_history_that_was_brought_along() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [user("u1"), {"id": "a1", "role": "assistant", "content": "re u1"}]
        await chat.say("u2", "re u2")
        chat.messages = [user("u9")]
        await chat.answered("another beginning")
        assert await chat.said() == ["u9", "another beginning"]


@pytest.mark.spec("http/ag-ui-unseen")
async def test_an_edit_of_the_first_message_leaves_what_came_another_way_unless_the_client_says_so() -> None:
    async with open_doors() as doors:
        chat = Chat(doors, str(uuid.uuid4()))
        body = {
            "threadId": chat.thread,
            "runId": "r",
            "messages": [user("from a button")],
            "forwardedProps": {"runtime_mode": "chat"},
        }
        assert (await doors.client.post("/api/v1/agent/runs", json=body)).status_code == 202
        await doors.answered(await doors.gateway.next(), "pressed")
        await chat.say("u1", "re u1")
        assert chat.snapshots == []
        chat.messages = []
        await chat.say("u2", "re u2")
        assert await chat.said() == ["from a button", "pressed", "u2", "re u2"]
        chat.messages = []
        await chat.say("u3", "re u3", forwardedProps={"paddock": {"unseen": "leave"}})
        assert await chat.said() == ["u3", "re u3"]


@pytest.mark.spec("http/ag-ui-branches")
async def test_a_question_that_came_another_way_stays_whatever_a_client_does_not_show() -> None:
    async with open_doors() as doors:
        chat = Chat(doors, str(uuid.uuid4()))
        for name in ("u1", "u2"):
            await chat.say(name, f"re {name}")
        body = {
            "threadId": chat.thread,
            "runId": "r",
            "messages": [user("from a button")],
            "forwardedProps": {"runtime_mode": "chat"},
        }
        assert (await doors.client.post("/api/v1/agent/runs", json=body)).status_code == 202
        await doors.answered(await doors.gateway.next(), "pressed")
        before = ["u1", "re u1", "u2", "re u2", "from a button", "pressed"]
        behind = list(chat.messages)
        await chat.say("u3", "re u3")
        assert await chat.said() == [*before, "u3", "re u3"]
        assert [message["content"] for message in chat.snapshots[0]] == [*before, "u3"]
        chat.messages = behind[:2]
        await chat.say("u9", "re u9")
        assert await chat.said() == [*before, "u9", "re u9"], "what a client asked itself it can take back"


@pytest.mark.spec("http/ag-ui-unseen")
async def test_a_client_can_say_what_becomes_of_what_it_does_not_show() -> None:
    async with open_doors() as doors:
        one, other = Chat(doors), Chat(doors)
        await one.say("u1", "re u1")
        other.messages = list(one.messages)
        await other.say("u2", "re u2")
        keep = {"forwardedProps": {"paddock": {"unseen": "keep"}}}
        await one.say("u3", "re u3", **keep)
        assert await one.said() == ["u1", "re u1", "u2", "re u2", "u3", "re u3"]
        assert [message["content"] for message in one.messages] == await one.said()
        one.messages = one.messages[:2]
        await one.say("u4", "re u4", forwardedProps={"paddock": {"unseen": "leave"}})
        assert await one.said() == ["u1", "re u1", "u4", "re u4"]
        wrong = one.body(forwardedProps={"paddock": {"unseen": "lose"}})
        answer = await doors.client.post(AG_UI, json=wrong)
        assert_problem(answer, 422, "invalid_argument", "forwardedProps.paddock.unseen must be keep or leave")


@pytest.mark.spec("http/ag-ui-history")
async def test_clients_that_send_only_what_is_new_pay_for_no_search_however_long_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [user(f"old {number}") for number in range(700)]
        await chat.say("u1")
        read = list[int]()
        transcript = doors.house.store.transcript

        async def counted(*args: Any, **how: Any) -> Any:
            rows = await transcript(*args, **how)
            read.append(len(rows))
            return rows

        monkeypatch.setattr(doors.house.store, "transcript", counted)
        chat.messages = []
        await chat.say("u2", forwardedProps={"paddock": {"unseen": "keep"}})
        assert 0 < sum(read) < 50
        assert chat.snapshots == []
        assert (await chat.said())[0] == "old 0"
        chat.messages = [user("old 0", "from the beginning again")]
        await chat.answered("gladly")
        assert await chat.said() == ["from the beginning again", "gladly"]


@pytest.mark.spec("http/ag-ui-branches")
async def test_a_history_that_ends_with_a_known_question_asks_it_again() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1", "one try")
        chat.messages = chat.messages[:1]
        run = await chat.answered("another try")
        assert run.context["input"]["text"] == "u1"
        assert await chat.said() == ["u1", "another try"]
        chat.messages = [user("u1", "in other words")]
        await chat.answered("a third")
        assert await chat.said() == ["in other words", "a third"]


@pytest.mark.spec("http/ag-ui-branches")
async def test_an_answer_the_client_did_not_see_is_not_lost() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1", "unseen")
        chat.messages = chat.messages[:1]
        await chat.say("u2", "ok")
        assert await chat.said() == ["u1", "unseen", "u2", "ok"]
        assert [message["content"] for message in chat.snapshots[0]] == ["u1", "unseen", "u2"]


async def test_another_course_while_something_is_being_answered_is_refused_with_a_reason() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [user("u1")]
        run, asking = await chat.begin()
        answer = await doors.client.post(AG_UI, json=chat.body())
        assert_problem(answer, 409, "conflict", "something is still being answered")
        await doors.answered(run, "ok")
        await asking


async def test_a_message_while_another_is_being_answered_waits_its_turn() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [user("u1")]
        first, asking = await chat.begin()
        chat.messages.append(user("u2"))
        second = asyncio.create_task(doors.client.post(AG_UI, json=chat.body()))
        await doors.house.until((await doors.row(first.run_id)).session_id, "EVENT:TURN_QUEUED")
        await doors.answered(first, "re u1")
        await doors.answered(await doors.gateway.next(), "re u2")
        await asking
        chat.take((await second).content)
        assert await chat.said() == ["u1", "u2", "re u1", "re u2"]


async def test_messages_with_nothing_new_are_refused_before_any_stream() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        await chat.say("u1")
        answer = await doors.client.post(AG_UI, json=chat.body())
        assert_problem(answer, 422, "invalid_argument", "there is nothing new to answer")


@pytest.mark.spec("http/ag-ui-threads")
async def test_the_name_of_a_deleted_thread_can_be_used_again() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        first = await chat.say("u1")
        assert (await doors.client.delete("/api/v1/agent/sessions/main")).status_code == 204
        again = Chat(doors)
        second = await again.say("u1")
        assert (await doors.row(second.run_id)).session_id != first.context["conversation"]["conversation_id"]
        found = await doors.client.get("/api/v1/agent/sessions/main")
        assert found.json()["threadId"] == (await doors.row(second.run_id)).session_id


async def test_what_came_along_can_be_erased_like_anything_that_was_said() -> None:
    async with open_doors() as doors:
        chat = Chat(doors)
        chat.messages = [user("u1", "a secret of long ago"), {"id": "a1", "role": "assistant", "content": "hm"}]
        await chat.say("u2")
        item = (await chat.items())[0]
        path = f"/api/v1/agent/sessions/main/items/{item.item_id}/erase"
        assert (await doors.client.post(path, json={})).status_code == 200
        assert await chat.said() == ["", "hm", "u2", "ok"]
        assert (await chat.items())[0].role == "user"
