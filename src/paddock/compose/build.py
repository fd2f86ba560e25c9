"""Puts a host together: its rooms, the application in front of them, and the order in which they open and close."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from secrets import SystemRandom
from typing import Any

import anyio.to_thread

from paddock.compose.doors import application
from paddock.compose.house import House, Step, Steps
from paddock.compose.lifecycle import Ending, Readiness, Recovery, WarmUp, note_the_rest
from paddock.compose.rooms import Rooms, rooms_of
from paddock.host.cluster.secret import settle_secret
from paddock.settings import Settings
from paddock.telemetry.loop_watch import LoopWatch
from paddock.telemetry.metrics import Now


def build(settings: Settings, *, local_token: str | None = None, url: str = "") -> House:
    """Put a host together: one process, files under one data directory, and the store that the settings name."""
    return house_of(rooms_of(settings, url), local_token)


def house_of(rooms: Rooms, local_token: str | None = None) -> House:
    ground, machinery, talks, peers = rooms.ground, rooms.machinery, rooms.talks, rooms.upkeep.peers
    runs, loop_watch = machinery.runs, LoopWatch()
    readiness = Readiness(
        store=ground.store,
        admission=runs.live.admission,
        health=rooms.upkeep.health,
        gateway=machinery.gateway,
        peers=peers,
    )
    page = partial(machinery.metrics.page, now=_now(rooms, loop_watch))
    return House(
        app=application(rooms, readiness.now, page, local_token),
        run_door=machinery.run_door,
        run_endpoints=machinery.endpoints,
        models=rooms.granted.beside.models,
        readiness=readiness,
        steps=_steps(rooms),
        ending=Ending(
            store=ground.store,
            runs=runs,
            sessions=talks.sessions,
            audit=ground.audit,
            peers=peers,
            clock=ground.clock,
        ),
        tasks=ground.tasks,
        loop_watch=loop_watch,
    )


def _steps(rooms: Rooms) -> Steps:
    ground, granted, talks, upkeep = rooms.ground, rooms.granted, rooms.talks, rooms.upkeep
    store, blobs = ground.store, ground.blobs
    recovery = Recovery(
        sessions=talks.sessions,
        settling=granted.settling,
        approvals=granted.outside.approvals,
        peers=upkeep.peers,
        tasks=ground.tasks,
    )
    return Steps(
        opening=[
            store.open,
            partial(settle_secret, store, ground.secret, shared=upkeep.peers is not None),
            blobs.open,
            rooms.machinery.gateway.start,
            talks.stored_agents.load,
        ],
        recovery=[recovery.end_interrupted_runs, recovery.settle_calls],
        working=_working(rooms),
        closing=_closing(rooms),
    )


def _working(rooms: Rooms) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
    granted, talks, upkeep = rooms.granted, rooms.talks, rooms.upkeep
    warm_up = WarmUp(rooms.machinery.agents, rooms.machinery.runs)
    servers, spawn = granted.beside.servers, rooms.ground.tasks.spawn
    watched = (upkeep.agents_watch, upkeep.plugins_watch)

    async def start_servers() -> None:
        servers.start(spawn)

    return [
        warm_up.prepare,
        granted.beside.models.warm_up,
        start_servers,
        talks.sessions.keep_queues_moving,
        talks.open_streams.keep_looking,
        granted.documents.ingest.run,
        talks.scheduler.run,
        granted.outside.deliveries.run,
        upkeep.sweeper.keep_sweeping,
        partial(upkeep.retention.keep_sweeping, SystemRandom().random),
        *(partial(warm_up.keep_looking, one.reload_if_changed) for one in watched if one is not None),
        *([upkeep.shared_plugins.run] if upkeep.shared_plugins is not None else []),
    ]


def _closing(rooms: Rooms) -> Sequence[Step]:
    """List the steps that close a host after its runs have ended; the store is last, because the others may still
    write."""
    ground, granted, peers, traces = rooms.ground, rooms.granted, rooms.upkeep.peers, rooms.machinery.traces
    return [
        rooms.machinery.gateway.stop,
        granted.beside.models.close,
        ground.tasks.stop,
        partial(note_the_rest, ground.outcomes, ground.audit),
        *([peers.close] if peers is not None else []),
        *([partial(anyio.to_thread.run_sync, traces.close)] if traces is not None else []),
        granted.outside.webhooks.close,
        ground.blobs.close,
        ground.store.close,
    ]


def _now(rooms: Rooms, loop_watch: LoopWatch) -> Now:
    ground, live, gateway = rooms.ground, rooms.ground.present.runs, rooms.machinery.gateway
    admission, loops, near, tails = live.admission, ground.present.loops, ground.near, ground.tails
    return Now(
        runs=lambda workspace: len(live) if workspace is None else admission.busy.get(workspace, 0),
        sessions=lambda: len(loops),
        runners=gateway.count_by_state,
        store_healthy=ground.store.healthy,
        capacity=lambda: admission.capacity,
        waiting=admission.waiting,
        turned_away=lambda: admission.turned_away,
        hosts=near.count,
        bus_healthy=near.bus.healthy,
        came=lambda: tails.came,
        stalls=lambda: loop_watch.stalls,
        worst_stall=lambda: loop_watch.worst,
    )
