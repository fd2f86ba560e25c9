"""Puts the house together. The only file that knows every plug; read it to see all the parts."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from secrets import SystemRandom
from typing import Any

import structlog
from starlette.types import ASGIApp

from paddock.agent_program import is_program, load_program
from paddock.bus.chosen import bus_at
from paddock.host.agent_files import AgentFiles, first_of
from paddock.host.agent_health import AgentHealth
from paddock.host.agents import Agents
from paddock.host.agents_file import load_agents
from paddock.host.agents_watch import AgentsWatch, Mark, state_of
from paddock.host.approvals import Approvals
from paddock.host.artifacts import ArtifactLimits, Artifacts
from paddock.host.audit import Audit
from paddock.host.branches import Branches
from paddock.host.budgets import Budgets
from paddock.host.controls import Controls
from paddock.host.days import Days
from paddock.host.events import Events
from paddock.host.explanations import Explanations
from paddock.host.exports import Exports
from paddock.host.history import History
from paddock.host.host_calls import HostCalls
from paddock.host.inbox import Inbox
from paddock.host.keeping import Keeping
from paddock.host.knowledge import KnowledgeCalls
from paddock.host.live import Live
from paddock.host.models import ModelCalls
from paddock.host.offers import Offers
from paddock.host.owners import Owners
from paddock.host.peers import Peers
from paddock.host.principals import DEV
from paddock.host.retention import Retention
from paddock.host.runner_state import RunnerState
from paddock.host.runs import Runs
from paddock.host.runs_view import RunsView
from paddock.host.session_manager import SessionManager
from paddock.host.sessions import Sessions
from paddock.host.steering import Steering
from paddock.host.storage_areas import StorageAreas
from paddock.host.stored_agents import StoredAgents
from paddock.host.sweeping import Sweeper
from paddock.host.tails import Tails
from paddock.host.tools import ToolCalls
from paddock.host.users import Users
from paddock.http_api.app import create_app
from paddock.http_api.issuer_keys import IssuerKeys
from paddock.http_api.tokens import TokenRules, Tokens
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.models.catalog import ModelCatalog
from paddock.models.keys import Key
from paddock.models.loading import found_models, load_models
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.ports.platform import NoPlatform
from paddock.rules.budgets import Budget
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.leases import RESTARTED, WHY
from paddock.rules.limits import Rates
from paddock.rules.model_specs import ModelSpec
from paddock.rules.retention import Periods
from paddock.rules.session.messages import RunFailed
from paddock.runners.catalog import Catalog
from paddock.runners.gateway import Gateway
from paddock.settings import Settings
from paddock.storage.chosen import hosts_in, knowledge_in, store_at
from paddock.storage.files import FileBlobs
from paddock.tools import builtin
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools
from paddock.tools.loading import load_tools, tools_in
from paddock.tools.mcp import McpTools

log = structlog.get_logger("paddock.house")

MIB = 1024 * 1024
HOME = DEV.workspace_id
"""The workspace whose agents are tried out at start."""
SHUTDOWN_SECONDS = 5.0
"""How long running turns get to have their end recorded when the host stops."""


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

    app: ASGIApp
    store: Store
    blobs: Blobs
    sweeper: Sweeper
    keeping: Keeping
    retention: Retention
    gateway: Gateway
    sessions: Sessions
    runs: Runs
    audit: Audit
    agents: Agents
    approvals: Approvals
    tasks: Tasks
    ingest: Ingest
    models: ModelCatalog
    tools: ToolCatalog
    tool_calls: ToolCalls
    mcp: McpTools
    stored_agents: StoredAgents
    health: AgentHealth
    peers: Peers | None = None
    """The other hosts, where several may share the store."""
    watch: AgentsWatch | None = None
    """Over the agents file, if there is one."""
    _open: bool = field(default=False)

    def ready(self) -> tuple[bool, str]:
        if not self._open:
            return False, "starting"
        if not self.store.healthy():
            return False, "the store cannot write"
        return True, "; ".join(["ready", *self._remarks()])

    def _remarks(self) -> list[str]:
        """What does not keep the host from working, but somebody should see to. Names only: no key is needed here."""
        unable = self.health.unable(HOME)
        remarks = [f"cannot answer: {', '.join(unable)} (GET /api/v1/agents says why)"] if unable else []
        if self.health.file_problem is not None:
            remarks.append(
                "the agents file cannot be used, so the agents stay as they were (GET /api/v1/agents says why)"
            )
        return remarks

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open everything, bring what was left unfinished to its end, and close it all again."""
        await self.store.open()
        await self.blobs.open()
        await self.gateway.start()
        await self.stored_agents.load()
        try:
            interrupted = await self._recover()
            if interrupted:
                log.info(
                    "runs of an earlier start were brought to their end", action="house.recover", sessions=interrupted
                )
            if unknown := await self.tool_calls.settle():
                log.warning("tool calls of an earlier start have no outcome", action="house.recover", calls=unknown)
            await self.approvals.recover()
            self.tasks.spawn(self._warm_up())
            self.tasks.spawn(self.models.warm_up())
            self.mcp.start(self.tasks.spawn)
            self.tasks.spawn(self.sessions.keep_queues_moving())
            self.tasks.spawn(self.ingest.run())
            self.tasks.spawn(self.sweeper.keep_sweeping())
            self.tasks.spawn(self.retention.keep_sweeping(SystemRandom().random))
            if self.watch is not None:
                self.tasks.spawn(self.watch.run(self._warm_up))
            self._open = True
            yield
        finally:
            self._open = False
            await self._close()

    async def _recover(self) -> int:
        """What has no owner any more is brought to its end."""
        if self.peers is None:
            return await self.sessions.recover(RESTARTED, WHY[RESTARTED])
        taken = await self.peers.start()
        self.tasks.spawn(self.peers.keep_beating())
        self.tasks.spawn(self.peers.owners.keep_answering())
        return taken

    async def _warm_up(self) -> None:
        """Learn what the agents' runners ask for before the first run needs it."""
        for binding in self.agents.list(HOME):
            await self.runs.prepare(binding.agent_id, HOME)
            if problem := self.runs.refusal(binding.agent_id, HOME):
                about = {"agent": binding.agent_id, "runner_id": binding.runner_id, "reason": problem}
                log.warning("an agent cannot answer", action="house.warm_up", **about)

    async def _close(self) -> None:
        self.runs.draining = True
        ending = [self._end(run.session, run.turn_id) for run in self.runs.live]
        try:
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await asyncio.gather(*ending, return_exceptions=True)
                await self.audit.flush()
        except (TimeoutError, StorageUnavailableError):
            log.warning("not every run could be brought to its end before stopping", action="house.close")
        await self.gateway.stop()
        await self.models.close()
        await self.tasks.stop()
        if self.peers is not None:
            await self.peers.close()
        await self.blobs.close()
        await self.store.close()

    async def _end(self, session: Any, turn_id: str) -> None:
        try:
            await session.record(
                RunFailed(
                    turn_id, "host_shutdown", "the host was stopped while this run was in progress", at=time.time()
                )
            )
        except HostError as error:
            log.warning("a run's end could not be recorded", action="house.close", run_id=turn_id, reason=error.message)


