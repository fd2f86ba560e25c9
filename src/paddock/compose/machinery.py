"""What runs runs, and what keeps conversations. The two stages of `build` that follow the ground and the resources."""

from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from paddock.compose.cluster import everywhere, keep_in_step, peers_of
from paddock.compose.ground import Ground, Resources
from paddock.compose.parts import (
    MIB,
    Plugins,
    directories_of,
    mark_of,
    plugins_of,
    timeouts_of,
    traces_of,
    why_no_network,
)
from paddock.host.agents.stored import StoredAgents
from paddock.host.automation.scheduler import Scheduler
from paddock.host.calls.history import History
from paddock.host.calls.host_calls import HostCalls
from paddock.host.calls.knowledge import KnowledgeCalls
from paddock.host.calls.observed_calls import ObservedCalls
from paddock.host.calls.state import RunnerState
from paddock.host.calls.steering import Steering
from paddock.host.calls.storage_areas import StorageAreas
from paddock.host.cluster.peers import Peers
from paddock.host.conversations.inbox import Inbox
from paddock.host.keeping.deletion import Keeping
from paddock.host.people.users import Users
from paddock.host.runs.admission import Admission
from paddock.host.runs.endpoints import RunEndpoints
from paddock.host.runs.runs import Runs
from paddock.host.runs.surroundings import Surroundings
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.host.session.controls import Controls
from paddock.host.session.manager import SessionManager
from paddock.host.session.sessions import Sessions
from paddock.host.session.word_quota import WordLimits
from paddock.http_api.mcp.door import McpDoor
from paddock.rules.access.limits import Rates
from paddock.runners.gateway import Gateway
from paddock.storage.files.cluster_secret import Sealer
from paddock.telemetry.metrics import Metrics
from paddock.telemetry.together import Together

if TYPE_CHECKING:
    from paddock.telemetry.traces import Traces


@dataclass(frozen=True, slots=True)
class Machinery:
    """The gate, the runners behind it, and the runs."""

    plugins: Plugins
    gateway: Gateway
    endpoints: RunEndpoints
    run_door: McpDoor
    directories: WorkingDirectories
    runs: Runs
    metrics: Metrics
    traces: "Traces | None"


def set_up_runs(ground: Ground, granted: Resources) -> Machinery:
    """The gate first, then the runners that call it, then the runs that both know."""
    clock, spawn, store = ground.clock, ground.tasks.spawn, ground.store
    steering, endpoints = Steering(store), RunEndpoints(ground.settings.run_address)
    metrics, traces = Metrics(version("paddock")), traces_of(ground.settings)
    observer = Together([metrics, *([traces] if traces else [])])
    calls = _gate(ground, granted, steering)
    on_call = ObservedCalls(calls.on_wire, observer, clock)
    plugins, directories = plugins_of(ground.settings), directories_of(ground.settings)
    gateway = _gateway(ground, plugins, calls, on_call, endpoints)
    ground.agents.offer(partial(gateway.names, installed=ground.settings.agents is None))
    runs = Runs(
        gateway=gateway,
        agents=lambda: ground.agents,
        records=store,
        clock=clock,
        spawn=spawn,
        offered=calls.offered,
        offers=granted.offers,
        observer=observer,
        host_version=version("paddock"),
        deadline_seconds=ground.settings.run_deadline_seconds,
        actions=granted.approvals,
        artifacts=ground.artifacts,
        admission=Admission(ground.settings.max_runs),
        around=Surroundings(gateway, endpoints, directories, spawn),
        opened=ground.settings.api_agents,
        timeouts=timeouts_of(ground.settings),
    )
    granted.beside.live = lambda: [run.turn_id for run in runs.live]
    granted.tool_calls.goes_on = lambda run_id: runs.find(run_id) is not None
    calls.serve(runs)
    steering.serve(runs)
    door = McpDoor(endpoints, calls, on_call=on_call, note=ground.audit.soon, clock=clock, spawn=spawn)
    return Machinery(plugins, gateway, endpoints, door, directories, runs, metrics, traces)


