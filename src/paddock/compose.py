"""Puts the house together. The only file that knows every plug; read it to see all the parts."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog
from starlette.types import ASGIApp

from paddock.host.agents import Agents
from paddock.host.agents_file import load_agents
from paddock.host.audit import Audit
from paddock.host.history import History
from paddock.host.host_calls import HostCalls
from paddock.host.inbox import Inbox
from paddock.host.principals import DEV
from paddock.host.runner_state import RunnerState
from paddock.host.runs import Runs
from paddock.host.runs_view import RunsView
from paddock.host.sessions import Sessions
from paddock.host.tails import Tails
from paddock.http_api.app import create_app
from paddock.ports import Caller, Store
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows import AuditRow
from paddock.rules.session.messages import RunFailed
from paddock.runners.catalog import Catalog
from paddock.runners.gateway import Gateway
from paddock.settings import Settings
from paddock.storage.chosen import store_at

log = structlog.get_logger("paddock.house")

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
    gateway: Gateway
    sessions: Sessions
    runs: Runs
    audit: Audit
    agents: Agents
    tasks: Tasks
    _open: bool = field(default=False)

    def ready(self) -> tuple[bool, str]:
        if not self._open:
            return False, "starting"
        if not self.store.healthy():
            return False, "the store cannot write"
        return True, "ready"

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Open everything, bring what was left unfinished to its end, and close it all again."""
        await self.store.open()
        await self.gateway.start()
        try:
            interrupted = await self.sessions.recover(
                "host_restarted", "the host restarted while this run was in progress"
            )
            if interrupted:
                log.info(
                    "runs of an earlier start were brought to their end", action="house.recover", sessions=interrupted
                )
            self.tasks.spawn(self._warm_up())
            self.tasks.spawn(self.sessions.keep_queues_moving())
            self._open = True
            yield
        finally:
            self._open = False
            await self._close()

    async def _warm_up(self) -> None:
        """Learn what the agents' runners ask for before the first run needs it."""
        for binding in self.agents.list(HOME):
            await self.runs.prepare(binding.agent_id, HOME)
            if problem := self.runs.refusal(binding.runner_id, HOME):
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
        await self.tasks.stop()
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


def build(settings: Settings, *, local_token: str | None = None) -> House:
    """Put the house together: one process, files under one data directory, and the store that the settings name."""
    clock = time.time
    tasks = Tasks()
    agents = load_agents(settings.agents, max_queue=settings.max_queue)
    store = store_at(settings.store, settings.data, serving=True)
    tails = Tails(store)
    audit = Audit(store, tasks.spawn)
    calls = HostCalls(work={**History(store).work, **RunnerState(store).work}, records=store, audit=audit, clock=clock)
    gateway = Gateway(
        Catalog.load(installed=settings.data / "plugins", further=settings.plugins),
        home=settings.data / "homes",
        mark=mark_of(settings.data),
        on_call=calls,
        host_version=version("paddock"),
        isolation=settings.isolation,
        env_allow=settings.env_allow,
        on_foreign=_audited(audit, clock),
    )
    agents.offer(lambda workspace: gateway.names(workspace, installed=settings.agents is None))
    runs = Runs(
        gateway=gateway,
        agents=lambda: agents,
        records=store,
        clock=clock,
        spawn=tasks.spawn,
        offered=calls.offered,
        host_version=version("paddock"),
        deadline_seconds=settings.run_deadline_seconds,
    )
    calls.serve(runs)
    sessions = Sessions(
        store, tails, performer=runs, audit=audit, agents=lambda: agents, clock=clock, spawn=tasks.spawn
    )
    inbox = Inbox(sessions=sessions, runs=runs, agents=lambda: agents, records=store, clock=clock)
    house = House(
        app=_nothing_yet,
        store=store,
        gateway=gateway,
        sessions=sessions,
        runs=runs,
        audit=audit,
        agents=agents,
        tasks=tasks,
    )
    house.app = create_app(
        inbox=inbox,
        runs=RunsView(store),
        tails=tails,
        agents=agents,
        gateway=gateway,
        keys=store,
        ready=house.ready,
        local_token=local_token,
        keep_alive_seconds=settings.keep_alive_seconds,
        note=audit.soon,
    )
    return house


def _audited(audit: Audit, clock: Callable[[], float]) -> Callable[[Caller, str], None]:
    """A result for a run that is not its sender's to speak for is dropped, and on record."""

    def note(caller: Caller, run_id: str) -> None:
        audit.soon(
            AuditRow(
                time=clock(),
                workspace_id="",
                actor=f"plugin:{caller.plugin}",
                action="output.dropped",
                resource=run_id[:64],
                scope="",
                result="unauthorized",
                reason="unknown, ended or foreign run",
            )
        )

    return note


async def _nothing_yet(*_: object) -> None:
    raise RuntimeError("the house is not built yet")


def mark_of(data: Path) -> str:
    """What the processes of this data directory carry in their environment, so that leftovers can be found."""
    return sha256(os.fsencode(data.resolve())).hexdigest()[:24]
