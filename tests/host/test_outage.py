"""A store that is away for a moment while a run is live: it waits and goes on, nothing is lost or written twice."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import paddock.host.outage as outage_module
import paddock.host.session.sessions as sessions_module
from host.calling import encoded
from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from host.test_when_things_break import HERE, a_thread, brought_back, ended, until
from paddock.host.outage import Outage
from paddock.host.session.arrivals import Accepted, Arrival
from paddock.host.session.loop import SessionLoop
from paddock.ports import Batch
from paddock.rules.cluster import SURE_SECONDS
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError
from paddock.rules.session.messages import CloseRequested, RunFailed
from stores import QuickStore, reached_otherwise

pytestmark = pytest.mark.anyio

IMPATIENT = 'default_agent: one\nagents:\n  one: {runner: "plugin:test/one/default", deadline_seconds: 0.2}\n'


class AwayStore(QuickStore):
    """A store that can be taken away and given back."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.goes_with_the_next = False
        """Whether it goes away just when the next append is on record, before it can say so."""
        self.goes_when_read = False
        self.tried = 0
        """How often something was to be done with it while it was away, and was refused."""
        self.looked_at = 0
        """How often somebody looked whether it was back."""

    def healthy(self) -> bool:
        self.looked_at += self.away
        return super().healthy() and not self.away

    async def append(self, batch: Batch) -> None:
        self._check()
        await super().append(batch)
        if self.goes_with_the_next:
            self.away, self.goes_with_the_next = True, False
            self._check()

    async def took(self, batch: Batch) -> bool:
        self._check()
        return await super().took(batch)

    async def write(self, rows) -> None:
        self._check()
        await super().write(rows)

    async def state_snapshot(self, scope_keys, *, max_bytes: int):
        self.away, self.goes_when_read = self.away or self.goes_when_read, False
        self._check()
        return await super().state_snapshot(scope_keys, max_bytes=max_bytes)

    def _check(self) -> None:
        if self.away:
            self.tried += 1
            raise StorageUnavailableError("away")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage_module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(sessions_module, "RETRY_SECONDS", 0.02)


@asynccontextmanager
async def leased(store: QuickStore, **more) -> AsyncGenerator[SmallHouse]:
    """A house that may count on its lease."""
    given: dict[str, Any] = {"held": lambda: True, **more}
    async with small_house(store, **given) as house:
        yield house


async def begun(house: SmallHouse, thread: str, **more) -> tuple[Accepted, AtRunner]:
    accepted = await house.say("a", thread=thread, **more)
    at_runner = await house.gateway.next()
    at_runner.delta("0 ")
    await house.until(thread, "AGENT_OUTPUT:CHUNK")
    return accepted, at_runner


async def said(house: SmallHouse, thread: str) -> list[str]:
    """What its agent said, as the transcript has it."""
    items = await house.store.transcript(thread, newest_first=False)
    return [item.content for item in items if item.role == "assistant"]


@pytest.mark.parametrize("taken", [False, True], ids=["not written", "written and never answered"])
async def test_a_live_run_goes_on_when_the_store_is_back_with_every_word_once(taken: bool) -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away, store.goes_with_the_next = not taken, taken
        for number in range(1, 4):
            at_runner.delta(f"{number} ")
            await until(lambda: store.away)
        at_runner.message("0 1 2 3 4")
        at_runner.say("run.completed")
        await until(lambda: store.tried)
        assert not at_runner.forced
        store.away = False
        assert await ended(house, accepted) == ("completed", None)
        assert await said(house, thread) == ["0 1 2 3 4"]
        numbers = sorted(fact.seq for fact in await store.read(thread, limit=1000))
        assert numbers == sorted(set(numbers))
        assert brought_back() == []


async def test_what_a_runner_says_meanwhile_stays_within_its_credit() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        given = at_runner.credit
        store.away = True
        for _ in range(200):
            at_runner.delta("x")
        await until(lambda: store.tried)
        assert at_runner.credit == given
        store.away = False
        await until(lambda: at_runner.credit > given)
        at_runner.say("run.completed")
        assert await ended(house, accepted) == ("completed", None)


