"""All runners, wherever they run (ports.RunnerGateway). Decides only which process or connection a run goes to."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import structlog

from paddock.ports import Caller, HostCallHandler, RunHandle, RunListener, RunnerStatus
from paddock.rules.errors import ErrorCode, HostError
from paddock.runners import launch
from paddock.runners.catalog import Catalog, Level
from paddock.runners.errors import StartError
from paddock.runners.leftovers import Leftovers
from paddock.runners.supervisor import START_SECONDS, Supervisor, Surroundings
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NoRun:
    """The handle of a run that never began."""

    connection_id = ""

    async def cancel(self, reason: str) -> bool:  # noqa: ARG002 - there is nothing to tell
        return True

    def give_credit(self, count: int) -> None:
        """Nobody to give it to."""

    async def force_stop(self) -> None:
        """Nothing to stop."""

    def release(self) -> None:
        """Nothing to forget."""


class Gateway:
    """The installed plugins, each under its supervisor, and the runners attached from elsewhere."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        home: Path,
        mark: str,
        on_call: HostCallHandler,
        host_version: str,
        isolation: Level = "L0",
        env_allow: Collection[str] = (),
        on_foreign: Callable[[Caller, str], None] = lambda _caller, _run_id: None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        """`home` holds the private directories of the plugins; `mark` names this data directory in their environment."""
        self._leftovers = Leftovers(mark)
        allowed = {name: os.environ[name] for name in env_allow if name in os.environ}
        self._around = Surroundings(
            handler=on_call,
            leftovers=self._leftovers,
            plan=lambda plugin: launch.plan(plugin, homes=home, mark=mark, allowed=allowed),
            host_version=host_version,
            on_foreign=on_foreign,
            start_seconds=start_seconds,
        )
        self._supervisors = {plugin.id: Supervisor(plugin, self._around) for plugin in catalog.plugins.values()}

    async def start(self) -> None:
        """Before the first process: kill what an earlier host of this data directory may have left behind."""
        killed = await anyio.to_thread.run_sync(self._leftovers.sweep)
        if killed:
            log.warning("runner.swept", processes=len(killed))

    async def manifest(self, runner_id: str) -> AgentRunnerManifest:
        """Raises HostError(NOT_FOUND) for a runner nobody offers, RUNTIME_ERROR when its process cannot be started."""
        try:
            return await self._manifest(runner_id)
        except StartError as problem:
            code = ErrorCode.NOT_FOUND if problem.code == "runner.not_found" else ErrorCode.RUNTIME_ERROR
            raise HostError(code, problem.message, retryable=code is ErrorCode.RUNTIME_ERROR) from None

    async def start_run(
        self, runner_id: str, run_id: str, context: Mapping[str, Any], listener: RunListener
    ) -> RunHandle:
        """Write the `run_agent` frame (starting the process first if need be) and return; news goes to `listener`."""
        try:
            manifest = await self._manifest(runner_id)
            return await self._supervisor(runner_id).start_run(manifest, run_id, context, listener)
        except StartError as problem:
            listener.lost(problem.code, problem.message)
            return NoRun()

    async def list_runners(self) -> Sequence[RunnerStatus]:
        """Every runner; plugins not known yet are started to ask them."""
        supervisors = list(self._supervisors.values())
        await asyncio.gather(*(_introduce(each) for each in supervisors))
        return [status for each in supervisors for status in _statuses(each)]

    async def stop(self) -> None:
        """End every run and every process."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                for supervisor in self._supervisors.values():
                    group.start_soon(supervisor.stop)

    async def _manifest(self, runner_id: str) -> AgentRunnerManifest:
        manifests = await self._supervisor(runner_id).manifests()
        if runner_id not in manifests:
            raise StartError("runner.not_found", f"there is no runner {runner_id!r}")
        return manifests[runner_id]

    def _supervisor(self, runner_id: str) -> Supervisor:
        try:
            return self._supervisors[str(RunnerId.parse(runner_id).plugin)]
        except (KeyError, ValueError):
            raise StartError("runner.not_found", f"there is no runner {runner_id[:200]!r}") from None


async def _introduce(supervisor: Supervisor) -> None:
    try:
        await supervisor.manifests()
    except StartError as problem:
        log.warning("runner.not_listed", plugin=supervisor.plugin.id, reason=problem.message)


def _statuses(supervisor: Supervisor) -> list[RunnerStatus]:
    """One line per runner, or one for the plugin while its runners are not known."""
    plugin = supervisor.plugin
    manifests = supervisor.known_manifests() or {f"plugin:{plugin.id}/*": None}
    return [
        RunnerStatus(
            runner_id=runner_id,
            plugin=plugin.id,
            state=supervisor.state(),
            isolation=plugin.isolation,
            detail=supervisor.detail,
            manifest=manifest,
            pid=supervisor.pid(),
        )
        for runner_id, manifest in manifests.items()
    ]
