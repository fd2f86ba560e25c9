"""All runners, wherever they run (ports.RunnerGateway). Decides only which process or connection a run goes to."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import anyio
import structlog

from paddock.ports import ANYWHERE, Placement, RunHandle, RunListener, RunnerStatus
from paddock.rules.errors import ErrorCode, HostError
from paddock.runners.attached_runners import ELSEWHERE, AttachedRunner, AttachedRunners, AttachTokens, AttachTransport
from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.plugins import Level
from paddock.runners.processes.failures import LOGGED
from paddock.runners.processes.isolation import Confinement, active_level
from paddock.runners.processes.leftovers import Leftovers
from paddock.runners.processes.shared import ProcessServices, ProcessTimes, RunnerGate, RunOrder
from paddock.runners.processes.supervisor import REPLACED, Supervisor
from paddock.runners.processes.supervisors import Supervisors
from paddock.runners.wire.errors import StartError
from paddock.runners.wire.runs import NoRun, workspace_of
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest

LIST_SECONDS = 5.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ShortNames:
    """Short names of runners, by name."""

    attached: Mapping[str, str]
    all: Mapping[str, str]
    """With the installed ones: each plugin's name means its `default` runner."""


class Gateway:
    """The installed plugins, each under its supervisor, and the runners attached from elsewhere."""

    def __init__(
        self,
        catalog: Catalog,
        confinement: Confinement,
        gate: RunnerGate,
        *,
        host_version: str,
        times: ProcessTimes | None = None,
        elsewhere: Callable[[], Sequence[str]] = tuple[str, ...],
    ) -> None:
        """`elsewhere` are the addresses at which a runner attaches, too, that attached here."""
        times = times or ProcessTimes()
        self.attach_tokens = AttachTokens()
        self._isolation: Level = confinement.isolation
        self._leftovers = Leftovers(confinement.mark)
        self._services = ProcessServices(gate, confinement, times, host_version, leftovers=self._leftovers)
        self._supervisors = Supervisors(catalog, self._services, patience=times.retire_seconds)
        self.attached = AttachedRunners(self._services, elsewhere=elsewhere, on_change=self._name_attached)
        self._without_attached = _installed_names(self._supervisors)
        self._names: dict[str, ShortNames] = {}
        """By workspace, only of those that have runners attached."""

    async def start(self) -> None:
        """Before the first process: kill what an earlier host of this data directory may have left behind."""
        killed = await anyio.to_thread.run_sync(self._leftovers.sweep)
        if killed:
            log.warning("processes of an earlier host were ended", action="runner.swept", processes=len(killed))

    def replace_plugins(self, catalog: Catalog) -> Mapping[str, str]:
        """These plugins are there from now on: new runs go to them, runs under way finish where they began.

        Says what became of each plugin that came, changed or went.
        """
        changes = self._supervisors.take(catalog)
        if changes:
            self._name_anew()
        return changes

    async def refresh(self, plugin: str, workspace: str) -> Sequence[RunnerStatus]:
        """Ask an installed plugin what it offers, in a new process. Raises HostError(NOT_FOUND)."""
        supervisor = self._supervisors.renew(plugin)
        if supervisor is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no plugin {plugin[:200]!r} on this host")
        self._name_anew()
        await _introduce(supervisor)
        return _statuses(supervisor, self._isolation, workspace)

    def _name_anew(self) -> None:
        """Names are new mappings also where they are the same: what was worked out from them is old."""
        self._without_attached = _installed_names(self._supervisors)
        for workspace in list(self._names):
            self._name_attached(workspace)

    async def manifest(self, runner_id: str, workspace: str | None = None) -> AgentRunnerManifest:
        """Raises HostError(NOT_FOUND) for a runner nobody offers, RUNTIME_ERROR when its process cannot be started.

        Without a workspace, a runner attached for any of them answers: starting a run still checks whose it is.
        """
        try:
            return (await self._find(runner_id, workspace))[0]
        except StartError as problem:
            raise _as_host_error(problem) from None

    def known_manifest(self, runner_id: str, workspace: str) -> AgentRunnerManifest | None:
        """Manifest of a runner without starting a process; None when it is not known yet."""
        try:
            plugin = plugin_of(runner_id)
        except StartError:
            return None
        for runner in self.attached.of_plugin(plugin, workspace):
            if runner_id in runner.manifests:
                return runner.manifests[runner_id]
        supervisor = self._supervisors.in_place.get(plugin)
        return (supervisor.known_manifests or {}).get(runner_id) if supervisor else None

    def start_at_once(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> RunHandle | None:
        """Start a run without waiting, when an installed runner is ready; None when it is not."""
        supervisor = self._supervisors.in_place.get(plugin_of(runner_id))
        manifest = (supervisor.known_manifests or {}).get(runner_id) if supervisor else None
        if supervisor is None or manifest is None or not _takes(manifest, placement):
            return None
        if self._names and workspace_of(context) in self._names:  # a runner attached for it may be the one to ask
            return None
        return supervisor.start_at_once(RunOrder(manifest, run_id, context, listener, placement))

    async def start_run(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> RunHandle:
        """Write the `run_agent` frame (starting the process first if need be) and return; news goes to `listener`."""
        try:
            manifest, place = await self._find(runner_id, workspace_of(context))
            if not _takes(manifest, placement):
                raise StartError(REPLACED, "the runner became another one while the run was started; try again")
            order = RunOrder(manifest, run_id, context, listener, placement)
            if isinstance(place, Supervisor):
                return await place.start_run(order)
            await place.connection.drained()
            return place.connection.begin_run(*order.for_wire)
        except StartError as problem:
            listener.lost(problem.code, problem.message)
            return NoRun()

    def names(self, workspace: str, *, installed: bool) -> Mapping[str, str]:
        """Runners a workspace may address by a short name: those attached for it, and the `installed` ones if asked.

        The very same mapping until it changes.
        """
        names = self._names.get(workspace, self._without_attached)
        return names.all if installed else names.attached

    def has_installed(self, plugin: str) -> bool:
        return self._supervisors.in_place.get(plugin) is not None

    def isolation_of(self, runner_id: str, workspace: str, wanted: str | None = None) -> str:
        """A level, `elsewhere` for a runner attached from another machine, `unknown` for one nobody offers."""
        plugin = plugin_of(runner_id)
        if any(self.attached.of_plugin(plugin, workspace)):
            return ELSEWHERE
        supervisor = self._supervisors.in_place.get(plugin)
        if supervisor is None:
            return "unknown"
        level = max(supervisor.plugin.isolation, self._isolation)
        return "L1" if wanted == "L1" and active_level().level == "L1" else level

    def reaches_host(self, runner_id: str, workspace: str, wanted: str | None = None) -> bool:
        """Tell if such a run could reach this host over the network: not from L1, unless its plugin may."""
        supervisor = self._supervisors.in_place.get(plugin_of(runner_id))
        inside = self.isolation_of(runner_id, workspace, wanted) == "L1"
        return not inside or (supervisor is not None and supervisor.plugin.network)

    def count_by_state(self) -> Mapping[str, int]:
        """How many plugins are in each state, asked without starting any."""
        states = Counter(each.state() for each in self._supervisors)
        return {**states, "attached": attached} if (attached := len(self.attached)) else states

    def failing(self) -> int:
        """How many plugins are left down, for everybody or for some, or did not start when last tried."""
        return sum(each.failures.any_trouble() for each in self._supervisors)

    def trouble(self, runner_id: str, workspace: str) -> HostError | None:
        """Why a run of an installed runner would not begin now, if its processes keep failing."""
        try:
            plugin = plugin_of(runner_id)
        except StartError:
            return None
        supervisor = self._supervisors.in_place.get(plugin)
        if supervisor is None or any(
            runner_id in runner.manifests for runner in self.attached.of_plugin(plugin, workspace)
        ):
            return None
        problem = supervisor.failures.trouble(workspace)
        return None if problem is None else _as_host_error(problem)

    async def list_runners(self, workspace: str | None = None) -> Sequence[RunnerStatus]:
        """Every runner, but those attached for another workspace than the one named. Plugins not known yet are started
        to ask them.
        """
        supervisors = list(self._supervisors)
        await asyncio.gather(*(_introduce(each) for each in supervisors))
        installed = [status for each in supervisors for status in _statuses(each, self._isolation, workspace)]
        return [*installed, *self.attached.statuses(workspace)]

    async def stop(self) -> None:
        """End every run and every process, and go on to the end even when the caller is cancelled."""
        self.attached.show_out("host_shutdown", "the host is shutting down")
        await self._supervisors.stop()

    # --- runners from elsewhere -----------------------------------------------------------------------------------

    async def attach(self, token: str, transport: AttachTransport) -> AttachedRunner:
        """Take a runner in; it serves new runs of its plugin in its workspace once it has shaken hands.

        The caller feeds it the lines that come, and tells it `end` when the other side is gone. Raises HostError.
        """
        ticket = self.attach_tokens.redeem(token)
        installed = self._supervisors.in_place.get(str(ticket.plugin))
        ceiling = installed.plugin.ceiling if installed else None
        return self.attached.let_in(ticket, transport, ceiling)

    def _name_attached(self, workspace: str) -> None:
        if attached := self.attached.names(workspace):
            self._names[workspace] = ShortNames(attached, {**self._without_attached.all, **attached})
        else:
            self._names.pop(workspace, None)

    async def _find(
        self, runner_id: str, workspace: str | None
    ) -> tuple[AgentRunnerManifest, Supervisor | AttachedRunner]:
        """Where a new run of this runner goes: to who attached last for the workspace, else to what is installed."""
        plugin = plugin_of(runner_id)
        for runner in self.attached.of_plugin(plugin, workspace):
            if runner_id in runner.manifests:
                return runner.manifests[runner_id], runner
        supervisor, offered = await self._offered_by(plugin)
        manifest = offered.get(runner_id)
        if supervisor is None or manifest is None:
            text = f"there is no runner {runner_id[:200]!r}"
            if supervisor and (why := supervisor.why_missing(runner_id)):
                raise StartError("runner.not_found", f"{text}{LOGGED}", f"{text}: {why}")
            raise StartError("runner.not_found", text)
        return manifest, supervisor

    async def _offered_by(self, plugin: str) -> tuple[Supervisor | None, Mapping[str, AgentRunnerManifest]]:
        """Supervisor of an installed plugin, and its runners; asked again when it was replaced meanwhile."""
        while (supervisor := self._supervisors.in_place.get(plugin)) is not None:
            try:
                offered = await supervisor.manifests()
            except StartError:
                if self._supervisors.in_place.get(plugin) is supervisor:
                    raise
            else:
                if self._supervisors.in_place.get(plugin) is supervisor:
                    return supervisor, offered
        return None, {}


def _as_host_error(problem: StartError) -> HostError:
    code = ErrorCode.NOT_FOUND if problem.code == "runner.not_found" else ErrorCode.RUNTIME_ERROR
    return HostError(
        code,
        problem.message,
        retryable=code is not ErrorCode.NOT_FOUND,
        details={"run_code": problem.code},
        for_operators=problem.detail,
    )


def _takes(manifest: AgentRunnerManifest, placement: Placement) -> bool:
    """Tell if settings that were checked against a form may go to this runner: another may have replaced it."""
    checked = placement.checked_for
    return (
        checked is None
        or checked is manifest
        or (checked.host_only, checked.config_schema) == (manifest.host_only, manifest.config_schema)
    )


def _installed_names(supervisors: Iterable[Supervisor]) -> ShortNames:
    plugins = (each.plugin for each in supervisors if not each.plugin.needs_settings)
    return ShortNames({}, {plugin.name: f"plugin:{plugin.id}/default" for plugin in plugins})


@lru_cache(maxsize=1024)
def plugin_of(runner_id: str) -> str:
    try:
        return str(RunnerId.parse(runner_id).plugin)
    except ValueError as problem:
        raise StartError("runner.not_found", str(problem)) from None


async def _introduce(supervisor: Supervisor) -> None:
    """Ask for its runners, but not for ever: a plugin that backs off or is slow is listed as it stands."""
    try:
        with anyio.move_on_after(LIST_SECONDS):
            await supervisor.manifests()
    except StartError as problem:
        log.warning(
            "the runners of a plugin are not known",
            action="runner.not_listed",
            plugin=supervisor.plugin.id,
            reason=problem.detail,
        )


def _statuses(supervisor: Supervisor, isolation: Level, workspace: str | None) -> list[RunnerStatus]:
    """One line per runner, or one for the plugin while its runners are not known."""
    plugin = supervisor.plugin
    manifests = supervisor.known_manifests or {f"plugin:{plugin.id}/*": None}
    return [
        RunnerStatus(
            runner_id=runner_id,
            plugin=plugin.id,
            state=supervisor.state(workspace),
            isolation=max(plugin.isolation, isolation),
            detail=supervisor.detail,
            manifest=manifest,
            pid=supervisor.pid(),
            failing=supervisor.failures.any_trouble(),
            unhealthy_for=supervisor.failures.left_down_for(),
        )
        for runner_id, manifest in manifests.items()
    ]
