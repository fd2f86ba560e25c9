"""What every store promises about jobs: a tick is seen to once, in one commit with the run it led to."""

import asyncio

import pytest

from contracts.builders import SESSION, Owner, a_run, said
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import (
    AutomationGone,
    AutomationRow,
    JobClaim,
    JobFreed,
    JobGoesOn,
    JobMoves,
    JobsCap,
    TickRow,
)
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


def a_job(job_id: str = "j1", *, next_at: float | None = 100.0, user: str = "ann", at: float = 1.0) -> AutomationRow:
    return AutomationRow(job_id, "w", user, f"thread-{job_id}", b'{"name":"x"}', True, next_at, at, at)


async def test_jobs_are_written_whole_and_belong_to_their_user(store: Store) -> None:
    await store.write([a_job("j2", at=2.0), a_job("j1", at=1.0), a_job("j3", user="bob")])
    await store.write([replace(a_job("j1", next_at=None), enabled=False, body=b"{}", created_at=9.0, updated_at=5.0)])
    changed = replace(a_job("j1", next_at=None), enabled=False, body=b"{}", updated_at=5.0)
    assert await store.automations("w", "ann") == [changed, a_job("j2", at=2.0)]
    assert await store.automation("j1") == changed == await store.automation_of_thread("thread-j1")
    assert await store.automation("nobody") is None
    assert await store.automations("v", "ann") == []


async def test_a_user_has_no_more_jobs_than_they_may_whoever_writes_at_once(store: Store) -> None:
    cap = JobsCap("w", "ann", 3)
    made = await asyncio.gather(
        *(store.write([a_job(f"j{number}"), cap]) for number in range(8)), return_exceptions=True
    )
    refused = [error for error in made if error is not None]
    assert [(type(error), getattr(error, "code", None)) for error in refused] == [(HostError, ErrorCode.CONFLICT)] * 5
    assert len(await store.automations("w", "ann")) == 3
    await store.write([a_job("other", user="bob"), JobsCap("w", "bob", 1)])


async def test_what_is_due_is_found_longest_overdue_first(store: Store) -> None:
    off = replace(a_job("off", next_at=1.0), enabled=False)
    await store.write([a_job("b", next_at=20.0), a_job("a", next_at=10.0), a_job("c", next_at=30.0), off])
    assert [job.job_id for job in await store.due_automations(20.0)] == ["a", "b"]
    assert [job.job_id for job in await store.due_automations(99.0, limit=1)] == ["a"]
    assert await store.next_automation_at() == 10.0
    await store.write([JobClaim("a", 10.0, "me", 25.0, 10.0)])
    assert await store.next_automation_at() == 20.0
    await store.write([JobClaim("b", 20.0, "me", 80.0, 20.0)])
    assert await store.next_automation_at() == 25.0
    await store.write([JobFreed("b", "you", 21.0)])
    assert await store.next_automation_at() == 25.0
    await store.write([JobFreed("b", "me", 21.0)])
    assert [job.job_id for job in await store.due_automations(21.0)] == ["b"]


async def test_a_job_goes_on_and_moves_without_a_change_of_anything_else_and_not_from_where_it_no_longer_is(
    store: Store,
) -> None:
    changed = replace(a_job(), body=b'{"name":"y"}')
    await store.write([changed])
    await store.write([JobGoesOn("j1", 99.0, 300.0), JobMoves("j1", "elsewhere", "thread-2")])
    assert await store.automation("j1") == changed
    await store.write([JobGoesOn("j1", 100.0, 200.0), JobMoves("j1", "thread-j1", "thread-2")])
    assert await store.automation("j1") == replace(changed, next_at=200.0, thread_id="thread-2")
    await store.write([JobGoesOn("j2", 100.0, 200.0), JobMoves("j2", "thread-j2", "thread-2")])
    assert await store.automation("j2") is None


async def test_without_jobs_nothing_comes(store: Store) -> None:
    assert await store.next_automation_at() is None
    await store.write([a_job(next_at=None)])
    assert await store.next_automation_at() is None
    assert await store.due_automations(1e12) == []


async def test_a_tick_is_seen_to_once_and_the_job_goes_on(store: Store) -> None:
    await store.write([a_job()])
    await store.write([TickRow("j1", 100.0, "skipped", 150.0, through=140.0, reason="down", next_at=200.0)])
    with pytest.raises(HostError) as refused:
        await store.write([TickRow("j1", 100.0, "fired", 151.0, next_at=300.0)])
    assert refused.value.code is ErrorCode.CONFLICT
    job = await store.automation("j1")
    assert job is not None
    assert job.next_at == 200.0
    assert await store.tick("j1", 100.0) == TickRow("j1", 100.0, "skipped", 150.0, None, 140.0, "down")


async def test_a_tick_that_is_not_the_pending_one_leaves_the_job_where_it_is(store: Store) -> None:
    await store.write([a_job()])
    await store.write([TickRow("j1", 55.5, "manual", 55.5, run_id="r")])
    job = await store.automation("j1")
    assert job is not None
    assert job.next_at == 100.0


async def test_a_tick_and_its_run_are_written_together_or_not_at_all(store: Store) -> None:
    await store.write([a_job()])
    owner = await Owner.of(store)
    await owner.write(said("x", None), rows=[a_run("r1"), TickRow("j1", 100.0, "fired", 101.0, "r1", next_at=200.0)])
    again = await Owner.of(store)
    with pytest.raises(HostError):
        await again.write(said("x", None), rows=[a_run("r2"), TickRow("j1", 100.0, "fired", 102.0, "r2")])
    assert await store.run("r1") is not None
    assert await store.run("r2") is None
    assert len(await store.read(SESSION)) == 1
    assert [row.run_id for row in await store.ticks("j1")] == ["r1"]


async def test_a_claim_keeps_others_away_until_it_is_over(store: Store) -> None:
    await store.write([a_job()])
    await store.write([JobClaim("j1", 100.0, "me", until=130.0, now=100.0)])
    await store.write([JobClaim("j1", 100.0, "you", until=140.0, now=110.0)])
    assert await store.job_claim("j1") == "me"
    assert await store.due_automations(120.0) == []
    assert len(await store.due_automations(130.0)) == 1
    await store.write([JobClaim("j1", 100.0, "you", until=160.0, now=130.0)])
    assert await store.job_claim("j1") == "you"
    await store.write([JobClaim("j1", 99.0, "late", until=900.0, now=800.0)])
    assert await store.job_claim("j1") == "you"
    assert await store.job_claim("nobody") == ""


async def test_ticks_are_read_from_the_latest_back_and_go_with_their_job(store: Store) -> None:
    await store.write([a_job(), *(TickRow("j1", float(tick), "fired", 1.0) for tick in range(5))])
    assert [row.tick for row in await store.ticks("j1", limit=2)] == [4.0, 3.0]
    assert [row.tick for row in await store.ticks("j1", before=3.0)] == [2.0, 1.0, 0.0]
    await store.write([AutomationGone("j1")])
    assert await store.automation("j1") is None
    assert await store.ticks("j1") == []


async def test_a_conversation_says_which_job_talks_in_it(store: Store) -> None:
    await (await Owner.of(store)).write(said("hello there"))
    plain = await store.session_summary(SESSION)
    assert plain is not None
    assert plain.automation_id is None
    await store.write([replace(a_job(user=plain.user_id), thread_id=SESSION)])
    marked = replace(plain, automation_id="j1")
    assert await store.session_summary(SESSION) == marked
    assert await store.sessions_of(plain.workspace_id, plain.user_id) == [marked]