async def test_new_work_is_refused_at_once_and_is_not_done_later() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        for moment in ("before anything was to be written", "while the turn waits"):
            with pytest.raises(HostError) as refused:
                await asyncio.wait_for(house.say("b", thread=thread, run=moment), 5)
            assert (refused.value.code, refused.value.retryable) == (ErrorCode.UNAVAILABLE, True)
            at_runner.delta("1 ")
            await until(lambda: store.tried)
        with pytest.raises(HostError, match="cannot write now"):
            await asyncio.wait_for(house.control("SESSION_CLOSE", thread=thread), 5)
        store.away = False
        at_runner.say("run.completed")
        assert await ended(house, accepted) == ("completed", None)
        assert house.gateway.started.empty()


async def test_input_whose_outcome_was_unknown_is_refused_soon_and_asked_again_has_one_answer() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        first, at_runner = await begun(house, thread)
        store.goes_with_the_next = True
        with pytest.raises(HostError, match="what has the same runId is done once"):
            await asyncio.wait_for(house.say("b", thread=thread, run="r"), 5)
        store.away = False
        second = await again(house, thread, "r")
        at_runner.say("run.completed")
        later = await house.gateway.next()
        later.say("run.completed")
        assert later.run_id == second.run_id
        assert await ended(house, first) == await ended(house, second) == ("completed", None)


async def again(house: SmallHouse, thread: str, run: str) -> Accepted:
    """As a client that was told to try again."""
    async with asyncio.timeout(30):
        while True:
            with suppress(HostError):
                return await house.say("b", thread=thread, run=run)
            await asyncio.sleep(0.01)


async def test_a_cancel_waits_for_the_store_and_ends_the_run() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        at_runner.may_stop.set()
        run = await house.run(accepted)
        store.away = True
        at_runner.delta("1 ")
        await until(lambda: store.tried)
        cancel = asyncio.create_task(house.inbox.cancel(run, ANN))
        await asyncio.sleep(0)
        assert not cancel.done()
        store.away = False
        await cancel
        assert await ended(house, accepted) == ("cancelled", "cancelled")


async def test_a_deadline_that_passes_meanwhile_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    store, thread, arrived, post = AwayStore(), a_thread(), list[Arrival](), SessionLoop.post
    monkeypatch.setattr(SessionLoop, "post", lambda loop, arrival: (arrived.append(arrival), post(loop, arrival)))
    async with leased(store, agents=IMPATIENT) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        at_runner.delta("1 ")
        await until(lambda: any(isinstance(arrival, RunFailed) for arrival in arrived))
        store.away = False
        assert await ended(house, accepted) == ("failed", "deadline_exceeded")


async def test_a_run_ends_as_before_when_the_store_is_away_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage_module, "SURE_SECONDS", 0.1)
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        at_runner.delta("1 ")
        await until(lambda: at_runner.forced)
        store.away = False
        assert await ended(house, accepted) == ("failed", "storage_unavailable")


async def test_nobody_waits_when_the_lease_is_not_sure() -> None:
    store, thread = AwayStore(), a_thread()
    sure = True
    async with leased(store, held=lambda: sure) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        at_runner.delta("1 ")
        await until(lambda: store.tried)
        assert not at_runner.forced
        sure = False
        await until(lambda: at_runner.forced)
        store.away = False
        assert await ended(house, accepted) == ("failed", "storage_unavailable")


async def test_a_session_that_another_host_went_on_with_is_not_written_any_more() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        at_runner.delta("1 ")
        await until(lambda: store.tried)
        reached = reached_otherwise(store)
        async with small_house(reached) as elsewhere:
            await elsewhere.sessions.take_over([(thread, "host_lost", "its host is gone")])
        before = await reached.read(thread)
        store.away = False
        await until(lambda: at_runner.forced)
        await until(lambda: not brought_back())
        assert await store.read(thread) == before
        assert (await house.run(accepted)).code == "host_lost"
        await house.audit.flush()
        assert [row.result for row in await store.audit(limit=100)].count("stale_owner") == 1


@pytest.mark.parametrize("moment", ["before it waits", "while it waits"])
async def test_a_host_that_is_declared_gone_meanwhile_gives_up_what_waits(moment: str) -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        run, session = await house.run(accepted), await house.sessions.open(thread)
        store.away = True
        cancel = asyncio.create_task(house.inbox.cancel(run, ANN))
        await until(lambda: session.waits_for_store)
        if moment == "while it waits":
            await asyncio.sleep(0)
        house.sessions.drop_all(leaving=True)
        with pytest.raises(HostError):
            await asyncio.wait_for(cancel, 5)
        await until(lambda: at_runner.forced)
        await until(lambda: not session.waits_for_store, SURE_SECONDS / 2)
        store.away = False


