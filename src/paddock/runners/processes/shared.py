"""Settings and services that the processes of all plugins share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from time import monotonic, time
from typing import Any

from paddock.ports import Caller, HostCallHandler, Overloaded
from paddock.runners.installed.plugins import Level, Place, Plugin
from paddock.runners.processes.leftovers import Leftovers
from paddock.runners.processes.prewarming import SPARE_SECONDS
from paddock.runners.processes.process import Launch
from paddock.runners.wire.errors import StartError

START_SECONDS = 30.0


async def not_refused() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class ProcessServices:
    """Services and limits common to every plugin's processes."""

    handler: HostCallHandler
    leftovers: Leftovers
    plan: Callable[[Plugin, Place], Launch]
    """Called in a thread of its own. Raises StartError for a plugin that cannot be started as it asks."""
    host_version: str = "0"
    on_foreign: Callable[[Caller, str], None] = lambda _caller, _run_id: None
    on_overload: Overloaded = lambda _caller, _method, _params, _left_out: None
    start_seconds: float = START_SECONDS
    clock: Callable[[], float] = monotonic
    host_time: Callable[[], float] = time
    """The time of day that deadlines are told in."""
    isolation: Level = "L0"
    """The least every process is kept apart."""
    network_refused: Callable[[], Awaitable[str | None]] = not_refused
    """Why a confined process must not have the network now, if it must not."""
    spare_seconds: float = SPARE_SECONDS
    """How long a process waits for a run, where each run has its own."""
    numbers: "count[int]" = field(default_factory=count)

    @property
    def introduction(self) -> Mapping[str, Any]:
        """Return the host's part of a handshake."""
        return {"host": {"name": "paddock", "version": self.host_version}, "host_time": self.host_time()}

    async def check_network(self, plugin: Plugin, place: Place) -> None:
        """A confined process with network reaches this host's loopback, where a caller without a key may be anybody."""
        if place.level == "L1" and plugin.network and (why := await self.network_refused()):
            raise StartError("runner.start_failed", f"{plugin.id} may use the network from isolation L1, and {why}")