def build(settings: Settings, *, local_token: str | None = None, url: str = "") -> House:
    """Put the house together: one process, files under one data directory, and the store that the settings name."""
    clock = time.time
    tasks = Tasks()
    seen = state_of(settings.agents) if settings.agents is not None else None
    files = AgentFiles()
    program = load_program(settings.agents) if settings.agents and is_program(settings.agents) else None
    if program is not None:
        agents = program.agents(max_queue=settings.max_queue)
    else:
        agents = load_agents(settings.agents, max_queue=settings.max_queue, files=files)
    store = store_at(settings.store, settings.data, serving=True, url=url)
    hosts, bus = hosts_in(store), bus_at(settings.bus)
    live = Live(bus) if hosts is not None else None
    owners = Owners(hosts, bus, live)
    tails = Tails(store, live)
    audit = Audit(store, tasks.spawn)
    blobs = FileBlobs(settings.data / "blobs")
    events = Events(store)
    artifacts = Artifacts(
        store, blobs, clock=clock, limits=_artifact_limits(settings), raw=first_of(events.raw, files.raw)
    )
    areas = StorageAreas(store, blobs, area_bytes=settings.storage_area_mib * MIB)
    models = _models(settings, clock, program.models if program else {})
    mcp = McpTools(settings.mcp_servers, reveal=_revealed, mark={"PADDOCK_MARK": mark_of(settings.data)}, clock=clock)
    tools = _tools(settings, mcp, clock, program.tools if program else ())
    kept = knowledge_in(store)
    ingest = Ingest(kept, embed=models.embed, clock=clock)
    bases = Bases(kept, ingest, embed=models.embed, clock=clock)
    offers = Offers(models=models, tools=tools, knowledge=bases, clock=clock)
    tool_calls = ToolCalls(tools, records=store, clock=clock, artifacts=artifacts)
    approvals = Approvals(store, NoPlatform(), clock=clock, spawn=tasks.spawn)
    steering = Steering(store)
    work = {
        **History(store).work,
        **RunnerState(store).work,
        **ModelCalls(models, note=audit.soon, clock=clock, budgets=_budgets(settings, store, clock)).work,
        **tool_calls.work,
        **KnowledgeCalls(bases).work,
        **approvals.work,
        **events.work,
        **artifacts.work,
        **areas.work,
        **steering.work,
    }
    calls = HostCalls(work=work, records=store, audit=audit, clock=clock, rates=Rates.of_a_run(settings.host_call_rate))
    gateway = Gateway(
        Catalog.load(installed=settings.data / "plugins", further=settings.plugins),
        home=settings.data / "homes",
        mark=mark_of(settings.data),
        on_call=calls.on_wire,
        host_version=version("paddock"),
        isolation=settings.isolation,
        env_allow=settings.env_allow,
        on_foreign=calls.foreign,
        on_overload=calls.overloaded,
    )
    agents.offer(lambda workspace: gateway.names(workspace, installed=settings.agents is None))
    runs = Runs(
        gateway=gateway,
        agents=lambda: agents,
        records=store,
        clock=clock,
        spawn=tasks.spawn,
        offered=calls.offered,
        offers=offers,
        host_version=version("paddock"),
        deadline_seconds=settings.run_deadline_seconds,
        actions=approvals,
        artifacts=artifacts,
    )
    calls.serve(runs)
    steering.serve(runs)
    manager = SessionManager(records=store, agents=lambda: agents, readiness=runs, clock=clock, spawn=tasks.spawn)
    sessions = Sessions(
        store,
        tails,
        performer=runs,
        manager=manager,
        audit=audit,
        agents=lambda: agents,
        clock=clock,
        spawn=tasks.spawn,
        shared=hosts is not None,
    )
    peers = None
    if hosts is not None and live is not None:
        peers = Peers(hosts, bus, live, sessions=sessions, owners=owners, note=audit.soon, clock=clock)
        bus.on_lost = tails.look_again
        runs.may_act = peers.held
    keeping = Keeping(store, blobs, sessions, clock=clock)
    users = Users(store, clock=clock)
    inbox = Inbox(
        sessions=sessions, runs=runs, agents=lambda: agents, records=store, clock=clock, owners=owners, users=users
    )
    house = House(
        app=_nothing_yet,
        store=store,
        blobs=blobs,
        sweeper=Sweeper(store, blobs, clock=clock),
        keeping=keeping,
        retention=Retention(store, sessions, keeping, clock=clock, periods=_periods(settings)),
        gateway=gateway,
        sessions=sessions,
        runs=runs,
        audit=audit,
        agents=agents,
        approvals=approvals,
        tasks=tasks,
        stored_agents=StoredAgents(agents, kept=store, records=store, clock=clock),
        health=AgentHealth(agents, runs.authority),
        watch=_watch(None if program else settings.agents, agents, seen, files, audit, clock),
        ingest=ingest,
        models=models,
        tools=tools,
        tool_calls=tool_calls,
        mcp=mcp,
        peers=peers,
    )
    controls = Controls(
        sessions=sessions, agents=lambda: agents, readiness=runs, records=store, clock=clock, owners=owners
    )
    house.app = create_app(
        inbox=inbox,
        keeping=house.keeping,
        controls=controls,
        branches=Branches(controls=controls, inbox=inbox, records=store, clock=clock),
        exports=Exports(store),
        runs=RunsView(store),
        tails=tails,
        agents=agents,
        gateway=gateway,
        keys=store,
        health=house.health,
        stored_agents=house.stored_agents,
        ready=house.ready,
        local_token=local_token,
        keep_alive_seconds=settings.keep_alive_seconds,
        note=audit.soon,
        knowledge=bases,
        knowledge_changed=offers.forget,
        approvals=approvals,
        explanations=Explanations(store, clock),
        users=users,
        days=Days(store, users),
        tokens=_tokens(settings),
    )
    return house


