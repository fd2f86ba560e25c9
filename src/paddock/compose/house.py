"""The parts, standing: how they open, how they are brought to rest, and the tasks they share."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from secrets import SystemRandom
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import structlog
from starlette.types import ASGIApp

from paddock.host.agents.agents import Agents
from paddock.host.agents.health import AgentHealth
from paddock.host.agents.stored import StoredAgents
from paddock.host.agents.watch import AgentsWatch
from paddock.host.automation.automations import Automations
from paddock.host.automation.calendar import Calendars
from paddock.host.automation.scheduler import Scheduler
from paddock.host.calls.tools import ToolCalls
from paddock.host.calls.workspace_resources import Offers
from paddock.host.cluster.attaching import Attaching
from paddock.host.cluster.peers import Peers
from paddock.host.cluster.secret import settle_secret
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.conversations.inbox import Inbox
from paddock.host.keeping.audit import Audit
from paddock.host.keeping.deletion import Keeping
from paddock.host.keeping.retention import Retention
from paddock.host.keeping.sweeping import Sweeper
from paddock.host.people.approvals import PERFORM_SECONDS, Approvals
from paddock.host.people.principals import HOME
from paddock.host.people.taking_over import TakingOver
from paddock.host.people.users import Users
from paddock.host.platforms.deliveries import Deliveries
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platforms
from paddock.host.runs.endpoints import RunEndpoints
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.runs import Runs
from paddock.host.session.controls import Controls
from paddock.host.session.sessions import Sessions
from paddock.host.streams.open_streams import OpenStreams
from paddock.host.streams.tails import Tails
from paddock.http_api.mcp.door import McpDoor
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.models.catalog import ModelCatalog
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.ports.platforms import Webhooks
from paddock.rules.cluster.leases import RESTARTED, WHY
from paddock.rules.cluster.secret import ClusterSecret
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.session.messages import RunFailed
from paddock.runners.gateway import Gateway
from paddock.runners.installed.plugins_watch import PluginsWatch
from paddock.runners.installed.shared_plugins import SharedPlugins
from paddock.telemetry.loop_watch import LoopWatch
from paddock.telemetry.metrics import Metrics
from paddock.tools.catalog import ToolCatalog
from paddock.tools.mcp import McpTools

if TYPE_CHECKING:
    from paddock.telemetry.traces import Traces

log = structlog.get_logger("paddock.house")

CHOSEN = ("file", "api")
"""Origins of agents that somebody wrote down."""
SHUTDOWN_SECONDS = 5.0
"""How long running turns get to have their end recorded when the host stops."""


NOTE_SECONDS = 1.0
LOOK_SECONDS = 1.0
"""How often the agents file and the list of installed plugins are looked at."""
DRAIN_SECONDS = 5.0
"""How long running turns may go on when the host stops and others are there to go on with the rest."""
DRAIN_LOOK_SECONDS = 0.05


async def nothing_yet(*_: object) -> None:
    raise RuntimeError("the house has no doors yet")


class Tasks:
    """Every task of the house has this owner: it is started here, its failure is logged, and it ends with the house."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the house failed", action="house.task", exc_info=error)


