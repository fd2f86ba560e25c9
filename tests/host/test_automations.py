"""Jobs fire: each tick leads to one run, after a restart and with two hosts too; what was missed goes by policy."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contracts.conftest import open_plug
from host.scripted import ANN, BOB, AtRunner, ScriptedGateway, SmallHouse, small_house
from paddock.host.automation.automations import Automation
from paddock.host.automation.scheduler import AGAIN_SECONDS, LEFT_SECONDS
from paddock.ports import Store
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import JobClaim, TickRow
from paddock.rules.values import replace
from paddock.storage.postgres import PostgresStore
from postgres_server import a_database
from stores import QuickStore

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 5, 5, 12, tzinfo=UTC).timestamp()
HOUR = 3600.0
JOB = {"name": "news", "prompt": "What is new?", "cron": "0 * * * *", "timeZone": "UTC"}
TOOLS = {"tools": ["detail", "call"], "history": ["page"], "storage": ["plugin"]}


@dataclass
class Clock:
    now: float = NOON - 60

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def a_house(
    store: Store | None = None, clock: Callable[[], float] | None = None, **more: Any
) -> AsyncGenerator[SmallHouse]:
    async with small_house(store, clock=clock or Clock(), **more) as house:
        yield house


async def a_job(house: SmallHouse, **changes: Any) -> Automation:
    return await house.automations.create(ANN, JOB | changes)


async def finish(run: AtRunner, text: str = "done") -> None:
    run.message(text)
    run.say("run.completed")


async def results(house: SmallHouse, job: Automation) -> list[tuple[str, float]]:
    return [(row.result, row.tick) for row in await house.store.ticks(job.row.job_id)]


async def test_a_tick_becomes_a_run_of_its_user_in_the_jobs_own_conversation() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        context = [{"description": "team", "value": "red"}]
        job = await a_job(house, agentId="two", config={"context": context})
        assert job.row.next_at == NOON
        assert await house.scheduler.run_due() == 0
        clock.now = NOON + 1
        assert await house.scheduler.run_due() == 1
        run = await house.gateway.next()
        assert run.context["trigger"] == {"type": "schedule.triggered", "source": "scheduler", "timestamp": int(NOON)}
        assert run.context["input"]["text"] == "What is new?"
        assert run.context["conversation"]["conversation_id"] == job.row.thread_id
        assert run.context["event"]["data"]["job_id"] == job.row.job_id
        told = run.context["adapter"]["extra"]["params"]
        assert told == {"forwardedProps": {"runtime_mode": "automation"}, "context": context}
        await finish(run)
        [tick] = await house.store.ticks(job.row.job_id)
        assert tick == TickRow(job.row.job_id, NOON, "fired", NOON + 1, run.run_id)
        row = await house.store.run(run.run_id)
        assert row is not None
        assert (row.user_id, row.agent_id) == ("ann", "two")
        after = await house.store.automation(job.row.job_id)
        assert after is not None
        assert after.next_at == NOON + HOUR


async def test_looking_again_or_starting_again_fires_nothing_twice() -> None:
    clock, store = Clock(), QuickStore()
    async with a_house(store, clock) as house:
        job = await a_job(house)
        clock.now = NOON + 1
        await asyncio.gather(*(house.scheduler.run_due() for _ in range(5)))
        await finish(await house.gateway.next())
        assert await house.scheduler.run_due() == 0
        assert await results(house, job) == [("fired", NOON)]
    async with a_house(store, clock) as house:
        assert await house.scheduler.run_due() == 0
        assert house.gateway.started.empty()


async def test_an_edit_that_puts_a_finished_tick_back_does_not_fire_it_again() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house)
        clock.now = NOON + 1
        await house.scheduler.run_due()
        await finish(await house.gateway.next())
        await house.store.write([job.row])  # as it was before the tick
        await house.scheduler.run_due()
        assert house.gateway.started.empty()
        after = await house.store.automation(job.row.job_id)
        assert after is not None
        assert after.next_at == NOON + HOUR


@pytest.mark.parametrize("missed", ["skip", "run_once"])
async def test_missed_ticks_follow_the_jobs_policy(missed: str) -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house, missed=missed)
        clock.now = NOON + 3 * HOUR + 600
        await house.scheduler.run_due()
        await house.scheduler.run_due()
        if missed == "skip":
            assert house.gateway.started.empty()
            [tick] = await house.store.ticks(job.row.job_id)
            assert (tick.result, tick.tick, tick.through) == ("skipped", NOON, NOON + 3 * HOUR)
        else:
            run = await house.gateway.next()
            assert run.context["trigger"]["timestamp"] == int(NOON + 3 * HOUR)
            await finish(run)
            assert await results(house, job) == [("fired", NOON + 3 * HOUR), ("skipped", NOON)]
        after = await house.store.automation(job.row.job_id)
        assert after is not None
        assert after.next_at == NOON + 4 * HOUR


@pytest.mark.spec("http/automation-tools")
async def test_a_job_that_names_a_tool_its_agent_does_not_have_is_told_which() -> None:
    async with a_house(clock=Clock(), gateway=ScriptedGateway(TOOLS)) as house:
        with pytest.raises(HostError) as refused:
            await a_job(house, config={"enabledTools": ["calculate", "launch_rockets"]})
        assert refused.value.message.startswith(
            "config.enabledTools: agent 'one' has no tool 'launch_rockets'; it has: "
        )
        assert "calculate" in refused.value.message
        job = await a_job(house, config={"enabledTools": ["calculate"]})
        with pytest.raises(HostError, match="has no tool 'launch_rockets'"):
            await house.automations.change(ANN, job.row.job_id, {"config": {"enabledTools": ["launch_rockets"]}})


@pytest.mark.spec("http/automation-tools")
async def test_a_job_whose_tool_went_away_can_still_be_changed() -> None:
    async with a_house(clock=Clock(), gateway=ScriptedGateway(TOOLS)) as house:
        job = await a_job(house, config={"enabledTools": ["calculate"]})
        gone = replace(job.row, body=job.row.body.replace(b"calculate", b"gone_tool"))
        await house.store.write([gone])
        changed = await house.automations.change(ANN, job.row.job_id, {"enabled": False})
        assert (changed.row.enabled, changed.job.enabled_tools) == (False, ("gone_tool",))


async def test_enabled_tools_take_away_and_never_add() -> None:
    clock = Clock()
    async with a_house(clock=clock, gateway=ScriptedGateway(TOOLS)) as house:
        await a_job(house, config={"enabledTools": ["calculate"]})
        clock.now = NOON + 1
        await house.scheduler.run_due()
        run = await house.gateway.next()
        assert [tool["tool_name"] for tool in run.context["resources"]["tools"]] == ["calculate"]
        live = house.runs.live.find(run.run_id)
        assert live is not None
        assert live.grant.tools.keys() == {"calculate"}
        await finish(run)


async def test_a_job_can_be_run_by_hand_and_its_schedule_stays() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house, enabled=False)
        accepted = await house.automations.fire(ANN, job.row.job_id)
        run = await house.gateway.next()
        assert run.run_id == accepted.run_id
        await finish(run)
        assert await results(house, job) == [("manual", clock.now)]
        after = await house.store.automation(job.row.job_id)
        assert after is not None
        assert after.next_at is None


async def test_a_job_whose_conversation_was_deleted_goes_on_in_a_new_one() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house)
        clock.now = NOON + 1
        await house.scheduler.run_due()
        first = await house.gateway.next()
        await finish(first)
        await house.until(job.row.thread_id, "AGENT_OUTPUT:FINAL")
        await house.keeping.delete_thread(ANN, job.row.thread_id)
        clock.now = NOON + HOUR + 1
        await house.scheduler.run_due()
        second = await house.gateway.next()
        assert second.context["conversation"]["conversation_id"] != job.row.thread_id
        await finish(second)


@asynccontextmanager
async def a_tick_meanwhile(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[SmallHouse, str], Any]
) -> AsyncGenerator[tuple[SmallHouse, Automation]]:
    """A job whose conversation was deleted and whose tick is being fired; something happens before it is accepted."""
    async with a_house(clock=clock) as house:
        job = await a_job(house)
        await house.automations.fire(ANN, job.row.job_id)
        await finish(await house.gateway.next())
        await house.until(job.row.thread_id, "AGENT_OUTPUT:FINAL")
        await house.keeping.delete_thread(ANN, job.row.thread_id)
        accept = house.inbox.accept

        async def accept_later(*asked: Any) -> Any:
            monkeypatch.undo()
            await meanwhile(house, job.row.job_id)
            return await accept(*asked)

        clock.now = NOON + 1
        monkeypatch.setattr(house.inbox, "accept", accept_later)
        yield house, job


async def test_a_job_that_is_deleted_while_its_tick_is_fired_stays_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def delete(house: SmallHouse, job_id: str) -> Any:
        return house.automations.delete(ANN, job_id)

    async with a_tick_meanwhile(Clock(), monkeypatch, delete) as (house, job):
        await house.scheduler.run_due()
        assert await house.store.automation(job.row.job_id) is None
        assert await results(house, job) == []
        assert house.gateway.started.empty()


async def test_what_its_user_changes_while_a_tick_is_fired_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(house: SmallHouse, job_id: str) -> Any:
        return house.automations.change(ANN, job_id, {"prompt": "What is old?"})

    async with a_tick_meanwhile(Clock(), monkeypatch, change) as (house, job):
        await house.scheduler.run_due()
        await finish(await house.gateway.next())
        kept = await house.automations.get(ANN, job.row.job_id)
        assert kept.job.prompt == "What is old?"
        assert kept.row.thread_id != job.row.thread_id


async def test_a_tick_asks_what_the_job_says_when_it_is_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house)
        look = house.store.due_automations

        async def changed_after_the_look(*asked: Any, **more: Any) -> Any:
            found = await look(*asked, **more)
            await house.automations.change(ANN, job.row.job_id, {"prompt": "What is old?"})
            return found

        monkeypatch.setattr(house.store, "due_automations", changed_after_the_look)
        clock.now = NOON + 1
        await house.scheduler.run_due()
        run = await house.gateway.next()
        assert run.context["input"]["text"] == "What is old?"
        await finish(run)


async def test_a_job_whose_agent_is_gone_says_so_and_goes_on() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house, agentId="two")
        house.agents.replace([one for one in house.agents.list("default") if one.agent_id != "two"], "one")
        clock.now = NOON + 1
        await house.scheduler.run_due()
        [tick] = await house.store.ticks(job.row.job_id)
        assert tick.result == "refused"
        assert "there is no agent 'two'" in tick.reason
        assert [row.result for row in await house.store.audit(limit=1)] == ["refused"]


async def test_jobs_are_their_users_own_and_a_change_keeps_what_it_does_not_name() -> None:
    async with a_house() as house:
        job = await a_job(house)
        for call in (house.automations.get, house.automations.delete, house.automations.fire):
            with pytest.raises(HostError) as refused:
                await call(BOB, job.row.job_id)
            assert refused.value.code is ErrorCode.NOT_FOUND
        renamed = await house.automations.change(ANN, job.row.job_id, {"name": "other"})
        assert renamed.row.next_at == NOON
        assert renamed.job.prompt == "What is new?"
        moved = await house.automations.change(ANN, job.row.job_id, {"rrule": "FREQ=DAILY;BYHOUR=15;BYMINUTE=0"})
        assert moved.row.next_at == NOON + 3 * HOUR
        off = await house.automations.change(ANN, job.row.job_id, {"enabled": False})
        assert off.row.next_at is None
        assert house.automations.upcoming(off) == []
        await house.automations.delete(ANN, job.row.job_id)
        assert await house.automations.list(ANN) == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cron": None}, "give either cron or rrule"),
        ({"rrule": "FREQ=DAILY"}, "give either cron or rrule"),
        ({"cron": "nonsense"}, "cron: 'nonsense' is no cron line"),
        ({"timeZone": "Mars/Olympus"}, "timeZone: there is no 'Mars/Olympus'"),
        ({"agentId": "nobody"}, "agentId: there is no agent 'nobody'"),
        ({"prompt": ""}, "prompt: "),
        ({"missed": "later"}, "missed: "),
        ({"startsAt": "2026-05-05T09:00:00"}, "startsAt needs an offset"),
        ({"config": {"enabled": []}}, "config.enabled: "),
    ],
)
async def test_a_job_that_makes_no_sense_is_refused_in_words(changes: dict[str, Any], says: str) -> None:
    async with a_house() as house:
        with pytest.raises(HostError) as refused:
            await a_job(house, **changes)
        assert refused.value.message.startswith(says)
        [note] = await house.store.audit(limit=1)
        assert (note.action, note.result) == ("automations.create", "invalid_argument")


async def test_two_hosts_on_one_database_fire_each_tick_once() -> None:
    clock = Clock()
    with a_database() as address:
        stores = PostgresStore(address), PostgresStore(address)
        async with a_house(stores[0], clock) as one, a_house(stores[1], clock) as two:
            jobs = [await a_job(one, name=f"job {number}") for number in range(6)]
            clock.now = NOON + 1
            await asyncio.gather(one.scheduler.run_due(), two.scheduler.run_due(), one.scheduler.run_due())
            async with asyncio.timeout(30):
                while sum(house.gateway.started.qsize() for house in (one, two)) < len(jobs):
                    await asyncio.sleep(0.01)
            runs = [await house.gateway.next() for house in (one, two) for _ in range(house.gateway.started.qsize())]
            assert len(runs) == len(jobs)
            for run in runs:
                await finish(run)
            for job in jobs:
                [tick] = await one.store.ticks(job.row.job_id)
                assert tick.result == "fired"
            threads = {run.context["conversation"]["conversation_id"] for run in runs}
            assert threads == {job.row.thread_id for job in jobs}
            for run in runs:
                async with asyncio.timeout(30):
                    while (row := await one.store.run(run.run_id)) is None or row.status != "completed":
                        await asyncio.sleep(0.01)
        for store in stores:
            await store.close()


async def test_a_host_that_is_being_stopped_leaves_ticks_to_the_others() -> None:
    clock, store = Clock(), QuickStore()
    async with a_house(store, clock) as stopping, a_house(store, clock) as other:
        await a_job(other)
        clock.now = NOON + 1
        stopping.runs.live.admission.closed = True
        assert await stopping.scheduler.run_due() == 0
        assert await other.scheduler.run_due() == 1
        await finish(await other.gateway.next())


async def test_a_tick_that_a_full_host_could_not_fire_is_soon_fired_by_another() -> None:
    clock, store = Clock(), QuickStore()
    async with a_house(store, clock) as full, a_house(store, clock) as other:
        job = await a_job(other)
        clock.now = NOON + 1
        full.runs.live.admission.capacity = 0
        assert await full.scheduler.run_due() == 0
        assert await other.scheduler.run_due() == 1
        await finish(await other.gateway.next())
        assert await results(other, job) == [("fired", NOON)]


async def test_a_tick_that_no_other_host_takes_stands_in_line_at_one_that_is_full() -> None:
    clock = Clock()
    async with a_house(clock=clock) as full:
        job, admission = await a_job(full), full.runs.live.admission
        clock.now = NOON + 1
        admission.capacity = 0
        assert await full.scheduler.run_due() == 0
        clock.now += LEFT_SECONDS
        looking = asyncio.create_task(full.scheduler.run_due())
        async with asyncio.timeout(30):
            while not admission.waiting():
                await asyncio.sleep(0.01)
        admission.capacity = 1
        admission.admit_waiting()
        await finish(await full.gateway.next())
        assert await looking == 1
        assert await results(full, job) == [("fired", NOON)]


async def test_a_tick_that_is_on_record_already_keeps_no_job_from_going_on() -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job_id = (await a_job(house)).row.job_id
        clock.now = NOON + 600  # too late to fire it
        await house.store.write([TickRow(job_id, NOON, "skipped", NOON, next_at=NOON)])
        assert await house.scheduler.run_due() == 1
        row = await house.store.automation(job_id)
        assert row is not None
        assert row.next_at is not None
        assert row.next_at > NOON


async def test_a_tick_that_could_not_be_fired_is_soon_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    async with a_house(clock=clock) as house:
        job = await a_job(house)
        clock.now = NOON + 1

        async def busy(*_: Any) -> Any:
            raise HostError(ErrorCode.UNAVAILABLE, "your workspace has its share of this host", retryable=True)

        with monkeypatch.context() as patch:
            patch.setattr(house.inbox, "accept", busy)
            await house.scheduler.run_due()
        assert await house.scheduler.run_due() == 0
        clock.now += AGAIN_SECONDS
        await house.scheduler.run_due()
        await finish(await house.gateway.next())
        assert await results(house, job) == [("fired", NOON)]


async def test_a_host_that_died_with_a_claim_holds_a_tick_up_only_for_a_while(tmp_path: Path) -> None:
    clock = Clock()
    with open_plug("sqlite", tmp_path) as store:
        async with a_house(store, clock) as house:
            job = await a_job(house, missed="run_once")
            clock.now = NOON + 1
            await store.write([JobClaim(job.row.job_id, NOON, "dead", clock.now + 60, clock.now)])
            assert await house.scheduler.run_due() == 0
            clock.now += 61
            assert await house.scheduler.run_due() == 1
            await finish(await house.gateway.next())
            await house.until(job.row.thread_id, "AGENT_OUTPUT:FINAL")
        await store.close()


async def test_the_loop_sleeps_until_a_tick_and_is_woken_by_a_new_job() -> None:
    began: list[float] = []  # until the job is made the clock stands still: that may take any time
    async with a_house(clock=lambda: NOON - 0.3 + (time.monotonic() - began[0] if began else 0)) as house:
        loop = asyncio.create_task(house.scheduler.run())
        await asyncio.sleep(0)
        job = await a_job(house)
        began.append(time.monotonic())
        run = await house.gateway.next()
        await finish(run)
        assert await results(house, job) == [("fired", NOON)]
        loop.cancel()