def _periods(settings: Settings) -> Periods:
    return Periods(settings.conversation_days, settings.call_days, settings.audit_days)


def _tokens(settings: Settings) -> Tokens | None:
    """Callers by signed token, if a secret or an issuer's keys are set."""
    if not settings.takes_tokens:
        return None
    rules = TokenRules(
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        workspace_claim=settings.jwt_workspace_claim,
        role_claim=settings.jwt_role_claim,
    )
    secret = settings.jwt_secret_file.read_bytes().strip() if settings.jwt_secret_file else None
    return Tokens(rules, secret=secret, keys=IssuerKeys(settings.jwt_keys).find if settings.jwt_keys else None)


def _artifact_limits(settings: Settings) -> ArtifactLimits:
    return ArtifactLimits(
        keep_seconds=settings.artifact_days * 86_400.0 or None,
        workspace_bytes=settings.artifacts_mib * MIB,
        file_bytes=settings.max_file_mib * MIB,
    )


def _watch(
    path: Path | None, agents: Agents, seen: Mark, files: AgentFiles, audit: Audit, clock: Callable[[], float]
) -> AgentsWatch | None:
    return None if path is None else AgentsWatch(path, agents, seen=seen, files=files, note=audit.soon, clock=clock)


def _models(settings: Settings, clock: Callable[[], float], named: Mapping[str, ModelSpec]) -> ModelCatalog:
    """The demo model, those an agent's program names, those that are there anyway, and those of the settings."""
    found = found_models(os.environ) if settings.discover_models else {}
    return load_models({**named, **found, **settings.models}, clock=clock, environ=os.environ)


