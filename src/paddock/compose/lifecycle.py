"""The first and the last acts of a host: readiness, recovery, warming agents up, ending runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from paddock.compose.ground import Tasks
from paddock.host.agents.agents import Agents
from paddock.host.audit import Audit
from paddock.host.calls.settling import Settling
from paddock.host.cluster.peers import Peers
from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import HOME
from paddock.host.runs.agent_health import AgentHealth
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.live_runs import Admission
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.runs import Runs
from paddock.host.session.sessions import Sessions
from paddock.ports import Store
from paddock.rules.cluster import RESTARTED, SHUT_DOWN, WHY
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.session.messages import RunFailed
from paddock.runners.gateway import Gateway

log = structlog.get_logger("paddock.house")

CHOSEN = ("file", "api")
"""Origins of agents that a person defined."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at the agents file and the list of installed plugins."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """Ends runs and calls that have no host any more."""

    sessions: Sessions
    settling: Settling
    approvals: Approvals
    peers: Peers | None
    tasks: Tasks

    async def end_interrupted_runs(self) -> None:
        interrupted = await self._recover()
        if interrupted:
            text = "runs of an earlier start were brought to their end"
            log.info(text, action="house.recover", sessions=interrupted)

    async def settle_calls(self) -> None:
        """Settle calls of tools and models and actions on platforms that were under way when the host ended.

        With several hosts one of them does it now and then.
        """
        if self.peers is None:
            await self.settling.settle()
            await self.approvals.recover()
            self.tasks.spawn(self.settling.keep_settling())

    async def _recover(self) -> int:
        if self.peers is None:
            return await self.sessions.recover(RESTARTED, WHY[RESTARTED])
        await self.peers.start()
        if self.peers.link.bus_is_away():
            text = "the bus does not answer, so what other hosts say comes late; `paddock doctor` asks for it"
            log.warning(text, action="house.bus")
        self.tasks.spawn(self.peers.keep_beating())
        self.tasks.spawn(self.peers.answering.keep_answering())
        return await self.peers.take_over()


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Learns what the agents' runners ask for before the first run needs it."""

    agents: Agents
    runs: Runs

    async def prepare(self) -> None:
        """Prepare agents that a person defined, and the default one. The processes of others start when they are
        called."""
        first = self.agents.default_agent_id
        for binding in (one for one in self.agents.list(HOME) if one.origin in CHOSEN or one.agent_id == first):
            await self.runs.authority.prepare(binding.agent_id, HOME)
            if refusal := self.runs.authority.refusal(binding.agent_id, HOME):
                about = {"agent": binding.agent_id, "runner_id": binding.runner_id, "reason": refusal.for_operators}
                log.warning("an agent cannot answer", action="house.warm_up", **about)

    async def keep_looking(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Look for changes for as long as the host runs, and prepare the agents after each."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await look():
                await self.prepare()


SHUTDOWN_SECONDS = 5.0
"""Time for running turns to have their end recorded when the host stops."""
NOTE_SECONDS = 1.0
DRAIN_SECONDS = 5.0
"""Time for running turns to finish when the host stops and other hosts go on with the rest."""
DRAIN_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Ending:
    store: Store
    runs: Runs
    sessions: Sessions
    audit: Audit
    peers: Peers | None
    clock: Callable[[], float]

    async def drain(self) -> None:
        """Accept nothing new. Where other hosts go on, let running turns finish for a while; new requests are sent
        there."""
        self.runs.live.admission.close()
        if self.peers is None or not self.peers.members.others:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + DRAIN_SECONDS
        while self.runs.live and self.store.healthy() and loop.time() < end:  # noqa: ASYNC110 - many runs, one moment
            await asyncio.sleep(DRAIN_LOOK_SECONDS)

    async def end_runs(self) -> None:
        if not self.runs.live.admission.closed:
            await self.drain()
        if self.peers is not None and self.peers.members.others:
            await self._hand_over(self.peers)
        else:
            await self._end_all()
        self.sessions.leave()

    @property
    def _patience(self) -> float:
        """Time for the last writes of a host that stops; short when the store is away."""
        return SHUTDOWN_SECONDS if self.store.healthy() else NOTE_SECONDS

    async def _hand_over(self, peers: Peers) -> None:
        """Leave unfinished runs to the other hosts, which end them and go on with what waits."""
        left = len(self.runs.live)
        try:
            async with asyncio.timeout(self._patience):
                await self.audit.flush()
                await peers.leave()
        except (TimeoutError, StorageUnavailableError):
            log.warning("the others will find out by themselves", action="house.close")
        self.sessions.drop_all(leaving=True)
        log.info("the others go on", action="house.close", runs=left)

    async def _end_all(self) -> None:
        self.runs.refuse_new()
        self.sessions.hold()
        ending = [self._end(run) for run in self.runs.live]
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*ending, return_exceptions=True)
                await self.audit.flush()
        except (TimeoutError, StorageUnavailableError):
            log.warning("not every run could be brought to its end before stopping", action="house.close")

    async def _end(self, run: LiveRun) -> None:
        try:
            await run.session.record(RunFailed(run.run_id, SHUT_DOWN, WHY[SHUT_DOWN], at=self.clock()))
        except HostError as error:
            reason = error.message
            log.warning("a run's end could not be recorded", action="house.close", run_id=run.run_id, reason=reason)


async def note_the_rest(outcomes: Outcomes, audit: Audit) -> None:
    """Write the audit rows and outcomes that came up while runs were being stopped."""
    try:
        async with asyncio.timeout(NOTE_SECONDS):
            await outcomes.written()
            await audit.close()
    except (TimeoutError, StorageUnavailableError) as error:
        log.warning("the last rows of the audit could not be written", action="house.close", reason=str(error))
    await outcomes.close()


@dataclass(slots=True)
class Readiness:
    store: Store
    admission: Admission
    health: AgentHealth
    gateway: Gateway
    peers: Peers | None
    is_open: bool = False

    def opened(self) -> None:
        self.is_open = True

    def closing(self) -> None:
        self.is_open = False

    def now(self) -> tuple[bool, str]:
        if self.admission.closed:
            return False, "being stopped"
        if not self.is_open:
            return False, "starting"
        if not self.store.healthy():
            return False, "the store cannot write"
        if self.admission.full:
            return False, "full: as many runs as max_runs allows"
        if self.peers is not None and not self.peers.members.held():
            return False, "the others may take this host for gone"
        return True, "; ".join(["ready", *self._remarks()])

    def _remarks(self) -> list[str]:
        unable = self.health.unable(HOME)
        remarks = [f"{unable} of the agents cannot answer (GET /api/v1/agents says which)"] if unable else []
        if failing := self.gateway.failing():
            remarks.append(f"{failing} of the runners keep failing (GET /api/v1/runners says which)")
        if self.health.file_problem is not None:
            remarks.append(
                "the agents file cannot be used, so the agents stay as they were (GET /api/v1/agents says why)"
            )
        if self.peers is not None and self.peers.link.bus_is_away():
            remarks.append("the bus is away: streams of other hosts are read from the store")
        return remarks
