"""One plugin's processes: started on demand, shared by many runs or one for each, restarted as the rules say.

A run that cannot have a process hears so at once; nothing is tried twice behind its back.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Any, Literal

import anyio
import structlog

from paddock.ports import Caller, HostCallHandler, RunListener
from paddock.rules.restart import LeaveDown, after_exit
from paddock.runners.catalog import Plugin, check_manifests
from paddock.runners.connection import Connection, Peer
from paddock.runners.errors import HandshakeError, PeerRefusedError, StartError
from paddock.runners.leftovers import Leftovers
from paddock.runners.process import AT_ONCE, Launch, RunnerProcess
from paddock.runners.runs import Run
from paddock_sdk.protocol.manifest import AgentRunnerManifest

START_SECONDS = 30.0

State = Literal["stopped", "starting", "ready", "unhealthy"]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every plugin's processes share."""

    handler: HostCallHandler
    leftovers: Leftovers
    plan: Callable[[Plugin], Launch]
    """Raises StartError for a plugin that cannot be started as it asks."""
    host_version: str = "0"
    on_foreign: Callable[[Caller, str], None] = lambda _caller, _run_id: None
    start_seconds: float = START_SECONDS
    clock: Callable[[], float] = monotonic
    numbers: "count[int]" = field(default_factory=count)


@dataclass(slots=True, eq=False)
class Worker:
    """One process and the connection to it."""

    process: RunnerProcess
    connection: Connection
    served: int = 0
    ready: bool = False
    dismissed: bool = False
    """No more runs go to it, and its end is no crash."""
    watch: "asyncio.Task[None] | None" = None