def _budgets(settings: Settings, store: Store, clock: Callable[[], float]) -> Budgets:
    user = Budget(settings.user_tokens_per_day, settings.user_cost_per_day, settings.user_model_calls)
    workspace = Budget(
        settings.workspace_tokens_per_day, settings.workspace_cost_per_day, settings.workspace_model_calls
    )
    return Budgets(store, user=user, workspace=workspace, clock=clock)


def _tools(
    settings: Settings, servers: McpTools, clock: Callable[[], float], named: Sequence[FunctionTool]
) -> ToolCatalog:
    """The operator's own tools, those of MCP servers, the built-in ones; of two with one name the first wins."""
    functions = [*load_tools(settings.tools), *named]
    own = FunctionTools(functions, clock=clock, timeout_seconds=settings.tool_timeout_seconds)
    given = FunctionTools(tools_in(builtin, "paddock", tool_type="builtin"), clock=clock)
    return ToolCatalog([own, servers, given])


def _revealed(text: str) -> str:
    """What a reference leads to; any other text is itself."""
    return Key(text).read() or "" if text.startswith(("env:", "file:")) else text


async def _nothing_yet(*_: object) -> None:
    raise RuntimeError("the house is not built yet")


def mark_of(data: Path) -> str:
    """What the processes of this data directory carry in their environment, so that leftovers can be found."""
    return sha256(os.fsencode(data.resolve())).hexdigest()[:24]
