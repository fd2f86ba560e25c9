"""When a process is started ahead of its run, and when it is given up again. Starts and ends nothing itself.

Only where every run has a process of its own. Such a process has shaken hands and knows of no run: what a run may do,
its input and its secrets come with the run, to the one process that serves it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

SPARE_SECONDS = 300.0
"""So long somebody who reads an answer may take for the next question."""
AFTER_SECONDS = 0.2
"""The end of the run before is told and written down first: a start takes a processor to itself."""


class Spare:
    """The clock of one plugin's spare process."""

    def __init__(
        self, seconds: float, *, start: Callable[[], Coroutine[Any, Any, None]], give_up: Callable[[], None]
    ) -> None:
        """`seconds` of 0: none is ever kept. Both are called from the event loop."""
        self._seconds = seconds
        self._start, self._give_up = start, give_up
        self._timer: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None

    def run_over(self) -> None:
        """A run had its process; the next one may be near."""
        if self._seconds > 0:
            self._in(AFTER_SECONDS, self._begin)

    def waits(self) -> None:
        """A process is ready and has no run yet. One that was started to be asked what it offers waits just so."""
        if self._seconds > 0:
            self._in(self._seconds, self._give_up)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _begin(self) -> None:
        self._starting = asyncio.get_running_loop().create_task(self._start())

    def _in(self, seconds: float, do: Callable[[], None]) -> None:
        """One thing at a time: whatever comes last counts."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, do)
