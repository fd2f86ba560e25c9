"""The failures of one plugin's processes: they are counted here, and decide who has to wait before the next start."""

from collections import deque
from collections.abc import Callable

import anyio
import structlog

from paddock.rules.run import restart
from paddock.runners.wire.errors import StartError

LOGGED = "; the host's log tells why"
MAX_KEPT = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Failures:
    """A record of one plugin's failures, as long as they matter."""

    def __init__(self, plugin: str, clock: Callable[[], float]) -> None:
        self._plugin = plugin
        self._clock = clock
        self.kept: deque[restart.Failure] = deque(maxlen=MAX_KEPT)
        self._start_failed: dict[frozenset[str], tuple[float, StartError]] = {}
        """When the last start failed, and how, by whom it counts against; taken out when one worked."""

    def count(self, reason: str, workspaces: frozenset[str] = restart.NOBODY) -> None:
        """Count one against these workspaces, or against everybody. `reason` is for whoever runs the host."""
        now = self._clock()
        while self.kept and now - self.kept[0].at > restart.APART_SECONDS:
            self.kept.popleft()
        self.kept.append(restart.Failure(now, workspaces, reason))
        unhealthy = isinstance(restart.rest_for(self.kept, next(iter(workspaces), None), now=now), restart.LeaveDown)
        log.warning("a runner failed", action="runner.failed", plugin=self._plugin, reason=reason, unhealthy=unhealthy)

    def start_failed(self, error: StartError, workspaces: frozenset[str]) -> None:
        now = self._clock()
        recent = {whose: one for whose, one in self._start_failed.items() if now - one[0] < restart.WINDOW_SECONDS}
        self._start_failed = recent | {workspaces: (now, error)}

    def start_worked(self, workspaces: frozenset[str]) -> None:
        self._start_failed.pop(workspaces, None)

    async def wait(self, workspace: str | None) -> None:
        """Wait until a process may be started for this workspace. Raises StartError when it is left down for now."""
        if (refusal := self.refusal(workspace)) is not None:
            raise refusal
        await anyio.sleep(restart.rest_for(self.kept, workspace, now=self._clock()).seconds)

    def refusal(self, workspace: str | None) -> StartError | None:
        """Return why no process is started for this workspace, if it is left down for now."""
        if not isinstance(restart.rest_for(self.kept, workspace, now=self._clock()), restart.LeaveDown):
            return None
        last = next((each for each in reversed(self.kept) if restart.counts_against(each, workspace)), self.kept[-1])
        return StartError("runner.unhealthy", f"{self._plugin} keeps failing{LOGGED}", last.reason)

    def trouble(self, workspace: str) -> StartError | None:
        """Return why a run of this workspace would not begin now: it is left down, or did not start a moment ago."""
        if (refusal := self.refusal(workspace)) is not None:
            return refusal
        for whose in (frozenset({workspace}), restart.NOBODY):
            at, error = self._start_failed.get(whose, (0.0, None))
            if error is not None and self._clock() - at < restart.WINDOW_SECONDS:
                return error
        return None

    def any_trouble(self) -> bool:
        """Return true if the plugin is left down for anybody, or just failed to start."""
        if self.refusal(None) is not None or self.left_down_for():
            return True
        now = self._clock()
        return any(now - at < restart.WINDOW_SECONDS for at, _ in self._start_failed.values())

    def apart_for(self, workspace: str) -> float:
        """Return for how many seconds this workspace gets processes of its own."""
        return restart.apart_for(self.kept, workspace, now=self._clock()) if self.kept else 0.0

    def left_down_for(self) -> tuple[str, ...]:
        return tuple(restart.left_down_for(self.kept, now=self._clock())) if self.kept else ()
