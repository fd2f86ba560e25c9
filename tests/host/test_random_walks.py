"""The real loop and the pure machine, side by side: whatever people and agents do, in whatever order, they agree.

Agents here answer late, twice or never: any run may be made to say anything at any time, also after its end. After
every step the machine, given the same messages, must be in the same state and have said the same as the log.
"""

import asyncio
import contextlib
import gc
import random
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Self, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from host.scripted import ANN, AtRunner, ScriptedGateway, SmallHouse, small_house
from host.still_loop import StillLoop
from paddock.host.session import arrivals, draft
from paddock.host.session.loop import SessionLoop
from paddock.rules.errors import HostError
from paddock.rules.log.chain import recalled
from paddock.rules.session.bus import FROM_PEOPLE
from paddock.rules.session.commands import EndRun
from paddock.rules.session.decide import decide, step
from paddock.rules.session.facts import Fact
from paddock.rules.session.messages import AckTimedOut, CancelTimedOut, ConfirmTimedOut, ManagerTimedOut, Message
from paddock.rules.session.state import SessionState
from stores import QuickStore

AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", while_busy: %s}
  two: {runner: "plugin:test/two/default", while_busy: %s}
"""
POLICIES = ["queue", "steer", "interrupt", "reject"]
OFTEN = ["CANCEL", "HANDOVER_CONFIRM", "SESSION_OPEN"]
WISHES = sorted([*FROM_PEOPLE, *OFTEN])
NAMES = st.sampled_from(["one", "two"])


@pytest.fixture
def nothing_waits_for_company(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience in ("QUIET_SECONDS", "PIECE_SECONDS"):
        monkeypatch.setattr(arrivals, patience, 0.0)


class Session:
    """One conversation in a house of its own, and the machine that is told the same."""

    def __init__(self, policies: tuple[str, str]) -> None:
        self.thread = str(uuid.uuid4())
        self.gateway = ScriptedGateway(steering=True)
        self.messages: list[Message] = []
        self.runs: list[AtRunner] = []
        self.model = SessionState()
        self.facts: list[Fact] = []
        self.heard: dict[int, str] = {}
        self.ends: dict[str, int] = {}
        loop, store = asyncio.get_running_loop(), QuickStore()
        if isinstance(loop, StillLoop):
            loop.wait_for(lambda: store.is_idle)
        self._context = small_house(store, gateway=self.gateway, agents=AGENTS % policies, clock=loop.time)

    async def __aenter__(self) -> Self:
        self.house: SmallHouse = await self._context.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._context.__aexit__(None, None, None)

    async def loop(self) -> SessionLoop:
        return await self.house.sessions.open(self.thread)

    async def do(self, deed: Awaitable[object]) -> None:
        """A refusal is an answer like any other."""
        with contextlib.suppress(HostError):
            await deed
        await self.settle()

    async def settle(self) -> None:
        """Until the loop rests and the manager has answered. A moment passes only when nothing more can be done."""
        async with asyncio.timeout(30):
            while True:
                await asyncio.sleep(0.0001)
                loop = await self.loop()
                while not self.gateway.started.empty():
                    self.runs.append(self.gateway.started.get_nowait())
                asked = any(found.waiting == "MANAGER" for found in loop.state.transactions)
                if loop.at_rest and not asked:
                    return

    async def agree(self) -> None:
        """The machine hears what the loop heard since, and must be where the loop is."""
        for message in self.messages:
            self.model, decision = step(self.model, message)
            self.facts += decision.facts
            for command in decision.commands:
                if isinstance(command, EndRun):
                    self.ends[command.turn_id] = self.ends.get(command.turn_id, 0) + 1
        self.messages.clear()
        assert (await self.loop()).state == self.model
        assert all(count == 1 for count in self.ends.values())
        stored = sorted(await self.house.store.read(self.thread, limit=1_000_000), key=lambda fact: fact.seq)
        said = {number: fact.kind for number, fact in enumerate(self.facts, 1)}
        self.heard |= {fact.seq: recalled(fact).kind for fact in stored if fact.seq not in self.heard}
        there = {fact.seq for fact in stored}
        assert {(number, self.heard[number]) for number in there} <= said.items()
        assert all(fact.is_delta for number, fact in enumerate(self.facts, 1) if number not in there)


class Walk(RuleBasedStateMachine):
    """What may happen, one thing at a time."""

    @initialize(one=st.sampled_from(POLICIES), two=st.sampled_from(POLICIES))
    def begin(self, one: str, two: str) -> None:
        self.events = StillLoop()
        self._decide = draft.decide
        draft.decide = self._overheard
        self.session = self.run(self._enter((one, two)))

    async def _enter(self, policies: tuple[str, str]) -> Session:
        return await Session(policies).__aenter__()

    def _overheard(self, state: SessionState, message: Message) -> Any:
        self.session.messages.append(message)
        return decide(state, message)

    def run(self, work: Any) -> Any:
        return self.events.run_until_complete(work)

    def act(self, deed: Callable[[], Awaitable[object]]) -> None:
        async def acted() -> None:
            await self.session.do(deed())

        self.run(acted())

    def teardown(self) -> None:
        if not hasattr(self, "events"):
            return
        try:
            self.run(self._end())
        finally:
            draft.decide = self._decide
            self.events.close()

    async def _end(self) -> None:
        for at_runner in self.session.runs:
            at_runner.may_stop.set()
        await self.session.settle()
        await self.session.agree()
        await self.session.__aexit__()

    def agent(self, data: st.DataObject) -> AtRunner:
        """Mostly the newest run; now and then one that is long over."""
        back = data.draw(st.sampled_from([1, 1, 1, 2, 3]))
        return self.session.runs[-min(back, len(self.session.runs))]

    def tell(self, message: Message) -> None:
        async def posted() -> None:
            (await self.session.loop()).post(message)

        self.act(posted)

    # --- people ------------------------------------------------------------------------------------------------------

    @rule(asked=st.none() | NAMES)
    def somebody_speaks(self, asked: str | None) -> None:
        self.act(lambda: self.session.house.say("hi", thread=self.session.thread, agent_id=asked))

    @rule(
        subtype=st.sampled_from(WISHES),
        agent_id=NAMES,
        activate=st.booleans(),
    )
    def somebody_wants(self, subtype: str, agent_id: str, activate: bool) -> None:
        more = {"agent_id": agent_id, "activate": activate}
        self.act(lambda: self.session.house.control(subtype, thread=self.session.thread, **more))

    # --- agents ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.session.runs)
    @rule(data=st.data(), word=st.sampled_from(["ack", "delta", "message", "final", "failed", "lost", "handover"]))
    def an_agent_says(self, data: st.DataObject, word: str) -> None:
        run = self.agent(data)

        async def said() -> None:
            match word:
                case "ack":
                    run.listener.acknowledged()
                case "delta":
                    run.delta("word ")
                case "message":
                    run.message("words")
                case "final":
                    run.say("run.completed")
                case "failed":
                    run.say("run.failed", code="x", message="y")
                case "lost":
                    run.listener.lost("runner.crashed", "gone")
                case _:
                    payload = {"target_agent_id": "two", "reason": "r", "summary": "s"}
                    run.say("action.requested", action="session.handover", target={}, payload=payload)

        self.act(said)

    @precondition(lambda self: self.session.runs)
    @rule(data=st.data())
    def an_agent_stops(self, data: st.DataObject) -> None:
        run = self.agent(data)

        async def stopped() -> None:
            run.may_stop.set()

        self.act(stopped)

    # --- timers, in time, late and early -----------------------------------------------------------------------------

    @precondition(lambda self: self.session.model.turn is not None)
    @rule(kind=st.sampled_from([AckTimedOut, CancelTimedOut]))
    def a_timer_of_the_turn_rings(self, kind: type) -> None:
        assert self.session.model.turn is not None
        self.tell(kind(self.session.model.turn.turn_id, 0.0))

    @precondition(lambda self: self.session.model.transactions)
    @rule(kind=st.sampled_from([ManagerTimedOut, ConfirmTimedOut]))
    def a_timer_of_a_transaction_rings(self, kind: type) -> None:
        self.tell(kind(self.session.model.transactions[0].tx_id, 0.0))

    @invariant()
    def they_agree(self) -> None:
        if hasattr(self, "session"):
            self.run(self.session.agree())


SHORT = settings(
    max_examples=100,
    stateful_step_count=100,
    deadline=None,
    suppress_health_check=cast("Any", list(HealthCheck)),
    print_blob=True,
)


@pytest.mark.usefixtures("no_threads", "nothing_waits_for_company")
@pytest.mark.timeout(300)
def test_the_loop_and_the_machine_agree_step_by_step() -> None:
    run_state_machine_as_test(Walk, settings=SHORT)
    gc.collect()  # what the walks left behind is not the next test's


@pytest.mark.long
@pytest.mark.usefixtures("no_threads", "nothing_waits_for_company")
@pytest.mark.timeout(3600)
def test_the_loop_and_the_machine_agree_over_two_thousand_long_walks() -> None:
    run_state_machine_as_test(Walk, settings=settings(SHORT, max_examples=2_000))


# --- cancel races -----------------------------------------------------------------------------------------------------


async def race(house: SmallHouse, chance: random.Random) -> str:
    """One run against one cancel, each step after a random number of turns of the event loop; how it ended."""
    thread = str(uuid.uuid4())
    accepted = await house.say("go", thread=thread)
    run = await house.gateway.next(ack=False)
    slowness = chance.choice((12, 100, 1_000, 4_000))  # from far less than a commit takes to far more, on any machine

    async def agent() -> None:
        for say in (
            run.listener.acknowledged,
            lambda: run.delta("a"),
            lambda: run.delta("b"),
            lambda: run.message("ab"),
        ):
            await pause(chance, slowness)
            say()
        await pause(chance, slowness)
        run.say("run.completed")

    async def stopping() -> None:
        await run.asked_to_stop.wait()
        await pause(chance)
        run.may_stop.set()

    async def person() -> None:
        for _ in range(2):
            await pause(chance, 40)
            await house.inbox.cancel(await house.run(accepted), ANN)

    answering = asyncio.create_task(stopping())
    await asyncio.gather(agent(), person())
    kinds = [entry.fact.kind for entry in await house.story(accepted)]
    answering.cancel()
    ended = [kind for kind in kinds if kind in {"AGENT_OUTPUT:FINAL", "EVENT:CANCELED"}]
    later = [fact.kind for fact in await house.store.read(thread, run_id=accepted.run_id)]
    assert len(ended) == 1, (kinds, ended)
    assert later.index(ended[0]) == len(later) - 1, later
    row = await house.run(accepted)
    assert (row.status == "completed") == (ended == ["AGENT_OUTPUT:FINAL"])
    if "CONTROL:CANCEL" in kinds:
        assert row.status in {"cancelled", "completed"}
    return row.status


async def pause(chance: random.Random, most: int = 12) -> None:
    for _ in range(chance.randrange(most)):
        await asyncio.sleep(0)


async def races(count: int) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    async with small_house() as house:
        ends = [await race(house, chance) for _ in range(count)]
    assert set(ends) == {"cancelled", "completed"}, f"seed {seed}: the races were not close: {set(ends)}"


@pytest.mark.anyio
async def test_a_cancel_is_never_lost_and_no_turn_ends_twice_in_two_hundred_races() -> None:
    await races(200)


@pytest.mark.long
@pytest.mark.anyio
async def test_the_same_in_two_thousand_races() -> None:
    await races(2_000)
