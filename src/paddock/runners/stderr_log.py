"""A runner's standard error in the host's log: line by line, and no more than so much in a process's life."""

from collections.abc import Callable

import structlog

from paddock.runners.noise import Allowance

MAX_BYTES = 10_000_000
MAX_LINE = 4096
LINES_PER_SECOND = 200
LAST_LINE = 300

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StderrLog:
    """Takes whatever comes and never holds more than one line of it."""

    def __init__(self, plugin: str, only_run: Callable[[], str | None] = lambda: None) -> None:
        """`only_run`: the run that must have written a line, where that is certain."""
        self._plugin = plugin
        self._only_run = only_run
        self._left = MAX_BYTES
        self._allowance = Allowance(LINES_PER_SECOND)
        self._tail = b""

    def feed(self, data: bytes) -> None:
        if self._left > 0:
            self._write(data)
        self._tail = (self._tail + data[-MAX_LINE:])[-MAX_LINE:]

    def last_line(self) -> str:
        """The last thing it said that was not blank, cut to what fits in a message."""
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:LAST_LINE] if lines else ""

    def close(self) -> None:
        if left_out := self._allowance.take_left_out():
            self._say(f"({left_out} lines left out)")

    def _write(self, data: bytes) -> None:
        """A line cut by the edge of a chunk is logged in two pieces: simpler than waiting for what may never come."""
        lines = [line for line in data.splitlines() if line]
        for number, line in enumerate(lines):
            if not self._allowance.take():
                self._allowance.left_out += len(lines) - number - 1
                return
            self._left -= len(line) + 1
            if self._left <= 0:
                self._say("(further output dropped)")
                return
            text = line[:MAX_LINE].decode("utf-8", "replace")
            self._say(text, left_out=self._allowance.take_left_out())

    def _say(self, line: str, **more: int) -> None:
        log.info("runner.stderr", plugin=self._plugin, run_id=self._only_run(), line=line, **more)
