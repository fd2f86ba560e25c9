"""Puts the house together, behind its doors: the ground, what runs can be granted, what runs them, conversations."""

from functools import partial

from paddock.agent_program import is_program
from paddock.compose.cluster import Neighbourhood, attaching_of, shared_plugins_of
from paddock.compose.doors import application
from paddock.compose.ground import Ground, Resources, gather_resources, lay_ground
from paddock.compose.house import House
from paddock.compose.machinery import Conversations, Machinery, open_conversations, set_up_runs
from paddock.compose.named import WatchedProgram
from paddock.compose.parts import ingress_of, periods
from paddock.host.agents.file import read_file
from paddock.host.agents.health import AgentHealth
from paddock.host.agents.watch import AgentsWatch
from paddock.host.automation.automations import Automations
from paddock.host.conversations.thread_names import PURPOSE as NAMES
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.keeping.retention import Retention
from paddock.host.keeping.sweeping import Sweeper
from paddock.host.people.taking_over import TakingOver
from paddock.host.platforms.delta_stream import DeltaStream
from paddock.host.platforms.ingress import Ingress
from paddock.host.streams.open_streams import OpenStreams, StreamLimits
from paddock.settings import EMBEDDED, Settings
from paddock.telemetry.metrics import Now


def build(settings: Settings, *, local_token: str | None = None, url: str = "") -> House:
    """Put the house together: one process, files under one data directory, and the store that the settings name."""
    ground = lay_ground(settings, url)
    granted = gather_resources(ground, url)
    machinery = set_up_runs(ground, granted)
    house = _joined(ground, granted, machinery, open_conversations(ground, granted, machinery))
    share_the_sweeping(house, settings)
    watch_over(house, ground.near)
    house.app = application(house, settings, local_token)
    return house


def _joined(ground: Ground, granted: Resources, machinery: Machinery, talks: Conversations) -> House:
    """All parts that the doors, or the house itself, have to do with."""
    settings, store, clock, agents = ground.settings, ground.store, ground.clock, ground.agents
    audit, near, gateway, peers = ground.audit, ground.near, machinery.gateway, talks.peers
    limits = StreamLimits(of_user=settings.streams_per_user, of_workspace=settings.streams_per_workspace)
    streams = OpenStreams(store, clock=clock, limits=limits)
    return House(
        store=store,
        blobs=ground.blobs,
        sweeper=Sweeper(store, ground.blobs, clock=clock),
        keeping=talks.keeping,
        retention=Retention(store, talks.sessions, talks.keeping, clock=clock, periods=periods(settings)),
        gateway=gateway,
        sessions=talks.sessions,
        tails=ground.tails,
        runs=machinery.runs,
        inbox=talks.inbox,
        controls=talks.controls,
        users=talks.users,
        audit=audit,
        outcomes=ground.outcomes,
        agents=agents,
        approvals=granted.approvals,
        attaching=attaching_of(near, gateway, peers, audit, clock),
        open_streams=streams,
        taking_over=TakingOver(store, talks.sessions, owners=near.owners, streams=streams, clock=clock),
        attachments=granted.attachments,
        scheduler=talks.scheduler,
        platforms=granted.platforms,
        webhooks=granted.webhooks,
        deliveries=granted.deliveries,
        ingress=_ingress(ground, granted, talks),
        automations=Automations(
            store,
            talks.scheduler,
            agents=lambda: agents,
            authority=machinery.runs.authority,
            users=talks.users,
            clock=clock,
        ),
        calendars=granted.calendars,
        tasks=ground.tasks,
        stored_agents=talks.stored_agents,
        secret=ground.secret,
        health=AgentHealth(agents, machinery.runs.authority),
        watch=_watch(ground, granted),
        plugins_watch=machinery.plugins.watch(gateway, audit, clock),
        shared_plugins=shared_plugins_of(settings, peers, store, audit, clock),
        ingest=granted.ingest,
        bases=granted.bases,
        offers=granted.offers,
        models=granted.beside.models,
        tools=granted.tools,
        tool_calls=granted.tool_calls,
        mcp=granted.beside.servers,
        run_endpoints=machinery.endpoints,
        run_door=machinery.run_door,
        clock=clock,
        peers=peers,
        metrics=machinery.metrics,
        traces=machinery.traces,
    )


def _ingress(ground: Ground, granted: Resources, talks: Conversations) -> Ingress:
    pieces = DeltaStream(ground.tails, granted.platforms, clock=ground.clock, spawn=ground.tasks.spawn)
    names = ThreadNames(ground.store, ground.secret.key(NAMES))
    attachments, approvals = granted.attachments, granted.approvals
    return ingress_of(talks.inbox, ground.store, lambda: ground.agents, attachments, approvals, pieces, names)


def _watch(ground: Ground, granted: Resources) -> AgentsWatch | None:
    """Over the file that names the agents, or the program that defines them."""
    path, parts = ground.named.watched, granted.beside
    if path is None:
        return None
    program = WatchedProgram(path, parts) if is_program(path) else None
    return AgentsWatch(
        path,
        ground.agents,
        seen=ground.named.seen,
        read=program.read if program is not None else partial(read_file, path, ground.files),
        resources=ground.named.resources,
        prepare=program.prepare if program is not None else parts.prepare,
        note=ground.audit.soon,
        clock=ground.clock,
    )


def share_the_sweeping(house: House, settings: Settings) -> None:
    """What is shared is swept by one host. Files in a host's own directory are swept there."""
    peers = house.peers
    if peers is None:
        return
    house.retention.may_work = lambda: peers.is_housekeeper and peers.held()
    if settings.artifacts != EMBEDDED:
        house.sweeper.may_work = house.retention.may_work


def watch_over(house: House, near: Neighbourhood) -> None:
    """What the page of metrics tells of the present moment."""
    runs, peers = house.runs, house.peers
    house.metrics.watch(
        Now(
            runs=lambda workspace: len(runs.live) if workspace is None else runs.admission.busy.get(workspace, 0),
            sessions=lambda: house.sessions.loaded,
            runners=house.gateway.count_by_state,
            store_healthy=house.store.healthy,
            capacity=lambda: runs.admission.capacity,
            waiting=runs.admission.waiting,
            turned_away=lambda: runs.admission.turned_away,
            hosts=lambda: 1 + (len(peers.others) if peers else 0),
            bus_healthy=near.bus.healthy,
            came=lambda: house.tails.came,
            stalls=lambda: house.loop_watch.stalls,
            worst_stall=lambda: house.loop_watch.worst,
        )
    )
