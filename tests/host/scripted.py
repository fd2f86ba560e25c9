"""A house with a runner whose every word the test decides. The loop, the rules and the store are real."""

import asyncio
import math
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from paddock.compose.parts import ingress_of
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import in_force, read_agents
from paddock.host.audit import Audit
from paddock.host.automation.automations import Automations
from paddock.host.automation.calendar import Calendars
from paddock.host.automation.scheduler import Scheduler
from paddock.host.calls.artifacts import ArtifactLimits, Artifacts
from paddock.host.calls.events import Events
from paddock.host.calls.history import History
from paddock.host.calls.host_calls import HostCalls
from paddock.host.calls.knowledge import KnowledgeCalls
from paddock.host.calls.metering import Metering
from paddock.host.calls.models import ModelCalls
from paddock.host.calls.state import RunnerState
from paddock.host.calls.steering import Steering
from paddock.host.calls.storage_areas import AREA_BYTES, StorageAreas
from paddock.host.calls.tools import ToolCalls
from paddock.host.calls.work import CallHandler
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.conversations.controls import ControlAnswer, Controls
from paddock.host.conversations.inbox import Inbox, ThreadNames
from paddock.host.keeping.deletion import Deletion
from paddock.host.outage import Outage
from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.host.platforms.deliveries import Deliveries
from paddock.host.platforms.delta_stream import DeltaStream
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platforms
from paddock.host.runs.authority import Authority, Granting
from paddock.host.runs.briefing import Briefing
from paddock.host.runs.live_run import ResultHandling
from paddock.host.runs.live_runs import LiveRuns
from paddock.host.runs.lookup import RunsView
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.runs import Runs
from paddock.host.runs.surroundings import RunSurroundings
from paddock.host.runs.workspace_resources import WorkspaceResources
from paddock.host.session.arrivals import Accepted, NewRun
from paddock.host.session.draft import InvariantWatch
from paddock.host.session.manager import SessionManager
from paddock.host.session.memory import SessionLoops
from paddock.host.session.services import SessionServices
from paddock.host.session.sessions import Sessions
from paddock.host.session.word_quota import Words
from paddock.host.streams.tails import Entry, Tails
from paddock.images.cleaning import ChildPictures
from paddock.models.catalog import ModelCatalog
from paddock.models.demo import DemoModel
from paddock.platforms.webhooks import HttpWebhooks
from paddock.ports import ANYWHERE, Batch, Placement, RunListener, RunnerStatus, Store
from paddock.ports.artifacts import Blobs
from paddock.ports.knowledge import Knowledge
from paddock.ports.platforms import PlatformActions, Webhooks
from paddock.ports.tools import Tools
from paddock.rules.access.host_only import ApiAgents
from paddock.rules.access.limits import Rates
from paddock.rules.access.signatures import SigningKeys
from paddock.rules.agents.specs import PlatformSpec
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.log.chain import StoredFact, restore
from paddock.rules.rows.rows import RunRow, TranscriptRow
from paddock.rules.run.results import Result
from paddock.rules.session.commands import SessionTimeouts
from paddock.rules.session.state import SessionState, from_bytes
from paddock.tools import builtin
from paddock.tools.calendar import CalendarTools
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTools
from paddock.tools.loading import tools_in
from paddock_sdk.protocol.manifest import AgentRunnerManifest
from stores import QuickBlobs, QuickStore, opened

NAMES_KEY = b"a key of the tests"
ANN = Principal("default", "ann")
BOB = Principal("default", "bob")

AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default"}
  two: {runner: "plugin:test/two/default", while_busy: reject}
