"""What every store promises about calls of tools and models: begun, ended, unknown, and what they used."""

from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import Any

import pytest

from contracts.builders import Owner, a_decision, a_run, said
from paddock.ports import Spent, Store
from paddock.rules.errors import HostError
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


def a_tool_call(call_id: str = "c1", run_id: str = "run-1", **changes: Any) -> ToolCallRow:
    begun = ToolCallRow(call_id, run_id, "s", "w", "ann", "a", "add", "started", b'{"a":1}', b"", None, 1.0, None)
    return replace(begun, **changes)


def used(call_id: str, run_id: str = "run-1", **changes: Any) -> ModelUsageRow:
    row = ModelUsageRow(
        call_id, run_id, "s", "w", "ann", "a", "demo", "demo", "invoke", "ok", 10, 5, 15, 0.25, 100.0, 101.0
    )
    return replace(row, **changes)


def ended_in(noted: list[ModelUsageRow]) -> Callable[[ModelUsageRow], None]:
    """Take down the calls that have ended, and not what is written of them while they are under way."""
    return lambda row: noted.append(row) if row.result != "started" else None


async def test_a_tool_call_is_on_record_before_it_ends_and_written_once_more_when_it_has(store: Store) -> None:
    await store.write([a_tool_call(), a_decision(), a_tool_call("c2")])
    assert await store.tool_calls("run-1") == [a_tool_call(), a_tool_call("c2")]
    ended = a_tool_call(status="completed", result=b"3", artifact_id="art", ended_at=2.0)
    await store.write([ended])
    assert await store.tool_calls("run-1") == [ended, a_tool_call("c2")]
    assert await store.tool_calls("run-1", limit=1) == [ended]
    assert await store.tool_calls("other") == []


async def test_a_call_without_an_end_is_unanswered_once_its_run_is_over(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run("run-1"), a_run("run-2")])
    await store.write(
        [a_tool_call("c1", "run-1"), a_tool_call("c2", "run-1", status="failed"), a_tool_call("c3", "run-2")]
    )
    assert await store.unanswered_tool_calls(over_since=inf) == []
    await owner.write(rows=[a_run("run-1", status="failed", ended_at=100.0)])
    assert [row.call_id for row in await store.unanswered_tool_calls(over_since=inf)] == ["c1"]
    assert [row.call_id for row in await store.unanswered_tool_calls(over_since=100.0)] == ["c1"]
    assert await store.unanswered_tool_calls(over_since=99.0) == []


async def test_what_became_of_a_call_is_not_replaced_by_that_nobody_knows(store: Store) -> None:
    await store.write([a_tool_call()])
    unknown = a_tool_call(status="unknown", ended_at=3.0)
    ended = a_tool_call(status="completed", result=b"3", ended_at=2.0)
    await store.write([unknown])
    assert await store.tool_calls("run-1") == [unknown]
    await store.write([ended])
    for rows in ([unknown], [ended, unknown]):
        await store.write(rows)
        assert await store.tool_calls("run-1") == [ended]


async def test_what_model_calls_used_is_listed_and_added_up(store: Store) -> None:
    rows = [
        used("u1"),
        used("u2", prompt_tokens=None, completion_tokens=None, total_tokens=None, cost=None, result="runtime_error"),
        used("u5", prompt_tokens=0, completion_tokens=0, total_tokens=0, cost=0.0, result="cancelled", estimated=True),
        used("u3", "run-2", user_id="bob", started_at=200.0),
        used("u4", "run-3", workspace_id="other", started_at=200.0),
    ]
    await store.write(rows)
    assert await store.model_usage("run-1") == rows[:3]
    assert await store.spent(run_id="run-1") == Spent(3, 10, 5, 15, 0.25)
    assert await store.spent(workspace_id="w") == Spent(4, 20, 10, 30, 0.5)
    assert await store.spent(workspace_id="w", since=150.0) == Spent(1, 10, 5, 15, 0.25)
    assert await store.spent(workspace_id="w", user_id="ann") == Spent(3, 10, 5, 15, 0.25)
    assert await store.spent(run_id="none") == Spent()


