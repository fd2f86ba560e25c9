"""The conversation by days: in the user's own zone, newest first, nobody else's, and quick in a long one."""

import json
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.builders import Owner, said
from http_api.doors import Doors, assert_problem, open_doors
from http_api.test_validation_table import EXAMPLES, TheirStorage
from paddock.host.conversations.days import Days
from paddock.host.people.principals import DEV
from paddock.host.people.users import Users
from paddock.ports import Store
from paddock.rules.rows.rows import SessionRow, TranscriptRow, UserRow
from paddock.rules.values import replace
from paddock.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio
PATH = "/api/v1/agent/history"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def item(seq: int, moment: float, role: str = "user", text: str = "hi", **changes: Any) -> TranscriptRow:
    agent = "one" if role != "user" else None
    row = TranscriptRow("", seq, f"turn.{seq}", "run", role, "message", agent, text, b"", moment, b"")
    return replace(row, **changes)


async def a_thread(store: Store, *items: TranscriptRow, user: str = "dev") -> str:
    """A conversation that holds these items."""
    thread = str(uuid.uuid4())
    owner = await Owner.of(store, thread)
    batch = owner.batch(*(said("x", None) for _ in range(max((row.seq for row in items), default=1))))
    session = SessionRow(thread, "default", user, 1.0)
    rows = [session, *(replace(row, session_id=thread) for row in items)]
    await store.append(replace(batch, rows=rows))
    return thread


