"""A runner's standard error in the host's log: a record per line, one per Python traceback, and no more than so much in
a process's life.
"""

import asyncio
from collections.abc import Callable

import structlog

from paddock.runners.wire.errors import LogThrottle

MAX_BYTES = 10_000_000
MAX_LINE = 4096
MAX_TRACEBACK = 65_536
LINES_PER_SECOND = 200
LAST_LINE = 300
HELD_SECONDS = 0.2
"""How long the rest of a line or of a traceback is waited for."""
CHAINED = (b"During handling of the above exception", b"The above exception was the direct cause")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StderrLog:
    """Takes whatever comes; holds one unfinished line and one unfinished traceback at most."""

    def __init__(self, plugin: str, only_run: Callable[[], str | None] = lambda: None) -> None:
        """`only_run`: the run that must have written a line, where that is certain."""
        self._plugin = plugin
        self._only_run = only_run
        self._left = MAX_BYTES
        self._allowance = LogThrottle(LINES_PER_SECOND)
        self._tail = b""
        self._partial = b""
        self._traceback = Traceback()
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        if self._left > 0:
            self._write(data[: self._left])
            self._left -= len(data)
            if self._left <= 0:
                self._flush()
                self._say("(further output dropped)")
        self._tail = (self._tail + data[-MAX_LINE:])[-MAX_LINE:]

    def last_line(self) -> str:
        """The last thing it said that was not blank, cut to what fits in a message."""
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip()[:LAST_LINE] if lines else ""

    def close(self) -> None:
        self._flush()
        if left_out := self._allowance.take_left_out():
            self._say(f"({left_out} lines left out)")

    def _write(self, data: bytes) -> None:
        *lines, rest = (self._partial + data).split(b"\n")
        self._partial = rest
        for line in lines:
            self._line(line.rstrip(b"\r"))
        if len(rest) > MAX_LINE:  # long enough: waiting for its end could take for ever
            self._flush()
        elif (rest or self._traceback.text) and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HELD_SECONDS, self._flush)

    def _line(self, line: bytes) -> None:
        if self._traceback.takes(line):
            return
        self._flush_traceback()
        if not self._traceback.takes(line) and line.strip():
            self._record(line[:MAX_LINE])

    def _flush(self) -> None:
        """Log what is held, finished or not."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        partial, self._partial = self._partial, b""
        if partial:
            self._line(partial)
        self._flush_traceback()

    def _flush_traceback(self) -> None:
        if text := self._traceback.taken():
            self._record(text)

    def _record(self, text: bytes) -> None:
        if self._allowance.take():
            self._say(text.decode("utf-8", "replace"), left_out=self._allowance.take_left_out())

    def _say(self, line: str, **more: int) -> None:
        log.info(
            "a runner wrote to standard error",
            action="runner.stderr",
            plugin=self._plugin,
            run_id=self._only_run(),
            line=line,
            **more,
        )


class Traceback:
    """Collects the lines of one Python traceback, with those it was caused by."""

    def __init__(self) -> None:
        self.text = b""
        self._is_group = False
        """Whether it is one of a group of exceptions: then every line of it is indented."""
        self._ended = False
        """Whether the line that names the exception has come."""

    def takes(self, line: bytes) -> bool:
        """Return true if the line belongs to the traceback; a traceback's first line begins one."""
        group = line.startswith(b"  + Exception Group Traceback")
        if group or line.startswith(b"Traceback (most recent call last):"):
            self._is_group, self._ended = group, False
        elif not self.text or not self._goes_on(line):
            return False
        if len(self.text) < MAX_TRACEBACK:
            self.text += (b"\n" if self.text else b"") + line
        return True

    def taken(self) -> bytes:
        """The whole text; what comes next is another."""
        text, self.text, self._ended = self.text.rstrip(), b"", False
        return text[:MAX_TRACEBACK]

    def _goes_on(self, line: bytes) -> bool:
        if self._ended or self._is_group:
            return not line or line.startswith(CHAINED) or (self._is_group and line[:1] == b" ")
        self._ended = line[:1] not in (b" ", b"\t", b"")
        return True