async def test_a_run_that_is_just_being_started_waits_too() -> None:
    store, thread = AwayStore(), a_thread()
    gateway = ScriptedGateway({"storage": ["plugin"], "state": ["get"]})
    async with leased(store, gateway=gateway) as house:
        store.goes_when_read = True
        accepted = await house.say("a", thread=thread)
        await until(lambda: store.tried)
        store.away = False
        at_runner = await house.gateway.next()
        at_runner.say("run.completed")
        assert await ended(house, accepted) == ("completed", None)


async def test_a_host_call_that_comes_meanwhile_waits_and_is_done() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        asked = {"run_id": at_runner.run_id, "scope": "conversation", "key": "k", "value": 1}
        call = asyncio.create_task(house.calls(HERE, "state.set", asked, 10))
        await until(lambda: store.looked_at > 2)
        assert not call.done()
        store.away = False
        await asyncio.wait_for(call, 5)
        at_runner.say("run.completed")
        assert await ended(house, accepted) == ("completed", None)


async def test_a_file_that_a_runner_announces_meanwhile_is_kept() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.away = True
        at_runner.say("artifact.created", artifact_type="file", name="a.txt", content_base64=encoded(b"hello"))
        at_runner.say("run.completed")
        await asyncio.sleep(0)
        store.away = False
        assert await ended(house, accepted) == ("completed", None)
        decided = [row.result for row in await store.audit(limit=100) if row.action == "artifact.created"]
        assert decided == ["allowed"]


# --- the write whose answer was lost


class Answers:
    """A log that answers as a test says."""

    def __init__(self, *answers: bool | Exception) -> None:
        self._answers = list(answers)
        self.healthy = lambda: True

    async def took(self, batch: Batch) -> bool:
        return self._next()

    async def append(self, batch: Batch) -> None:
        self._next()

    def _next(self) -> bool:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def is_done(self) -> bool:
        return not self._answers


STALE, AWAY = StaleOwnerError("stale"), StorageUnavailableError("away")


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([True], None),
        ([False, True], None),
        ([False, STALE, True], None),  # the lost attempt came through after all
        ([False, AWAY, True], None),
        ([AWAY, False, AWAY, False, True], None),
        ([STALE], StaleOwnerError),
        ([False, STALE, False], StaleOwnerError),  # the host was declared gone
        ([False, STALE, STALE], StaleOwnerError),
    ],
)
async def test_a_write_is_sent_again_only_when_the_log_says_that_it_was_not_taken(answers, outcome) -> None:
    told = Answers(*answers)
    outage = Outage(told, lambda: True)  # type: ignore[arg-type]
    batch = Batch("session", 1, None, None, [], [])  # type: ignore[arg-type]
    if outcome is None:
        await outage.settle(batch)
    else:
        with pytest.raises(outcome):
            await outage.settle(batch)
    assert told.is_done


async def test_a_store_that_answers_and_never_takes_it_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert outage_module.SURE_SECONDS == SURE_SECONDS
    monkeypatch.setattr(outage_module, "SURE_SECONDS", 0.1)
    outage = Outage(Answers(*[AWAY] * 100), lambda: True)  # type: ignore[arg-type]
    with pytest.raises(StorageUnavailableError, match="longer than this host"):
        await outage.settle(Batch("session", 1, None, None, [], []))  # type: ignore[arg-type]


async def test_an_end_that_was_taken_counts_though_another_host_has_gone_on_since() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.goes_with_the_next = True
        at_runner.message("0 1")
        at_runner.say("run.completed")
        await until(lambda: store.away)
        await reached_otherwise(store).claim(thread)
        store.away = False
        await until(lambda: not house.sessions.loops.works_on(thread))
        await house.audit.flush()
        assert await ended(house, accepted) == ("completed", None)
        assert [row.action for row in await store.audit(limit=100) if row.result == "stale_owner"] == []
        assert not at_runner.forced


async def test_a_control_whose_outcome_is_unknown_is_not_told_of_a_run_id() -> None:
    store, thread = AwayStore(), a_thread()
    async with leased(store) as house:
        accepted, at_runner = await begun(house, thread)
        store.goes_with_the_next = True
        session = await house.sessions.open(thread)
        with pytest.raises(HostError, match="look at the conversation before you ask again"):
            await session.record(CloseRequested("tx", ANN.user_id, at=1.0), principal=ANN)
        store.away = False
        at_runner.say("run.completed")
        await ended(house, accepted)