async def test_what_was_used_on_a_day_is_added_up_for_users_and_for_their_workspace(store: Store) -> None:
    day = 20_000 * 86_400.0
    rows = [
        used("u1", started_at=day),
        used("u2", started_at=day + 86_399.5, cost=None, total_tokens=None),
        used("u3", user_id="bob", started_at=day + 5),
        used("u4", workspace_id="other", started_at=day + 5),
        used("u5", started_at=day - 0.5, total_tokens=1000),
    ]
    for row in rows:
        await store.write([row])
    await store.write([used("u6", started_at=day + 7), used("u7", started_at=day + 8)])
    assert await store.spent_on(day, "w") == (60, 1.0)
    assert await store.spent_on(day, "w", "ann") == (45, 0.75)
    assert await store.spent_on(day, "w", "cem") == (0, 0.0)
    assert await store.spent_on(day - 86_400, "w") == (1000, 0.25)
    with suppress(HostError):
        await store.write([used("u6", started_at=day + 7)])  # on record already
    assert await store.spent_on(day, "w", "ann") == (45, 0.75)


async def test_usage_can_be_written_with_the_facts_of_a_session(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run(), used("u1")])
    assert await store.model_usage("run-1") == [used("u1")]


async def test_what_a_call_used_counts_once_however_often_it_is_written(store: Store) -> None:
    await store.write([used("u1")])
    await store.write([used("u1"), used("u2")])
    assert await store.model_usage("run-1") == [used("u1"), used("u2")]


async def test_a_call_of_a_model_is_on_record_while_it_is_under_way_and_counts_when_it_has_ended(store: Store) -> None:
    day = 20_000 * 86_400.0
    begun = used("u1", result="started", started_at=day, ended_at=day, completion_tokens=0, total_tokens=10, cost=0.1)
    await store.write([begun])
    assert await store.model_usage("run-1") == [begun]
    assert (await store.spent_on(day, "w"), await store.spent(run_id="run-1")) == ((0, 0.0), Spent())
    ended = used("u1", started_at=day, ended_at=day + 1)
    await store.write([ended])
    assert await store.model_usage("run-1") == [ended]
    assert (await store.spent_on(day, "w"), await store.spent(run_id="run-1")) == (
        (15, 0.25),
        Spent(1, 10, 5, 15, 0.25),
    )
    await store.write([replace(begun, call_id="u2"), replace(ended, call_id="u2")])
    assert await store.model_usage("run-1") == [ended, replace(ended, call_id="u2")]
    assert await store.spent_on(day, "w") == (30, 0.5)


async def test_what_became_of_a_call_of_a_model_stays_on_record_whatever_is_written_later(store: Store) -> None:
    day = 20_000 * 86_400.0
    begun = used("u1", result="started", started_at=day, total_tokens=10, cost=0.125)
    lost, ended = replace(begun, result="unknown", ended_at=day + 9), used("u1", result="cancelled", started_at=day)
    await store.write([begun])
    await store.write([lost])
    await store.write([begun])
    assert await store.model_usage("run-1") == [lost]
    assert await store.spent_on(day, "w", "ann") == (10, 0.125)
    await store.write([ended])  # a host that stood still knows better
    for late in (begun, lost, ended):
        await store.write([late])
        assert await store.model_usage("run-1") == [ended]
    assert await store.spent_on(day, "w", "ann") == (15, 0.25)


async def test_a_call_of_a_model_without_an_end_is_unanswered_once_its_run_is_over(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run("run-1"), a_run("run-2")])
    await store.write([used("u1", result="started"), used("u2"), used("u3", "run-2", result="started")])
    assert await store.unanswered_model_calls(over_since=inf) == []
    await owner.write(rows=[a_run("run-1", status="failed", ended_at=100.0)])
    assert [row.call_id for row in await store.unanswered_model_calls(over_since=inf)] == ["u1"]
    assert [row.call_id for row in await store.unanswered_model_calls(over_since=100.0)] == ["u1"]
    assert await store.unanswered_model_calls(over_since=99.0) == []