def _gate(ground: Ground, granted: Resources, steering: Steering) -> HostCalls:
    """Every host call, with the room that does it."""
    settings, store, clock = ground.settings, ground.store, ground.clock
    work = {
        **History(store).work,
        **RunnerState(store).work,
        **granted.model_calls.work,
        **granted.tool_calls.work,
        **KnowledgeCalls(granted.bases).work,
        **granted.approvals.work,
        **ground.events.work,
        **ground.artifacts.work,
        **StorageAreas(store, ground.blobs, area_bytes=settings.storage_area_mib * MIB).work,
        **steering.work,
    }
    rates = Rates.of_a_run(settings.host_call_rate)
    return HostCalls(work=work, records=store, audit=ground.audit, clock=clock, rates=rates)


def _gateway(
    ground: Ground, plugins: Plugins, calls: HostCalls, on_call: ObservedCalls, endpoints: RunEndpoints
) -> Gateway:
    settings = ground.settings
    return Gateway(
        plugins.catalog,
        home=settings.data / "homes",
        mark=mark_of(settings.data),
        on_call=on_call,
        host_version=version("paddock"),
        isolation=settings.isolation,
        env_allow=settings.env_allow,
        on_foreign=calls.foreign,
        on_overload=calls.overloaded,
        host_time=ground.clock,
        run_socket=lambda: endpoints.socket,
        network_refused=lambda: why_no_network(ground.store),
        patience=settings.run_deadline_seconds,
        spare_seconds=settings.spare_process_seconds,
        data=settings.data,
        memory_mb=settings.plugin_memory_mb,
    )


@dataclass(frozen=True, slots=True)
class Conversations:
    """Sessions, who owns them, and what is handed into them."""

    sessions: Sessions
    peers: Peers | None
    stored_agents: StoredAgents
    keeping: Keeping
    users: Users
    inbox: Inbox
    scheduler: Scheduler
    controls: Controls


def open_conversations(ground: Ground, granted: Resources, machinery: Machinery) -> Conversations:
    store, clock, near, runs = ground.store, ground.clock, ground.near, machinery.runs
    agents = ground.agents
    sessions = _sessions(ground, granted, runs)
    peers = peers_of(near, sessions=sessions, tails=ground.tails, runs=runs, audit=ground.audit, clock=clock)
    opened, users = ground.settings.api_agents, Users(store, clock=clock)
    sealing = Sealer(ground.secret)
    stored_agents = StoredAgents(agents, kept=store, records=store, clock=clock, opened=opened, sealing=sealing)
    keep_in_step(ground.settings, peers, stored_agents, granted.ingest)
    directories = everywhere(machinery.directories, near.owners, peers)
    inbox = Inbox(
        sessions=sessions, runs=runs, agents=lambda: agents, records=store, clock=clock, users=users, owners=near.owners
    )
    controls = Controls(sessions=sessions, agents=lambda: agents, records=store, clock=clock, owners=near.owners)
    return Conversations(
        sessions=sessions,
        peers=peers,
        stored_agents=stored_agents,
        keeping=Keeping(store, ground.blobs, sessions, clock=clock, directories=directories, owners=near.owners),
        users=users,
        inbox=inbox,
        scheduler=Scheduler(store, inbox, agents=lambda: agents, clock=clock),
        controls=controls,
    )


def _sessions(ground: Ground, granted: Resources, runs: Runs) -> Sessions:
    store, clock, spawn = ground.store, ground.clock, ground.tasks.spawn
    timeouts = timeouts_of(ground.settings)
    manager = SessionManager(
        records=store, agents=lambda: ground.agents, readiness=runs, clock=clock, spawn=spawn, timeouts=timeouts
    )
    return Sessions(
        store,
        ground.tails,
        performer=runs,
        manager=manager,
        audit=ground.audit,
        agents=lambda: ground.agents,
        clock=clock,
        spawn=spawn,
        shared=ground.near.shared,
        deliveries_wait=granted.deliveries.wake,
        word_limits=WordLimits(
            of_user=ground.settings.user_words_mib * MIB, of_workspace=ground.settings.workspace_words_mib * MIB
        ),
        timeouts=timeouts,
    )
