"""Puts the house together, behind its doors. Read it to see all the parts."""

import time
from importlib.metadata import version

from paddock.compose.cluster import attaching_of, blobs_of, keep_in_step, neighbourhood_of, peers_of, shared_plugins_of
from paddock.compose.doors import application
from paddock.compose.house import House, Tasks
from paddock.compose.named import NamedParts
from paddock.compose.parts import (
    MIB,
    artifact_limits,
    attachments_of,
    budgets_of,
    directories_of,
    mark_of,
    named_agents,
    periods,
    platforms_of,
    plugins_of,
    tools_of,
    traces_of,
    watch_of,
    why_no_network,
)
from paddock.host.admission import Admission
from paddock.host.agent_files import AgentFiles, first_of
from paddock.host.agent_health import AgentHealth
from paddock.host.approvals import Approvals
from paddock.host.artifacts import Artifacts
from paddock.host.audit import Audit
from paddock.host.automations import Automations
from paddock.host.controls import Controls
from paddock.host.delta_stream import DeltaStream
from paddock.host.events import Events
from paddock.host.history import History
from paddock.host.host_calls import HostCalls
from paddock.host.inbox import Inbox
from paddock.host.ingress import Ingress
from paddock.host.keeping import Keeping
from paddock.host.knowledge import KnowledgeCalls
from paddock.host.models import ModelCalls
from paddock.host.observed_calls import ObservedCalls
from paddock.host.offers import Offers
from paddock.host.retention import Retention
from paddock.host.run_endpoints import RunEndpoints
from paddock.host.runner_state import RunnerState
from paddock.host.runs import Runs
from paddock.host.scheduler import Scheduler
from paddock.host.session_manager import SessionManager
from paddock.host.sessions import Sessions
from paddock.host.steering import Steering
from paddock.host.storage_areas import StorageAreas
from paddock.host.stored_agents import StoredAgents
from paddock.host.surroundings import Surroundings
from paddock.host.sweeping import Sweeper
from paddock.host.tails import Tails
from paddock.host.tools import ToolCalls
from paddock.host.users import Users
from paddock.http_api.mcp import McpDoor
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.rules.limits import Rates
from paddock.runners.gateway import Gateway
from paddock.settings import Settings
from paddock.storage.chosen import knowledge_in, store_at
from paddock.telemetry.metrics import Metrics, Now
from paddock.telemetry.together import Together


