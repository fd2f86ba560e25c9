"""Settings and services that the processes of all plugins, and the runners attached from elsewhere, share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from time import monotonic, time
from typing import Any

from paddock.ports import Caller, HostCallHandler, Overloaded, Placement, RunListener
from paddock.runners.installed.plugins import Plugin, ProcessPlace
from paddock.runners.processes.isolation import Confinement
from paddock.runners.processes.leftovers import Leftovers
from paddock.runners.processes.prewarming import SPARE_SECONDS
from paddock.runners.wire.errors import StartError
from paddock_sdk.protocol.manifest import AgentRunnerManifest


@dataclass(frozen=True, slots=True)
class RunnerGate:
    """Handlers for host calls of runners, and for frames that were turned away before."""

    on_call: HostCallHandler
    on_foreign: Callable[[Caller, str], None] = lambda _caller, _run_id: None
    on_overload: Overloaded = lambda _caller, _method, _params, _left_out: None


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """Time limits of plugin processes, and the clocks they are measured with."""

    start_seconds: float = 30.0
    retire_seconds: float = 300.0
    """Time for runs of a plugin that was replaced or removed to finish."""
    spare_seconds: float = SPARE_SECONDS
    """Time a process waits for the next run where each run has its own."""
    clock: Callable[[], float] = monotonic
    host_time: Callable[[], float] = time
    """The time of day that deadlines are given in."""


@dataclass(frozen=True, slots=True)
class ProcessServices:
    """Services and limits common to every plugin's processes."""

    gate: RunnerGate
    confinement: Confinement
    times: ProcessTimes
    host_version: str
    leftovers: Leftovers
    numbers: "count[int]" = field(default_factory=count)

    @property
    def introduction(self) -> Mapping[str, Any]:
        return {"host": {"name": "paddock", "version": self.host_version}, "host_time": self.times.host_time()}

    async def check_network(self, plugin: Plugin, place: ProcessPlace) -> None:
        """A confined process with network reaches this host's loopback, where a caller without a key may be anybody."""
        if place.level == "L1" and plugin.network and (why := await self.confinement.network_refused()):
            raise StartError("runner.start_failed", f"{plugin.id} may use the network from isolation L1, and {why}")


@dataclass(frozen=True, slots=True)
class RunOrder:
    """A run on its way to the runner of this manifest."""

    manifest: AgentRunnerManifest
    run_id: str
    context: Mapping[str, Any]
    listener: RunListener
    placement: Placement

    @property
    def for_wire(self) -> tuple[str, str, str, Mapping[str, Any], RunListener, Mapping[str, str]]:
        """The values a connection needs, in its order."""
        manifest = self.manifest
        return manifest.id, manifest.name, self.run_id, self.context, self.listener, self.placement.secrets