@dataclass(slots=True)
class House:
    """The parts, standing."""

    store: Store
    blobs: Blobs
    sweeper: Sweeper
    keeping: Keeping
    retention: Retention
    gateway: Gateway
    plugins_watch: PluginsWatch
    sessions: Sessions
    tails: Tails
    runs: Runs
    inbox: Inbox
    controls: Controls
    users: Users
    audit: Audit
    outcomes: Outcomes
    agents: Agents
    approvals: Approvals
    attaching: Attaching
    open_streams: OpenStreams
    taking_over: TakingOver
    attachments: UserAttachments
    scheduler: Scheduler
    platforms: Platforms
    webhooks: Webhooks
    deliveries: Deliveries
    ingress: Ingress
    automations: Automations
    calendars: Calendars
    tasks: Tasks
    ingest: Ingest
    bases: Bases
    offers: Offers
    models: ModelCatalog
    tools: ToolCatalog
    tool_calls: ToolCalls
    mcp: McpTools
    run_endpoints: RunEndpoints
    run_door: McpDoor
    """What a run's own endpoint is served by; a sandbox reaches nothing else of the host."""
    stored_agents: StoredAgents
    secret: ClusterSecret
    health: AgentHealth
    clock: Callable[[], float]
    metrics: Metrics
    traces: "Traces | None" = None
    """Sent to a collector, if one is set."""
    peers: Peers | None = None
    """The other hosts, where several may share the store."""
    watch: AgentsWatch | None = None
    """Over the agents file, if there is one."""
    shared_plugins: SharedPlugins | None = None
    """What all hosts have, where several may share the store."""
    loop_watch: LoopWatch = field(default_factory=LoopWatch)
    app: ASGIApp = field(default_factory=lambda: nothing_yet)
    _open: bool = field(default=False)

    def ready(self) -> tuple[bool, str]:
        if self.runs.admission.closed:
            return False, "being stopped"
        if not self._open:
            return False, "starting"
        if not self.store.healthy():
            return False, "the store cannot write"
        if self.runs.admission.full:
            return False, "full: as many runs as max_runs allows"
        if self.peers is not None and not self.peers.held():
            return False, "the others may take this host for gone"
        return True, "; ".join(["ready", *self._remarks()])

    def _remarks(self) -> list[str]:
        """What does not keep the host from working, but somebody should see to. Numbers only: no key is needed here."""
        unable = self.health.unable(HOME)
        remarks = [f"{unable} of the agents cannot answer (GET /api/v1/agents says which)"] if unable else []
        if failing := self.gateway.failing():
            remarks.append(f"{failing} of the runners keep failing (GET /api/v1/runners says which)")
        if self.health.file_problem is not None:
            remarks.append(
                "the agents file cannot be used, so the agents stay as they were (GET /api/v1/agents says why)"
            )
        if self.peers is not None and self.peers.bus_is_away():
            remarks.append("the bus is away: streams of other hosts are read from the store")
        return remarks

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open everything, bring what was left unfinished to its end, and close it all again."""
        self.loop_watch.start()
        try:
            async with self._standing():
                yield
        finally:
            self.loop_watch.stop()

    @asynccontextmanager
    async def _standing(self) -> AsyncGenerator[None]:
        await self.store.open()
        await settle_secret(self.store, self.secret, shared=self.peers is not None)
        await self.blobs.open()
        await self.gateway.start()
        await self.stored_agents.load()
        try:
            interrupted = await self._recover()
            if interrupted:
                log.info(
                    "runs of an earlier start were brought to their end", action="house.recover", sessions=interrupted
                )
            await self._settle_calls()
            self.tasks.spawn(self._warm_up())
            self.tasks.spawn(self.models.warm_up())
            self.mcp.start(self.tasks.spawn)
            self.tasks.spawn(self.sessions.keep_queues_moving())
            self.tasks.spawn(self.open_streams.keep_looking())
            self.tasks.spawn(self.ingest.run())
            self.tasks.spawn(self.scheduler.run())
            self.tasks.spawn(self.deliveries.run())
            self.tasks.spawn(self.sweeper.keep_sweeping())
            self.tasks.spawn(self.retention.keep_sweeping(SystemRandom().random))
            if self.watch is not None:
                self.tasks.spawn(self._keep_looking(self.watch.look))
            self.tasks.spawn(self._keep_looking(self.plugins_watch.look))
            if self.shared_plugins is not None:
                self.tasks.spawn(self.shared_plugins.run())
            self._open = True
            yield
        finally:
            self._open = False
            await self._close()

    async def _recover(self) -> int:
        """What has no owner any more is brought to its end."""
        if self.peers is None:
            return await self.sessions.recover(RESTARTED, WHY[RESTARTED])
        await self.peers.start()
        if self.peers.bus_is_away():
            text = "the bus does not answer, so what other hosts say comes late; `paddock doctor` asks for it"
            log.warning(text, action="house.bus")
        self.tasks.spawn(self.peers.keep_beating())
        self.tasks.spawn(self.peers.owners.keep_answering())
        return await self.peers.take_over()

    async def _settle_calls(self) -> None:
        """What was being done when its host ended: calls of tools, actions on platforms. Where several hosts are, one
        of them looks for it now and then, whoever took the sessions over."""
        if self.peers is None:
            await self.tool_calls.settle()
            await self.approvals.recover()
            self.tasks.spawn(self.tool_calls.keep_settling())
        else:
            self.peers.chores.add(partial(self.tool_calls.settle, alone=False))
            self.peers.chores.add(partial(self.approvals.recover, alone=False), every=PERFORM_SECONDS / 3)

    async def _keep_looking(self, look: Callable[[], Awaitable[bool]]) -> None:
        """For as long as the house stands. When a look took something up, the agents are made ready for it."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await look():
                await self._warm_up()

    async def _warm_up(self) -> None:
        """Learn what the agents' runners ask for before the first run needs it.

        Only those somebody chose, and the one that answers when nobody is named: the others' processes start when
        they are called.
        """
        first = self.agents.default_agent_id
        for binding in (one for one in self.agents.list(HOME) if one.origin in CHOSEN or one.agent_id == first):
            await self.runs.prepare(binding.agent_id, HOME)
            if refusal := self.runs.authority.refusal(binding.agent_id, HOME):
                about = {"agent": binding.agent_id, "runner_id": binding.runner_id, "reason": refusal.for_operators}
                log.warning("an agent cannot answer", action="house.warm_up", **about)

    async def drain(self) -> None:
        """Take nothing new. Where others go on with it, let running turns finish for a while; whoever comes meanwhile
        is told to try there."""
        self.runs.admission.closed = True
        if self.peers is None or not self.peers.others:
            return
        loop = asyncio.get_running_loop()
        end = loop.time() + DRAIN_SECONDS
        while self.runs.live and self.store.healthy() and loop.time() < end:  # noqa: ASYNC110 - many runs, one moment
            await asyncio.sleep(DRAIN_LOOK_SECONDS)

    async def _close(self) -> None:
        if not self.runs.admission.closed:
            await self.drain()
        if self.peers is not None and self.peers.others:
            await self._hand_over(self.peers)
        else:
            await self._end_all()
        self.sessions.leave()
        await self.gateway.stop()
        await self.models.close()
        await self.tasks.stop()
        await self._note_the_rest()
        if self.peers is not None:
            await self.peers.close()
        if self.traces is not None:
            await anyio.to_thread.run_sync(self.traces.close)
        await self.webhooks.close()
        await self.blobs.close()
        await self.store.close()

    @property
    def _patience(self) -> float:
        """How long the last writes of a host that stops may take; a store that is away has none of them."""
        return SHUTDOWN_SECONDS if self.store.healthy() else NOTE_SECONDS

    async def _note_the_rest(self) -> None:
        """What was decided, used and done while runs were being stopped: nobody else knows of it."""
        try:
            async with asyncio.timeout(NOTE_SECONDS):
                await self.outcomes.written()
                await self.audit.close()
        except (TimeoutError, StorageUnavailableError) as error:
            log.warning("the last rows of the audit could not be written", action="house.close", reason=str(error))
        await self.outcomes.close()

    async def _hand_over(self, peers: Peers) -> None:
        """What has not finished is for the others, who end it and go on with what waits."""
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
        self.runs.draining = True
        self.sessions.hold()
        ending = [self._end(run.session, run.turn_id) for run in self.runs.live]
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*ending, return_exceptions=True)
                await self.audit.flush()
        except (TimeoutError, StorageUnavailableError):
            log.warning("not every run could be brought to its end before stopping", action="house.close")

    async def _end(self, session: Any, turn_id: str) -> None:
        try:
            await session.record(
                RunFailed(
                    turn_id, "host_shutdown", "the host was stopped while this run was in progress", at=self.clock()
                )
            )
        except HostError as error:
            log.warning("a run's end could not be recorded", action="house.close", run_id=turn_id, reason=error.message)