async def day(doors: Doors, **params: Any) -> Any:
    answer = await doors.client.get(PATH, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def texts(found: Any) -> Sequence[str]:
    return [message["content"] for message in found["messages"]]


@pytest.mark.spec("http/history-days")
async def test_the_latest_day_comes_first_and_before_leads_back_to_the_first() -> None:
    async with open_doors() as doors:
        items = [item(1, at("2026-03-10T10:00:00"), text="a"), item(2, at("2026-03-14T00:00:00"), text="b")]
        items += [item(3, at("2026-03-14T23:59:59"), "assistant", "c"), item(4, at("2026-03-15T00:00:00"), text="d")]
        thread = await a_thread(doors.house.store, *items)
        found = await day(doors, threadId=thread)
        assert found | {"messages": None} == {
            "scope": "history_day", "threadId": thread, "day": "2026-03-15", "hasMore": True, "messages": None,
        }  # fmt: skip
        assert texts(found) == ["d"]
        found = await day(doors, threadId=thread, before="2026-03-15")
        assert (found["day"], found["hasMore"], texts(found)) == ("2026-03-14", True, ["b", "c"])
        found = await day(doors, threadId=thread, before="2026-03-14")
        assert (found["day"], found["hasMore"], texts(found)) == ("2026-03-10", False, ["a"])
        found = await day(doors, threadId=thread, before="2026-03-10")
        assert found == {"scope": "history_day", "threadId": thread, "day": None, "hasMore": False, "messages": []}


@pytest.mark.spec("http/history-days")
async def test_days_are_those_of_the_users_own_zone_also_when_clocks_change() -> None:
    async with open_doors() as doors:
        moments = ["2026-03-28T22:59:59", "2026-03-28T23:00:00", "2026-03-29T21:59:59", "2026-03-29T22:00:00"]
        thread = await a_thread(
            doors.house.store, *(item(seq, at(moment), text=moment) for seq, moment in enumerate(moments, 1))
        )
        settings = {"profile": {"settings": {"timezone": "Europe/Oslo"}}}
        assert (await doors.client.patch("/api/v1/users/me", json=settings)).status_code == 200
        assert texts(await day(doors, threadId=thread)) == moments[3:]
        spring = await day(doors, threadId=thread, before="2026-03-30")
        assert (spring["day"], texts(spring)) == ("2026-03-29", moments[1:3])
        assert texts(await day(doors, threadId=thread, before="2026-03-29")) == moments[:1]


@pytest.mark.spec("http/history-items")
async def test_a_day_has_the_published_shape() -> None:
    async with open_doors(attachments=TheirStorage()) as doors:
        example = json.loads(EXAMPLES)["history"]
        content = [{"type": "binary", "mimeType": "image/png", "id": "art-1"}, {"type": "text", "text": "x"}]
        document = example["messages"][1]["ui_schema"]
        moment = at("2026-03-15T10:00:00")
        thread = await a_thread(
            doors.house.store,
            item(1, moment, text="帮我创建一个日程", content_json=json.dumps({"content": content}).encode(),
                 metadata=b'{"message_id":"msg-001"}'),
            item(2, moment + 1, "assistant", "calendar_write", item_type="tool_call"),
            item(3, moment + 2, "tool", "{}", item_type="tool_result"),
            item(4, moment + 5, "assistant", "好的", metadata=json.dumps({"ui_schema": document}).encode()),
        )  # fmt: skip
        user, assistant = (await day(doors, threadId=thread))["messages"]
        assert user.keys() == example["messages"][0].keys() | {"itemId", "taskId"}
        assert assistant.keys() == example["messages"][1].keys() | {"agentId", "name", "taskId"}
        assert (user["id"], user["seq"], user["timestamp"]) == ("msg-001", 1, "2026-03-15T10:00:00.000Z")
        assert user["attachments"] == [
            {"mimeType": "image/png", "url": "https://storage.example.com/art-1?signature=fresh"}
        ]
        assert (assistant["id"], assistant["seq"], assistant["agentId"]) == ("turn.4", 4, "one")
        assert assistant["ui_schema"] == document


@pytest.mark.spec("http/history-thread")
async def test_without_a_thread_the_one_opened_last_is_told_and_nothing_when_there_is_none() -> None:
    async with open_doors() as doors:
        assert await day(doors) == {
            "scope": "history_day", "threadId": None, "day": None, "hasMore": False, "messages": [],
        }  # fmt: skip
        await a_thread(doors.house.store, item(1, 1.0, text="old"))
        latest = await a_thread(doors.house.store, item(1, 2.0, text="new"))
        await a_thread(doors.house.store, item(1, 3.0, text="not yours"), user="ann")
        assert (await day(doors))["threadId"] == latest
        await doors.client.patch(f"/api/v1/agent/sessions/{latest}", json={"archived": True})
        assert texts(await day(doors)) == ["old"]


@pytest.mark.spec("http/history-thread")
async def test_a_foreign_thread_looks_like_one_that_does_not_exist() -> None:
    async with open_doors() as doors:
        foreign = await a_thread(doors.house.store, item(1, 1.0), user="ann")
        answers = [await doors.client.get(PATH, params={"threadId": name}) for name in (foreign, str(uuid.uuid4()))]
        assert_problem(answers[0], 404, "not_found", "there is no such thread")
        assert answers[0].content == answers[1].content


@pytest.mark.spec("http/history-days")
@pytest.mark.parametrize(
    "before", ["", "today", "2026-3-1", "2026-02-30", "20260301", "2026-03-01T00:00:00", "٢026-03-01"]
)
async def test_what_is_no_day_is_refused(before: str) -> None:
    async with open_doors() as doors:
        assert_problem(
            await doors.client.get(PATH, params={"before": before}), 422, "invalid_argument", "before must be"
        )


async def test_the_first_and_the_last_day_of_the_calendar_are_days_too() -> None:
    async with open_doors() as doors:
        thread = await a_thread(doors.house.store, item(1, 1.0))
        assert (await day(doors, threadId=thread, before="9999-12-31"))["day"] == "1970-01-01"
        assert (await day(doors, threadId=thread, before="0001-01-01"))["day"] is None


async def test_a_day_of_a_very_long_conversation_is_found_at_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    begun = at("2025-01-01T00:00:00")
    seconds = timedelta(days=1).total_seconds() / 200
    items = [item(seq, begun + seq * seconds, "user" if seq % 2 else "assistant") for seq in range(1, 100_001)]
    thread = await a_thread(store, *items)
    users = Users(store, clock=time.time)
    await store.write([UserRow("default", "dev", "Europe/Oslo", None, 1.0)])
    spent: list[float] = []
    for month in (2, 6, 9, 11):
        for number in range(1, 6):
            start = time.process_time()
            found = await Days(store, users).day(DEV, thread, datetime(2025, month, number, tzinfo=UTC).date())
            spent.append(time.process_time() - start)
            assert len(found.items) == 200
            assert found.more
    await store.close()
    assert sorted(spent)[len(spent) // 2] < 0.010, spent  # of this process alone: others may keep the machine busy
