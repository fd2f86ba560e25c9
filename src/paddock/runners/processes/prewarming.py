"""Prewarming: when a process is started ahead of its run, for which workspace, and when it is given up.

Only where every run has a process of its own. Such a process has shaken hands and knows of no run: what a run may do,
its input and its secrets come with the run, to the one process that serves it. A workspace whose run is over has one
kept for its next; a few workspaces have one at a time, those whose runs ended last. Starts and ends nothing itself.
"""

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

SPARE_SECONDS = 300.0
"""So long somebody who reads an answer may take for the next question."""
AFTER_SECONDS = 0.2
"""The end of the run before is told and written down first: a start takes a processor to itself."""
MOST = 4
"""Processes of one plugin that are kept for workspaces, one for each."""


class Prewarming:
    """Workspaces that have a process of one plugin kept ready."""

    def __init__(
        self, seconds: float, *, start: Callable[[], Coroutine[Any, Any, None]], give_up: Callable[[int], None]
    ) -> None:
        """`seconds` of 0: none is ever kept. `start` sees that there are `wanted`; `give_up` keeps so many."""
        self._seconds = seconds
        self._start, self._give_up = start, give_up
        self._kept: dict[str, float | None] = {}
        """Workspaces, the one that waits longest first, and until when a process is kept; None: it is not ready yet."""
        self._begin: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> int:
        return len(self._kept)

    def run_over(self, workspace: str) -> None:
        """A run had its process; the next one of its workspace may be near."""
        if self._seconds <= 0:
            return
        until = self._kept.pop(workspace, None)
        self._kept[workspace] = until
        if len(self._kept) > MOST:
            oldest = next(iter(self._kept))
            self._kept[workspace] = self._kept.pop(oldest)  # the process that was kept for it is this one's
        if self._begin is not None:
            self._begin.cancel()
        self._begin = asyncio.get_running_loop().call_later(AFTER_SECONDS, self._do_start)

    def ready(self, *, ahead: bool) -> None:
        """A process is ready and has no run yet; `ahead`: no run waits for it either."""
        if self._seconds <= 0:
            return
        workspace = next((name for name, until in self._kept.items() if until is None), None)
        if ahead and workspace is not None:
            self._kept[workspace] = monotonic() + self._seconds
        self._look_again()

    def may_take(self, workspace: str, ready: int) -> bool:
        """Return true if a run of this workspace may take a ready process: its own, or one kept for nobody."""
        return self._kept.get(workspace) is not None or ready > sum(map(bool, self._kept.values()))

    def may_await(self, workspace: str) -> bool:
        """Return true if the process being started may be for this workspace."""
        return self._kept.get(workspace, 0.0) is None or None not in self._kept.values()

    def taken(self, workspace: str) -> None:
        if self._kept.get(workspace) is not None:
            del self._kept[workspace]

    def failed(self) -> None:
        """None could be started: none is waited for, until the next run is over."""
        self._kept = {name: until for name, until in self._kept.items() if until is not None}

    def stop(self) -> None:
        for timer in (self._begin, self._end):
            if timer is not None:
                timer.cancel()
        self._begin = self._end = None

    def _do_start(self) -> None:
        self._begin = None
        self._starting = asyncio.get_running_loop().create_task(self._start())

    def _look_again(self) -> None:
        """Wait until the next one has been kept long enough; called anew when more are kept."""
        if self._end is None:
            until = min(filter(None, self._kept.values()), default=monotonic() + self._seconds)
            self._end = asyncio.get_running_loop().call_later(max(0.0, until - monotonic()), self._over_time)

    def _over_time(self) -> None:
        self._end = None
        now = monotonic()
        self._kept = {name: until for name, until in self._kept.items() if until is None or until > now}
        kept = sum(map(bool, self._kept.values()))
        self._give_up(kept)
        if kept:
            self._look_again()