def build(settings: Settings, *, local_token: str | None = None, url: str = "") -> House:
    """Put the house together: one process, files under one data directory, and the store that the settings name."""
    clock = time.time
    tasks, files = Tasks(), AgentFiles()
    named = named_agents(settings, files)
    agents = named.agents
    store = store_at(settings.store, settings.data, serving=True, url=settings.own_url or url)
    near = neighbourhood_of(settings, store)
    tails = Tails(store, near.live)
    audit = Audit(store, tasks.spawn)
    blobs = blobs_of(settings)
    events = Events(store)
    artifacts = Artifacts(
        store, blobs, clock=clock, limits=artifact_limits(settings), raw=first_of(events.raw, files.raw)
    )
    areas = StorageAreas(store, blobs, area_bytes=settings.storage_area_mib * MIB)
    beside = NamedParts(settings, named.resources, named.functions, clock=clock, spawn=tasks.spawn)
    models, mcp = beside.models, beside.servers
    calendars, tools = tools_of(beside.functions, mcp, store, clock)
    kept = knowledge_in(store)
    ingest = Ingest(kept, embed=models.embed, clock=clock)
    bases = Bases(kept, ingest, embed=models.embed, clock=clock)
    offers = Offers(models=models, tools=tools, knowledge=bases, clock=clock)
    tool_calls = ToolCalls(tools, records=store, clock=clock, artifacts=artifacts)
    webhooks, platforms, deliveries = platforms_of(settings, store, clock)
    approvals = Approvals(store, platforms, clock=clock, spawn=tasks.spawn)
    steering = Steering(store)
    endpoints = RunEndpoints(settings.run_address)
    directories = directories_of(settings)
    work = {
        **History(store).work,
        **RunnerState(store).work,
        **ModelCalls(models, note=audit.soon, clock=clock, budgets=budgets_of(settings, store, clock)).work,
        **tool_calls.work,
        **KnowledgeCalls(bases).work,
        **approvals.work,
        **events.work,
        **artifacts.work,
        **areas.work,
        **steering.work,
    }
    calls = HostCalls(work=work, records=store, audit=audit, clock=clock, rates=Rates.of_a_run(settings.host_call_rate))
    metrics, traces = Metrics(version("paddock")), traces_of(settings)
    observer = Together([metrics, *([traces] if traces else [])])
    on_call = ObservedCalls(calls.on_wire, observer, clock)
    plugins = plugins_of(settings)
    gateway = Gateway(
        plugins.catalog,
        home=settings.data / "homes",
        mark=mark_of(settings.data),
        on_call=on_call,
        host_version=version("paddock"),
        isolation=settings.isolation,
        env_allow=settings.env_allow,
        on_foreign=calls.foreign,
        on_overload=calls.overloaded,
        run_socket=lambda: endpoints.socket,
        network_refused=lambda: why_no_network(store),
        patience=settings.run_deadline_seconds,
        spare_seconds=settings.spare_process_seconds,
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
        observer=observer,
        host_version=version("paddock"),
        deadline_seconds=settings.run_deadline_seconds,
        actions=approvals,
        artifacts=artifacts,
        admission=Admission(settings.max_runs),
        around=Surroundings(gateway, endpoints, directories, tasks.spawn),
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
        shared=near.shared,
        deliveries_wait=deliveries.wake,
    )
    peers = peers_of(near, sessions=sessions, tails=tails, runs=runs, audit=audit, clock=clock)
    stored_agents = StoredAgents(agents, kept=store, records=store, clock=clock)
    keep_in_step(peers, stored_agents, ingest)
    keeping = Keeping(store, blobs, sessions, clock=clock, directories=directories)
    users = Users(store, clock=clock)
    inbox = Inbox(
        sessions=sessions, runs=runs, agents=lambda: agents, records=store, clock=clock, users=users, owners=near.owners
    )
    scheduler = Scheduler(store, inbox, agents=lambda: agents, clock=clock)
    controls = Controls(
        sessions=sessions, agents=lambda: agents, readiness=runs, records=store, clock=clock, owners=near.owners
    )
    house = House(
        store=store,
        blobs=blobs,
        sweeper=Sweeper(store, blobs, clock=clock),
        keeping=keeping,
        retention=Retention(store, sessions, keeping, clock=clock, periods=periods(settings)),
        gateway=gateway,
        sessions=sessions,
        tails=tails,
        runs=runs,
        inbox=inbox,
        controls=controls,
        users=users,
        audit=audit,
        agents=agents,
        approvals=approvals,
        attaching=attaching_of(near, gateway, peers, audit, clock),
        attachments=attachments_of(settings, artifacts, store, clock),
        scheduler=scheduler,
        platforms=platforms,
        webhooks=webhooks,
        deliveries=deliveries,
        ingress=Ingress(
            inbox=inbox,
            records=store,
            agents=lambda: agents,
            accepted=DeltaStream(tails, platforms, clock=clock, spawn=tasks.spawn).follow,
        ),
        automations=Automations(store, scheduler, agents=lambda: agents, users=users, clock=clock),
        calendars=calendars,
        tasks=tasks,
        stored_agents=stored_agents,
        health=AgentHealth(agents, runs.authority),
        watch=watch_of(named, files, beside.prepare, audit, clock),
        plugins_watch=plugins.watch(gateway, audit, clock),
        shared_plugins=shared_plugins_of(settings, peers, store, audit, clock),
        ingest=ingest,
        bases=bases,
        offers=offers,
        models=models,
        tools=tools,
        tool_calls=tool_calls,
        mcp=mcp,
        run_endpoints=endpoints,
        run_door=McpDoor(endpoints, calls, on_call=on_call, note=audit.soon, clock=clock, spawn=tasks.spawn),
        clock=clock,
        peers=peers,
        metrics=metrics,
        traces=traces,
    )
    metrics.watch(
        Now(
            runs=lambda: len(runs.live),
            sessions=lambda: sessions.loaded,
            runners=gateway.count_by_state,
            store_healthy=store.healthy,
            capacity=lambda: runs.admission.capacity,
            waiting=lambda: runs.admission.waiting,
            turned_away=lambda: runs.admission.turned_away,
            hosts=lambda: 1 + (len(peers.others) if peers else 0),
            bus_healthy=near.bus.healthy,
            came=lambda: tails.came,
        )
    )
    house.app = application(house, settings, local_token)
    return house