"""
HERE = "http://host.test"
OPENED = ApiAgents(urls=["https://example.org"])
"""Where clients of a small house would reach it."""
KEYS = SigningKeys("k1", {"k1": b"k" * 32})
BUILTIN = tools_in(builtin, "paddock", tool_type="builtin")
TERMINAL = {"AGENT_OUTPUT:FINAL", "ERROR:RUN_FAILED", "ERROR:ROUTE_TIMEOUT", "EVENT:CANCELED"}


def manifest_of(runner_id: str, permissions: Mapping[str, Any], *, steering: bool = False) -> AgentRunnerManifest:
    about = {"id": runner_id, "name": "default", "label": {}, "context": {}}
    capabilities = {"steering": steering}
    return AgentRunnerManifest.model_validate({**about, "capabilities": capabilities, "permissions": permissions})


@dataclass
class AtRunner:
    """One run as its runner sees it; the test speaks for the runner."""

    run_id: str
    context: Mapping[str, Any]
    listener: RunListener
    connection_id: str = "c1"
    placement: Placement = ANYWHERE
    credit: int = 0
    released: bool = False
    forced: bool = False
    offered: asyncio.Queue[int] = field(default_factory=asyncio.Queue)
    asked_to_stop: asyncio.Event = field(default_factory=asyncio.Event)
    may_stop: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, kind: str, **data: Any) -> None:
        self.listener.result(Result(self.run_id, kind, data), 100)

    def delta(self, text: str) -> None:
        self.say("message.delta", chunk={"role": "assistant", "content": text})

    def message(self, text: str) -> None:
        self.say("message.completed", message={"role": "assistant", "content": text})

    async def cancel(self, reason: str) -> bool:
        self.asked_to_stop.set()
        await self.may_stop.wait()
        return True

    def give_credit(self, count: int) -> None:
        self.credit += count

    def steering_available(self, waiting: int) -> None:
        self.offered.put_nowait(waiting)

    async def force_stop(self) -> None:
        self.forced = True

    def release(self) -> None:
        self.released = True


class CountingStore(QuickStore):
    """Counts how often something of a session was written down, and how often it was looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.reads = 0

    async def append(self, batch: Batch) -> None:
        self.commits += 1
        await super().append(batch)

    async def events(self, session_id: str, **query: Any) -> Sequence[StoredFact]:
        self.reads += 1
        return await super().events(session_id, **query)

    async def transcript(self, session_id: str, **query: Any) -> Sequence[TranscriptRow]:
        self.reads += 1
        return await super().transcript(session_id, **query)