class Supervisor:
    """Keeps one plugin running."""

    def __init__(self, plugin: Plugin, around: Surroundings) -> None:
        self.plugin = plugin
        self.detail = ""
        """What went wrong last, for a person; empty when nothing did."""
        self._around = around
        self._manifests: dict[str, AgentRunnerManifest] | None = None
        self._workers: set[Worker] = set()
        self._free: Worker | None = None
        self._start: asyncio.Task[Worker] | None = None
        self._starting = 0
        self._exits: list[float] = []
        self._not_before = 0.0
        self._unhealthy = False
        self._stopping = False
        self._chores: set[asyncio.Task[None]] = set()

    # --- what the gateway asks ------------------------------------------------------------------------------------

    async def manifests(self) -> Mapping[str, AgentRunnerManifest]:
        """Its runners; starts a process if they are not known yet. Raises StartError."""
        if self._manifests is None:
            await self._ready_worker()
        return self._manifests or {}

    def known_manifests(self) -> Mapping[str, AgentRunnerManifest] | None:
        """Its runners, if they are known already."""
        return self._manifests

    def state(self) -> State:
        if any(worker.ready and not worker.dismissed for worker in self._workers):
            return "ready"
        if self._starting:
            return "starting"
        return "unhealthy" if self._unhealthy and self._around.clock() < self._not_before else "stopped"

    def pid(self) -> int | None:
        return next((worker.process.pid for worker in self._workers if not worker.dismissed), None)

    async def start_run(
        self, manifest: AgentRunnerManifest, run_id: str, context: Mapping[str, Any], listener: RunListener
    ) -> Run:
        """Hand a run to a process. Raises StartError when there is none to be had."""
        worker = await self._ready_worker()
        self._take_seat(worker)
        return await worker.connection.start_run(manifest.id, manifest.name, run_id, context, listener)

    async def stop(self, code: str = "host_shutdown", message: str = "the host is shutting down") -> None:
        """End every run and every process of this plugin."""
        self._stopping = True
        if self._start is not None:
            self._start.cancel()
        async with anyio.create_task_group() as group:
            for worker in list(self._workers):
                group.start_soon(self._dismiss, worker, code, message)
        await asyncio.gather(*(worker.watch for worker in self._workers if worker.watch), return_exceptions=True)

    # --- workers --------------------------------------------------------------------------------------------------

    async def _ready_worker(self) -> Worker:
        """A process with room for a run. Those who ask at once share one start, unless each run has its own."""
        if self._free is not None and not self._free.connection.closed:
            return self._free
        if self.plugin.runs_per_process == 1 and self._manifests is not None:
            return await self._start_worker()
        if self._start is None or self._start.done():
            self._start = asyncio.create_task(self._start_worker())
        return await self._shared(self._start)

    async def _shared(self, start: "asyncio.Task[Worker]") -> Worker:
        try:
            worker = await asyncio.shield(start)
        except asyncio.CancelledError:
            if self._stopping:
                raise StartError("host_shutdown", "the host is shutting down") from None
            raise
        return worker if worker is self._free else await self._ready_worker()

    def _take_seat(self, worker: Worker) -> None:
        worker.served += 1
        limit = self.plugin.runs_per_process
        if limit and worker.served >= limit and self._free is worker:
            self._free = None

    async def _start_worker(self) -> Worker:
        self._starting += 1
        try:
            await self._wait_for_leave()
            with anyio.fail_after(self._around.start_seconds):
                worker = await self._launch()
        except TimeoutError:
            raise self._failed_start(f"it was not ready within {self._around.start_seconds:.0f} seconds") from None
        except StartError as problem:
            self.detail = problem.message
            raise
        finally:
            self._starting -= 1
        self._free = worker
        self.detail = ""
        return worker

    async def _wait_for_leave(self) -> None:
        """Obey what the rules said after the last failure."""
        if self._stopping:
            raise StartError("host_shutdown", "the host is shutting down")
        rest = self._not_before - self._around.clock()
        if self._unhealthy and rest > 0:
            raise StartError("runner.unhealthy", f"{self.plugin.id} keeps failing: {self.detail}")
        if self._unhealthy:
            self._unhealthy, self._exits = False, []
        await anyio.sleep(max(rest, 0))

    async def _launch(self) -> Worker:
        launch = self._around.plan(self.plugin)
        try:
            process = await RunnerProcess.start(launch, self._around.leftovers)
        except OSError as problem:
            raise self._failed_start(f"its process could not be started: {problem}") from None
        worker = Worker(process, self._connect(process))
        worker.watch = asyncio.create_task(self._watch(worker))
        self._workers.add(worker)
        try:
            await self._introduce(worker.connection)
        except BaseException as problem:
            exited = worker.connection.closed
            await self._kill(process)
            if isinstance(problem, HandshakeError | PeerRefusedError):
                raise self._failed_start(process.ending() if exited else str(problem)) from None
            raise
        worker.ready = True
        return worker

    def _connect(self, process: RunnerProcess) -> Connection:
        caller = Caller(self.plugin.id, f"{self.plugin.id}#{next(self._around.numbers)}")
        peer = Peer(
            transport=process,
            caller=caller,
            handler=self._around.handler,
            kill=lambda: self._kill(process),
            drained=process.drained,
            on_run_over=lambda: self._run_over(process),
            on_foreign=self._around.on_foreign,
        )
        connection = Connection(peer)
        process.on_output = connection.feed
        process.on_stall = lambda reason: connection.fail("runner.protocol_error", reason)
        return connection

    async def _introduce(self, connection: Connection) -> None:
        """Shake hands, and learn what it offers if that is not known yet."""
        await connection.open((self.plugin.author, self.plugin.name), host_version=self._around.host_version)
        if self._manifests is None:
            offered = await connection.list_runners()
            self._manifests = check_manifests(self.plugin.id, offered, self.plugin.ceiling)

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _watch(self, worker: Worker) -> None:
        """Stay with one process until nothing of it is left."""
        await worker.process.finished()
        if self._free is worker:
            self._free = None
        crashed_in_use = worker.connection.live_runs > 0 and not worker.dismissed
        worker.connection.end("runner.crashed", f"the runner process is gone: {worker.process.ending()}")
        if crashed_in_use:
            self._count_failure(worker.process.ending())
        await worker.process.gone()
        self._workers.discard(worker)

    def _failed_start(self, reason: str) -> StartError:
        self._count_failure(reason)
        return StartError("runner.start_failed", f"{self.plugin.id} did not start: {reason}")

    def _count_failure(self, reason: str) -> None:
        now = self._around.clock()
        self.detail = reason
        self._exits = [*self._exits[-9:], now]
        verdict = after_exit(self._exits, now=now)
        self._not_before = now + verdict.seconds
        self._unhealthy = isinstance(verdict, LeaveDown)
        log.warning("runner.failed", plugin=self.plugin.id, reason=reason, unhealthy=self._unhealthy)

    def _worker_of(self, process: RunnerProcess) -> Worker | None:
        return next((worker for worker in self._workers if worker.process is process), None)

    async def _kill(self, process: RunnerProcess) -> None:
        if (worker := self._worker_of(process)) is not None:
            self._retire(worker)
            worker.connection.end("runner.crashed", "the runner process was stopped")
        await process.stop(AT_ONCE)

    def _retire(self, worker: Worker) -> None:
        worker.dismissed = True
        if self._free is worker:
            self._free = None

    def _run_over(self, process: RunnerProcess) -> None:
        """A process that has served its number of runs goes when the last of them is over."""
        worker = self._worker_of(process)
        limit = self.plugin.runs_per_process
        if worker is None or not limit or worker.served < limit or worker.connection.live_runs or worker.dismissed:
            return
        chore = asyncio.create_task(self._dismiss(worker, "runner.crashed", "the process was replaced"))
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)

    async def _dismiss(self, worker: Worker, code: str, message: str) -> None:
        """End one process politely, but for certain."""
        self._retire(worker)
        worker.connection.request("shutdown", {}, lambda _frame: None)
        worker.connection.end(code, message)
        await worker.process.stop()
