"""What every store promises to people who look over a workspace: runs, decisions and usage, by their marks."""

from typing import Any

import pytest

from contracts.builders import SESSION, Owner, a_decision, a_run, an_item, said
from contracts.test_calls import used
from paddock.ports import Store
from paddock.rules.log.forgetting import first_id_after
from paddock.rules.people import AuditQuery, Lap, RunsQuery, Spender, UsageLine, pace_of, paces
from paddock.rules.rows.rows import RunRow
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


async def test_runs_are_found_by_their_marks_the_newest_first(store: Store) -> None:
    owner = await Owner.of(store)
    rows = [
        a_run("01", status="completed"),
        a_run("02", user_id="bob", client_run_id="b"),
        a_run("03", workspace_id="other"),
        a_run("04", agent_id="another", status="failed"),
    ]
    await owner.write(said("hi"), rows=rows)

    async def found(**asked: Any) -> list[str]:
        return [run.run_id for run in await store.runs_where(RunsQuery("workspace", **asked))]

    assert await found() == ["04", "02", "01"]
    assert await found(user_id="ann") == ["04", "01"]
    assert await found(agent_id="another") == ["04"]
    assert await found(statuses=("completed", "running")) == ["02", "01"]
    assert await found(before="04", limit=1) == ["02"]
    assert (await store.runs_where(RunsQuery("workspace", limit=1)))[0] == rows[3]


async def test_the_runs_of_a_conversation_are_those_that_said_something_in_it(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run("01"), a_run("02"), replace(an_item(1), run_id="01")])
    assert [run.run_id for run in await store.runs_where(RunsQuery("workspace", session_id=SESSION))] == ["01"]
    assert await store.runs_where(RunsQuery("workspace", session_id="another")) == []


async def test_decisions_are_found_by_their_marks_the_newest_first(store: Store) -> None:
    rows = [
        replace(a_decision(), workspace_id="w", action=action, result=result, run_id=run, time=float(number))
        for number, (action, result, run) in enumerate(
            [
                ("history.page", "allowed", "r1"),
                ("history.search", "unauthorized", "r1"),
                ("tools.call", "allowed", None),
            ]
        )
    ]
    of_the_host = replace(a_decision(), workspace_id="", action="hosts.gone", time=0.0)
    await store.write([of_the_host, *rows, replace(a_decision(), workspace_id="other")])

    async def found(**asked: Any) -> list[str]:
        return [entry.row.action for entry in await store.audit_where(AuditQuery("w", **asked))]

    assert await found() == ["tools.call", "history.search", "history.page"]
    assert await found(of_hosts=True) == ["tools.call", "history.search", "history.page", "hosts.gone"]
    assert await found(of_hosts=True, action="hosts.*") == ["hosts.gone"]
    assert await found(action="history.*") == ["history.search", "history.page"]
    assert await found(action="history.page") == ["history.page"]
    assert await found(result="unauthorized", run_id="r1") == ["history.search"]
    assert await found(since=1.0, until=2.0) == ["history.search"]
    newest = (await store.audit_where(AuditQuery("w", limit=1)))[0]
    assert newest.row == rows[2]
    assert await found(before=newest.number) == ["history.search", "history.page"]


async def test_usage_is_added_up_by_span_agent_and_model(store: Store) -> None:
    await store.write(
        [
            used("u1"),
            used("u2", started_at=119.0, cost=None, prompt_tokens=None),
            used("u0", result="started"),
            used("u3", started_at=120.0, user_id="bob", model_id="other"),
            used("u4", started_at=10.0),
            used("u5", workspace_id="other"),
        ]
    )
    first = UsageLine(60.0, "a", "demo", 2, 10, 10, 30, 0.25, 1)
    second = UsageLine(120.0, "a", "other", 1, 10, 5, 15, 0.25)
    assert await store.usage_lines("w", None, since=50.0, every=60) == [first, second]
    assert await store.usage_lines("w", "bob", since=50.0, every=60) == [second]


async def test_who_used_models_is_told_whoever_cost_most_first(store: Store) -> None:
    await store.write(
        [
            used("u1", user_id="ann", cost=None),
            used("u2", user_id="bob", total_tokens=1),
            used("u3", user_id="bob", total_tokens=1),
            used("u4", user_id="cem", cost=None, total_tokens=99),
            used("u5", user_id="dan", started_at=10.0),
            used("u6", user_id="eve", workspace_id="other"),
        ]
    )
    bob, cem, ann = Spender("bob", 2, 2, 0.5), Spender("cem", 1, 99, 0.0, 1), Spender("ann", 1, 15, 0.0, 1)
    assert await store.spenders("w", since=50.0, limit=10) == [bob, cem, ann]
    assert await store.spenders("w", since=50.0, limit=1) == [bob]


async def test_calls_of_models_without_a_price_are_counted_and_cost_not_nothing(store: Store) -> None:
    unheard = used("u3", cost=None, prompt_tokens=None, completion_tokens=None, total_tokens=None, result="unavailable")
    await store.write([used("u1"), used("u2", cost=None), unheard])
    [line] = await store.usage_lines("w", None, since=50.0, every=60)
    assert (line.calls, line.cost, line.unpriced) == (3, 0.25, 1)
    spent = await store.spent(workspace_id="w")
    assert (spent.calls, spent.cost, spent.unpriced) == (3, 0.25, 1)


@pytest.mark.parametrize("every", [60, 3600])
async def test_the_pace_of_runs_is_that_of_all_runs_of_a_span(store: Store, every: int) -> None:
    """As the rules work it out from every single run, in each span and in all of the time together."""
    now, runs = 1_000_000.0, list[RunRow]()
    for number in range(60):
        began = now + 7 * number
        status = ("completed", "completed", "completed", "failed", "cancelled", "running")[number % 6]
        ended = None if status == "running" else began + 1 + (number * 37 % 60) / 4
        begun = None if number % 5 == 0 else began + 0.5
        run_id = f"{first_id_after(began)}-7000-8000-{number:012}"
        times = {"created_at": began, "started_at": begun, "ended_at": ended}
        runs.append(a_run(run_id, status=status, user_id="bob" if number % 7 == 0 else "ann", **times))
    old = a_run(f"{first_id_after(1.0)}-7000-8000-000000000000", created_at=1.0, ended_at=9.0, status="completed")
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[*runs, old])
    for user in (None, "ann", "bob", "nobody"):
        laps = [
            Lap(run.created_at, run.started_at, run.ended_at, run.status) for run in runs if user in (None, run.user_id)
        ]
        told = await store.paces("workspace", user, since=now, every=every)
        assert told == paces(laps, every), user
        assert await store.paces("workspace", user, since=now, every=None) == ([pace_of(0.0, laps)] if laps else [])