class ScriptedGateway:
    """Hands every run to the test."""

    def __init__(self, permissions: Mapping[str, Any] | None = None, *, steering: bool = False) -> None:
        self.steering = steering
        self.permissions = permissions or {"history": ["page"], "storage": ["plugin"]}
        self.started: asyncio.Queue[AtRunner] = asyncio.Queue()
        self.missing: set[str] = set()

    async def manifest(self, runner_id: str, workspace: str = "") -> AgentRunnerManifest:
        if runner_id in self.missing:
            raise HostError(ErrorCode.NOT_FOUND, f"no runner {runner_id}")
        return manifest_of(runner_id, self.permissions, steering=self.steering)

    def known_manifest(self, runner_id: str, workspace: str = "") -> AgentRunnerManifest | None:
        """What it would say if asked, when that takes no time."""
        asking = self.manifest(runner_id, workspace)
        try:
            asking.send(None)
        except StopIteration as said:
            return said.value
        except HostError:
            return None
        asking.close()
        return None

    async def start_run(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> AtRunner:
        run = AtRunner(run_id, context, listener, placement=placement)
        self.started.put_nowait(run)
        return run

    def start_at_once(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> AtRunner | None:
        return None

    def isolation_of(self, runner_id: str, workspace: str, wanted: str | None = None) -> str:
        return "L0"

    def reaches_host(self, runner_id: str, workspace: str, wanted: str | None = None) -> bool:
        return True

    def trouble(self, runner_id: str, workspace: str) -> None:
        return None

    async def list_runners(self) -> Sequence[RunnerStatus]:
        return []

    async def stop(self) -> None:
        pass

    async def next(self, *, ack: bool = True) -> AtRunner:
        run = await asyncio.wait_for(self.started.get(), 30)
        if ack:
            run.listener.acknowledged()
        return run


@dataclass
class SmallHouse:
    store: Store
    gateway: ScriptedGateway
    sessions: Sessions
    runs: Runs
    inbox: Inbox
    tails: Tails
    calls: HostCalls
    view: RunsView
    approvals: Approvals
    audit: Audit
    artifacts: Artifacts
    blobs: Blobs
    agents: Agents
    controls: Controls
    keeping: Deletion
    scheduler: Scheduler
    automations: Automations
    calendars: Calendars
    platforms: Platforms
    deliveries: Deliveries
    ingress: Ingress
    attachments: UserAttachments

    async def say(
        self, text: str = "hi", *, thread: str, run: str | None = None, who: Principal = ANN, **more: Any
    ) -> Accepted:
        label = run or uuid.uuid4().hex
        return await self.inbox.accept(
            NewRun(
                principal=who,
                session_id=thread,
                client_run_id=label,
                body_hash=sha256(f"{text}{more}".encode()).digest(),
                message={"id": "m", "content": text},
                text=text,
                **more,
            )
        )

    async def control(self, subtype: str, *, thread: str, who: Principal = ANN, **more: Any) -> ControlAnswer:
        ids = {name: more.pop(name) for name in ("tx_id", "turn_id") if name in more}
        return await self.controls.control(who, thread, subtype, more, **ids)

    async def until(self, thread: str, kind: str, after: int = 0) -> StoredFact:
        """The first fact of this kind in a conversation; waits for it."""
        follower = self.tails.follow(thread, None, after)
        try:
            while news := await follower.next(30):
                for entry in news:
                    if entry.fact.kind == kind:
                        return entry.fact
            raise AssertionError(f"no {kind} in {[fact.kind for fact in await self.store.read(thread)]}")
        finally:
            follower.close()

    async def story(self, run: Accepted | RunRow, after: int = 0) -> list[Entry]:
        """Everything of a run up to its end."""
        follower = self.tails.follow(run.session_id, run.run_id, after)
        entries: list[Entry] = []
        while not entries or entries[-1].fact.kind not in TERMINAL:
            news = await follower.next(30)
            assert news, f"no end after {[entry.fact.kind for entry in entries]}"
            entries += news
        follower.close()
        return entries

    async def run(self, accepted: Accepted) -> RunRow:
        found = await self.store.run(accepted.run_id)
        assert found is not None
        return found


def address_of(attachments: UserAttachments, workspace_id: str, user_id: str, artifact_id: str) -> str | None:
    return attachments.signed_url(artifact_id, workspace_id=workspace_id, user_id=user_id)


@asynccontextmanager
async def small_house(
    store: Store | None = None,
    *,
    gateway: ScriptedGateway | None = None,
    agents: str = AGENTS,
    clock: Callable[[], float] | None = None,
    platform: PlatformActions | None = None,
    platforms: Mapping[str, PlatformSpec] | None = None,
    webhooks: Webhooks | None = None,
    work: Mapping[str, CallHandler] | None = None,  # for calls that no room of this house answers
    instead: Mapping[str, CallHandler] | None = None,  # for calls that one would answer
    rates: Rates | None = None,
    blobs: Blobs | None = None,
    limits: ArtifactLimits | None = None,
    area_bytes: int = AREA_BYTES,
    knowledge: Knowledge | None = None,
    own_tools: Tools | None = None,
    timeouts: SessionTimeouts | None = None,
    held: Callable[[], bool] | None = None,  # whether it may count on its lease; None: it has none
    surroundings: RunSurroundings | None = None,
    tokens: bool = False,
) -> AsyncGenerator[SmallHouse]:
    store = store or QuickStore()
    gateway = gateway or ScriptedGateway()
    now = clock or asyncio.get_running_loop().time
    known: Agents = in_force(read_agents(agents, "test agents"), 100)
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        return task

    watch = InvariantWatch(every=1)
    loops = SessionLoops()
    tails = Tails(store, None, loops.works_on)
    audit = Audit(store, spawn)
    blobs = blobs or QuickBlobs()
    events = Events(store)
    artifacts = Artifacts(store, blobs, clock=now, limits=limits or ArtifactLimits(), raw=events.raw)
    areas = StorageAreas(store, blobs, area_bytes=area_bytes)
    models = ModelCatalog([DemoModel()])
    calendars = Calendars(store, clock=now)
    given = FunctionTools(BUILTIN, clock=now)
    own = [own_tools] if own_tools is not None else []
    tools = ToolCatalog([*own, given, CalendarTools(calendars, clock=now)])
    sender = webhooks or HttpWebhooks()
    outside = Platforms(platforms or {}, reveal=str, webhooks=sender, records=store, clock=now)
    attachments = UserAttachments(artifacts, store, ChildPictures(), keys=lambda: KEYS, clock=now, public_url=HERE)
    outcomes = Outcomes(store)
    deliveries = Deliveries(store, outside, outcomes=outcomes, clock=now, address=partial(address_of, attachments))
    approvals = Approvals(store, platform or outside, outcomes=outcomes, clock=now, spawn=spawn)
    live = LiveRuns(held=held) if held is not None else LiveRuns()
    outage = Outage(store, held)
    rooms = {
        **Steering(store, live).work,
        **History(store).work,
        **RunnerState(store).work,
        **ModelCalls(models, Metering(models, note=audit.soon, clock=now)).work,
        **ToolCalls(tools, records=store, outcomes=outcomes, clock=now, artifacts=artifacts).work,
        **events.work,
        **artifacts.work,
        **areas.work,
        **approvals.work,
        **(KnowledgeCalls(knowledge).work if knowledge is not None else {}),
    }
    calls = HostCalls(
        work={**(work or {}), **rooms, **(instead or {})},
        live=live,
        outage=outage,
        records=store,
        audit=audit,
        clock=now,
        rates=rates or Rates(),
    )
    resources = WorkspaceResources(models=models, tools=tools, knowledge=knowledge, clock=now)
    authority = Authority(gateway=gateway, agents=known, offered=calls.offered, resources=resources, opened=OPENED)
    handling = ResultHandling(artifacts, now, spawn, approvals)
    granting = Granting(authority=authority, agents=known, live=live, handling=handling, deadline_seconds=60)
    runs = Runs(
        gateway=gateway,
        granting=granting,
        briefing=Briefing(store, outage, host_version="test", surroundings=surroundings),
        live=live,
        handling=handling,
        timeouts=timeouts or SessionTimeouts(),
    )
    services = SessionServices(
        log=store,
        outage=outage,
        tails=tails,
        words=Words(store, spawn=spawn),
        audit=audit,
        authorise=runs.granting.authorise,
        performer=runs,
        manager=SessionManager(
            records=store,
            agents=known,
            readiness=runs.authority,
            clock=now,
            spawn=spawn,
            timeouts=timeouts or SessionTimeouts(),
        ),
        agents=known,
        clock=now,
        spawn=spawn,
        deliveries_wait=deliveries.wake,
        watch=watch,
    )
    sessions = Sessions(store, loops, services, timeouts=timeouts or SessionTimeouts())
    inbox = Inbox(sessions=sessions, runs=runs, agents=known, records=store, clock=now, users=Users(store, clock=now))
    scheduler = Scheduler(store, inbox, agents=known, clock=now, tokens=tokens)
    async with opened(store):
        try:
            yield SmallHouse(
                store,
                gateway,
                sessions,
                runs,
                inbox,
                tails,
                calls,
                RunsView(store),
                approvals,
                audit,
                artifacts,
                blobs,
                known,
                Controls(sessions=sessions, agents=known, records=store, clock=now),
                Deletion(store, blobs, sessions, clock=now),
                scheduler,
                Automations(
                    store,
                    scheduler,
                    agents=known,
                    authority=runs.authority,
                    users=Users(store, clock=now),
                    clock=now,
                ),
                calendars,
                outside,
                deliveries,
                ingress_of(
                    inbox,
                    store,
                    known,
                    attachments,
                    approvals,
                    DeltaStream(tails, outside, clock=now, spawn=spawn),
                    ThreadNames(store, NAMES_KEY),
                ),
                attachments,
            )
        finally:
            await sender.close()
            for task in tasks:
                task.cancel()
            failures = [
                one for one in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(one, Exception)
            ]
            assert not failures, failures
            assert not watch.found, watch.found
            await assert_facts_fold_to_the_snapshot(store)


async def assert_facts_fold_to_the_snapshot(store: Store) -> None:
    """On the data of every test: what was written down gives the state that was kept, for every conversation."""
    if not await is_open(store):
        return
    for old in await store.sessions_opened_before(math.inf, limit=1000):
        log = await store.look(old.session_id)
        facts = sorted(await store.read(old.session_id, limit=1_000_000), key=lambda fact: fact.seq)
        if log.snapshot:
            assert_folds(facts, from_bytes(log.snapshot), log.snapshot_seq)


def assert_folds(facts: Sequence[StoredFact], snapshot: SessionState, snapshot_seq: int) -> None:
    """A message that was finished after the snapshot took its pieces along: then only the whole can be compared."""
    before = [fact for fact in facts if fact.seq <= snapshot_seq]
    after = [fact for fact in facts if fact.seq > snapshot_seq]
    assert restore(snapshot, after) == restore(SessionState(), facts)
    if not any(fact.position <= snapshot_seq for fact in after):
        assert restore(SessionState(), before) == snapshot


async def is_open(store: Store) -> bool:
    """A test may have closed its store, or taken its disk away."""
    try:
        await store.session("none")
    except StorageUnavailableError:
        return False
    return True
