"""One plugin's processes: started on demand, shared by many runs or one for each, restarted as the rules say.

A run that cannot have a process hears so at once; nothing is tried twice behind its back.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import structlog

from paddock.ports import ANYWHERE, Caller, Placement
from paddock.rules.errors import RunCode
from paddock.rules.run.restart import NOBODY
from paddock.runners.installed.manifests import Listing, check_manifests
from paddock.runners.installed.plugins import OPEN, Plugin, ProcessPlace
from paddock.runners.processes.failures import LOGGED, Failures
from paddock.runners.processes.prewarming import Prewarming
from paddock.runners.processes.process import AT_ONCE, RunnerProcess, Worker
from paddock.runners.processes.shared import ProcessServices, RunOrder
from paddock.runners.wire.connection import RunnerConnection, RunnerPeer
from paddock.runners.wire.errors import PeerError, StartError
from paddock.runners.wire.runs import WireRun
from paddock_sdk.protocol.manifest import AgentRunnerManifest

SHUTDOWN: tuple[RunCode, str] = ("host_shutdown", "the host is shutting down")
REPLACED: RunCode = "runner.replaced"
APART_CHECK_SECONDS = 5.0

State = Literal["stopped", "starting", "ready", "unhealthy"]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Supervisor:
    """Keeps one plugin running."""

    def __init__(self, plugin: Plugin, services: ProcessServices) -> None:
        self.plugin = plugin
        self.detail = ""
        """What went wrong last, for whoever runs the host; empty when nothing did."""
        self._services = services
        self.known_manifests: Mapping[str, AgentRunnerManifest] | None = None
        """Its runners, once they were asked for."""
        self._listing = Listing()
        self._workers: set[Worker] = set()
        self._starts: set[asyncio.Task[None]] = set()
        self._shared_starts: dict[ProcessPlace, asyncio.Task[None]] = {}
        self.failures = Failures(plugin.id, services.times.clock)
        self._usual = self._place_for(ANYWHERE)
        self._prewarming = Prewarming(
            services.times.spare_seconds, start=self._keep_some_ready, give_up=self._give_up_spares
        )
        self._chores: set[asyncio.Task[None]] = set()
        self._coming = 0
        """Runs on their way to a process."""
        self._quieter = asyncio.Event()
        """A run is over, or did not begin."""
        self._stopped: tuple[RunCode, str] | None = None
        """Why nothing is started any more."""

    # --- what the gateway asks ------------------------------------------------------------------------------------

    async def manifests(self) -> Mapping[str, AgentRunnerManifest]:
        """Its runners; starts a process if they are not known yet. Raises StartError."""
        while self.known_manifests is None:
            await self._one_more(self._usual, shared=True)
        return self.known_manifests

    def why_missing(self, runner_id: str) -> str:
        """Return why there is no such runner, from its manifest or the plugin's last failure; else empty."""
        of_others = self._listing.why_none
        return self._listing.unlisted.get(runner_id) or (self.detail if self.detail != of_others else "")

    def state(self, workspace: str | None = None) -> State:
        """Its state for one workspace; for whoever runs the host it is unhealthy when it is for any."""
        if self.failures.kept and (
            self.failures.refusal(workspace) is not None or (workspace is None and self.failures.left_down_for())
        ):
            return "unhealthy"
        if any(worker.usable for worker in self._workers):
            return "ready"
        return "starting" if self._starts else "stopped"

    def pid(self) -> int | None:
        return next((worker.process.pid for worker in self._workers if worker.usable), None)

    def start_at_once(self, order: RunOrder) -> WireRun | None:
        """Hand a run to a process that is ready for it; None when that would have to be waited for."""
        worker = self._with_room(self._place_for(order.placement), order.placement.workspace)
        if worker is None or not worker.process.flowing():
            return None
        self._serves(worker, order)
        run = worker.connection.begin_run(*order.for_wire)
        if not run.live:
            self._run_over(worker)
        return run

    async def start_run(self, order: RunOrder) -> WireRun:
        """Hand a run to a process. Raises StartError when there is none to be had."""
        self._coming += 1
        try:
            return await self._bring(order)
        finally:
            self._coming -= 1
            self._quieter.set()

    async def _bring(self, order: RunOrder) -> WireRun:
        place, workspace = self._place_for(order.placement), order.placement.workspace
        while (worker := self._with_room(place, workspace)) is None:
            waited_for = place in self._shared_starts and self._prewarming.may_await(workspace)
            await self._one_more(place, shared=self._limit(place) != 1 or waited_for, workspace=workspace)
        self._serves(worker, order)
        try:
            await worker.connection.drained()
        except asyncio.CancelledError:
            worker.served -= 1  # it never began
            raise
        run = worker.connection.begin_run(*order.for_wire)
        if not run.live:
            self._run_over(worker)
        return run

    def _serves(self, worker: Worker, order: RunOrder) -> None:
        if not worker.served and worker.place == self._usual:
            self._prewarming.taken(order.placement.workspace)
        worker.serves(order.run_id, order.placement.workspace)

    async def retire(self, seconds: float) -> None:
        """Another is in its place: what runs may finish within this time, then nothing of it stays."""
        with anyio.move_on_after(seconds):
            while self._stopped is None and self.busy:
                self._quieter.clear()
                await self._quieter.wait()
        await self.stop(REPLACED, "its plugin was replaced or removed, and the run did not end in time")

    @property
    def busy(self) -> bool:
        return bool(self._coming or any(worker.connection.live_runs for worker in self._workers))

    async def stop(self, code: RunCode = SHUTDOWN[0], message: str = SHUTDOWN[1]) -> None:
        self._stopped = (code, message)
        self._prewarming.stop()
        self._quieter.set()
        starts, workers = list(self._starts), list(self._workers)
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, *(self._dismiss(each, code, message) for each in workers), return_exceptions=True)
        await asyncio.gather(*(each.watch for each in workers if each.watch), return_exceptions=True)

    # --- workers --------------------------------------------------------------------------------------------------

    def _place_for(self, placement: Placement) -> ProcessPlace:
        """Choose a run's place: at L0 all processes are alike; a confined one sees what its run was given.

        A workspace whose run was in a crash lately shares no process with others.
        """
        place = OPEN
        if "L1" in (self.plugin.isolation, self._services.confinement.isolation, placement.isolation):
            directory = None if placement.directory is None else Path(placement.directory)
            place = ProcessPlace("L1", directory, placement.directory_is_ours, tuple(map(Path, placement.visible)))
        if self._limit(place) == 1:
            return replace(place, conversation=placement.conversation) if place.level == "L1" else place
        apart = self.failures.kept and self.failures.apart_for(placement.workspace) > 0
        return replace(place, apart=placement.workspace) if apart else place

    def _limit(self, place: ProcessPlace) -> int:
        """A process that sees the directory of one run is not kept for others."""
        return self.plugin.runs_per_process if place.directory is None else 1

    def _with_room(self, place: ProcessPlace, workspace: str) -> Worker | None:
        limit = self._limit(place)
        if limit == 1 and place == self._usual and not self._prewarming.may_take(workspace, len(self._ready())):
            return None
        for each in self._workers:
            if each.usable and (not limit or each.served < limit) and (each.place is place or each.place == place):
                return each
        return None

    def _ready(self) -> list[Worker]:
        """Processes that wait for their first run."""
        return [each for each in self._workers if each.usable and not each.served and each.place == self._usual]

    async def _one_more(self, place: ProcessPlace, *, shared: bool, workspace: str | None = None) -> None:
        """Start a process and wait until it is ready; whoever may share it waits for the same one."""
        start = self._shared_starts.get(place) if shared else None
        if start is None or start.done():
            start = asyncio.create_task(self._start_worker(place, workspace))
            self._starts.add(start)
            start.add_done_callback(self._start_ended)
            if shared:
                self._shared_starts[place] = start
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            if start.cancelled():
                raise StartError(*(self._stopped or SHUTDOWN)) from None
            if not shared:
                start.cancel()  # nobody else waits for it, and an idle process would stay for ever
            raise

    def _start_ended(self, start: "asyncio.Task[None]") -> None:
        self._starts.discard(start)
        self._shared_starts = {place: one for place, one in self._shared_starts.items() if one is not start}
        if not start.cancelled():
            start.exception()  # heard by whoever waited; if nobody does any more, `detail` tells

    async def _start_worker(self, place: ProcessPlace, workspace: str | None) -> None:
        if self._stopped:
            raise StartError(*self._stopped)
        blamed = NOBODY if workspace is None or place == self._usual else frozenset({workspace})
        try:
            await self.failures.wait(workspace)
            with anyio.fail_after(self._services.times.start_seconds):
                await self._launch(place, blamed)
        except TimeoutError:
            reason = f"it was not ready within {self._services.times.start_seconds:.0f} seconds"
            raise self._failed_start(reason, blamed=blamed) from None
        self.failures.start_worked(blamed)
        self.detail = self._listing.why_none

    async def _launch(self, place: ProcessPlace, blamed: frozenset[str]) -> None:
        """Start a process, shake hands, and put it to work. A failure counts against `blamed`, or everybody."""
        try:
            await self._services.check_network(self.plugin, place)
            launch = await anyio.to_thread.run_sync(self._services.confinement.launch, self.plugin, place)
            process = await RunnerProcess.start(launch, self._services.leftovers)
        except StartError as problem:
            self.detail = problem.detail
            self.failures.start_failed(problem, blamed)
            raise
        except OSError as problem:
            raise self._failed_start("its process could not be started", str(problem), blamed) from None
        worker = Worker(process, place)
        self._connect(worker)
        worker.watch = asyncio.create_task(self._watch(worker))
        self._workers.add(worker)
        try:
            await self._introduce(worker.connection)
        except PeerError as problem:
            quoted = problem.quoted or worker.process.last_line()
            raise self._failed_start(worker.connection.reason or str(problem), quoted, blamed) from None
        else:
            worker.ready = True
            if self._limit(place) == 1:
                self._prewarming.ready(ahead=place in self._shared_starts)
            if place.apart is not None:
                self._end_apart(worker, place.apart)
        finally:
            if not worker.ready:
                await self._kill(worker)

    def _connect(self, worker: Worker) -> None:
        process = worker.process
        caller = Caller(self.plugin.id, f"{self.plugin.id}#{next(self._services.numbers)}")
        peer = RunnerPeer(
            transport=process,
            caller=caller,
            handler=self._services.gate.on_call,
            kill=partial(self._kill, worker),
            drained=process.drained,
            on_run_over=partial(self._run_over, worker),
            on_foreign=self._services.gate.on_foreign,
            on_overload=self._services.gate.on_overload,
        )
        worker.connection = RunnerConnection(peer)
        process.on_output = worker.connection.feed
        process.on_stall = partial(worker.connection.fail, "runner.protocol_error")

    async def _introduce(self, connection: RunnerConnection) -> None:
        """Shake hands, and learn what it offers if that is not known yet."""
        await connection.open((self.plugin.author, self.plugin.name), self._services.introduction)
        if self.known_manifests is None:
            offered = await connection.list_runners()
            listing = check_manifests(self.plugin.id, offered, self.plugin.ceiling)
            self.known_manifests, self._listing = listing.runners, listing

    # --- ends -----------------------------------------------------------------------------------------------------

    async def _watch(self, worker: Worker) -> None:
        await worker.process.finished()
        worker.connection.end("runner.crashed", f"the runner process is gone: {worker.process.ending()}")
        if worker.connection.lost and not worker.dismissed:
            self._count_failure(_with(worker.process.ending(), worker.process.last_line()), worker.connection.lost)
        await worker.process.gone()
        self._workers.discard(worker)

    def _failed_start(self, reason: str, quoted: str = "", blamed: frozenset[str] = NOBODY) -> StartError:
        """`quoted`: words of the program or of the system, which only whoever runs the host is told."""
        self._count_failure(_with(reason, quoted), blamed)
        logged = LOGGED if quoted else ""
        error = StartError("runner.start_failed", f"{self.plugin.id} did not start: {reason}{logged}", self.detail)
        self.failures.start_failed(error, blamed)
        return error

    def _count_failure(self, reason: str, workspaces: frozenset[str]) -> None:
        """`reason` is for whoever runs the host."""
        self.detail = reason
        self.failures.count(reason, workspaces)

    async def _kill(self, worker: Worker) -> None:
        if worker in self._workers:
            if worker.connection.broken and worker.connection.lost and not worker.dismissed:
                self._count_failure(worker.connection.reason, worker.connection.lost)
            worker.dismissed = True
            worker.connection.end("runner.crashed", "the runner process was stopped")
        await worker.process.stop(AT_ONCE)

    def _run_over(self, worker: Worker) -> None:
        """A process that has served its number of runs goes when the last of them is over."""
        self._quieter.set()
        limit = self._limit(worker.place)
        if not limit or worker.served < limit or worker.connection.live_runs or worker.dismissed:
            return
        self._replace(worker)
        if limit == 1 and worker.place == self._usual and self._stopped is None:
            self._prewarming.run_over(worker.workspace)

    def _replace(self, worker: Worker) -> None:
        chore = asyncio.create_task(self._dismiss(worker, "runner.crashed", "the process was replaced"))
        self._chores.add(chore)
        chore.add_done_callback(self._chores.discard)

    async def _keep_some_ready(self) -> None:
        """Start processes one after the other until as many are ready as wanted."""
        while self._stopped is None and not self._starts and len(self._ready()) < self._prewarming.wanted:
            try:
                await self._one_more(self._usual, shared=True)
            except StartError:  # `detail` tells; who comes next is told
                self._prewarming.failed()

    def _end_apart(self, worker: Worker, workspace: str) -> None:
        """End the process of a workspace that was set apart, once it is back with the others."""
        if worker not in self._workers or worker.dismissed or self._stopped is not None:
            return
        if self.failures.apart_for(workspace) or worker.connection.live_runs:
            asyncio.get_running_loop().call_later(APART_CHECK_SECONDS, self._end_apart, worker, workspace)
        else:
            self._replace(worker)

    def _give_up_spares(self, keep: int) -> None:
        for worker in self._ready()[keep:]:
            self._replace(worker)

    async def _dismiss(self, worker: Worker, code: RunCode, message: str) -> None:
        """End one process politely, but for certain."""
        worker.dismissed = True
        worker.connection.request("shutdown", {}, lambda _frame: None)
        worker.connection.end(code, message)
        await worker.process.stop()


def _with(reason: str, quoted: str) -> str:
    return f"{reason}; last it said: {quoted}" if quoted else reason
