"""The stdio loop: `serve(MyRunner())` is the whole main program of a plugin. Owns the file descriptors, nothing else.

asyncio directly, not anyio: one reader callback and one writer callback carry hundreds of runs.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from paddock_sdk.connection import Connection
from paddock_sdk.runner import AgentRunner

log = logging.getLogger("paddock_sdk")

READ_BYTES = 65_536
"""What a pipe holds. Room for more would be asked of the system anew for every frame, and never filled."""
WRITE_BYTES = 4096
"""So much is written at once, and not when all that can be said has been said: the host begins while we go on."""
DRAIN_SECONDS = 2.0
YOUNG_OBJECTS = 10_000
"""The context of a run is some hundred values and no cycle: looking for garbage after every few runs, as Python does by
itself, was an eighth of what a short run costs its runner."""
NO_PIPE = (
    "stdin must be a pipe: this program is started by a Paddock host. To import it, as a test does, write "
    '`if __name__ == "__main__":` before its serve()'
)


def serve(*runners: AgentRunner) -> None:
    """Offer these runners to the host that started this program. Returns when the host is done with us."""
    if problem := _problem_with(runners):
        raise SystemExit(f"serve(): {problem}")
    reader, writer = take_stdio()
    gc.freeze()  # what is loaded now stays for good
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    asyncio.run(_serve(runners, reader, writer))


def _problem_with(runners: Sequence[object]) -> str | None:
    """Return one sentence about what an author passed to `serve` by mistake, or None."""
    if not runners:
        return "there is nothing to serve; write `serve(MyRunner())`"
    for runner in runners:
        if isinstance(runner, type):
            return f"{runner.__name__} is a class; serve an object of it: `serve({runner.__name__}())`"
        if not isinstance(runner, AgentRunner):
            return f"{type(runner).__name__} is not a runner; make it a subclass of AgentRunner"
    names = [runner.name for runner in cast("Sequence[AgentRunner]", runners)]
    twice = next((name for name in names if names.count(name) > 1), None)
    return None if twice is None else f"two runners are called {twice!r}; give each class its own `name`"


def take_stdio() -> tuple[int, int]:
    """Keep the wire for ourselves: from here on `print` and child processes write to stderr, and stdin reads empty."""
    reader, writer = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()  # what was printed before us and still waits goes to stderr too
    if os.isatty(reader):
        log.warning("This program is started by a Paddock host and speaks JSON lines; press Ctrl-D to end it.")
    return reader, writer


async def _serve(runners: tuple[AgentRunner, ...], reader: int, writer: int) -> None:
    """Ends when the connection has said its last word, even if a run will not end."""
    outbox = Outbox(writer)
    connection = Connection(runners, outbox.send)
    inbox = Inbox(reader, connection)
    outbox.on_broken = connection.close
    loop = asyncio.get_running_loop()
    for demand in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(demand, connection.close)
    await connection.closed.wait()
    inbox.close()
    await outbox.drain()
    if connection.live_runs:
        os._exit(0)  # a run that ignores its cancel would keep the event loop, and us, alive for ever


class Inbox:
    """Reads the wire in large pieces and hands over whole lines."""

    def __init__(self, fd: int, connection: Connection) -> None:
        self._fd = fd
        self._connection = connection
        self._lines = LineSplitter()
        _unblock(fd)
        try:
            asyncio.get_running_loop().add_reader(fd, self._read)
        except PermissionError:
            raise SystemExit(NO_PIPE) from None

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)

    def _read(self) -> None:
        try:
            piece = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        for line in self._lines.feed(piece):
            self._connection.receive(line)
        if not piece or self._lines.waiting > self._connection.max_frame_bytes:
            self._end(piece)

    def _end(self, piece: bytes) -> None:
        if piece:
            log.error("the host sent a line longer than %d bytes", self._connection.max_frame_bytes)
        self.close()
        self._connection.close()


class LineSplitter:
    """Bytes in, whole lines out. What is not yet a line waits, without being copied again and again."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.waiting = 0

    def feed(self, piece: bytes) -> list[bytes]:
        head, newline, rest = piece.rpartition(b"\n")
        if not newline:
            self._keep(piece)
            return []
        lines = b"".join((*self._parts, head)).split(b"\n")
        self._parts.clear()
        self.waiting = 0
        self._keep(rest)
        return [line for line in lines if line]

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._parts.append(piece)
            self.waiting += len(piece)


class Outbox:
    """Collects the lines of one turn of the loop and writes them at once; waits when the pipe is full."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._size = 0
        self._lines: list[bytes] = [b"\n"]
        """An empty line first: half a line that was printed before us must not swallow our first frame."""
        self._rest = memoryview(b"")
        self._busy = False
        self._waits_for_pipe = False
        self._idle = asyncio.Event()
        self.on_broken: Callable[[], None] = lambda: None
        _unblock(fd)

    def send(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if not self._busy:
            self._busy = True
            self._idle.clear()
            self._loop.call_soon(self._flush)
        elif self._size > WRITE_BYTES and not self._waits_for_pipe:
            self._flush()

    async def drain(self) -> None:
        """Wait until everything is written; not for ever, should nobody read."""
        if self._busy:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), DRAIN_SECONDS)

    def _flush(self) -> None:
        if not self._rest:
            if not self._lines:
                return  # an earlier write took all along, or nobody reads any more
            self._rest = memoryview(b"".join(self._lines))
            self._lines.clear()
            self._size = 0
        try:
            self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            pass
        except OSError:
            self._give_up()
            return
        self._wait_for_pipe(bool(self._rest or self._lines))

    def _wait_for_pipe(self, wanted: bool) -> None:
        if wanted and not self._waits_for_pipe:
            self._loop.add_writer(self._fd, self._flush)
        elif self._waits_for_pipe and not wanted:
            self._loop.remove_writer(self._fd)
        self._waits_for_pipe = wanted
        if not wanted:
            self._busy = False
            self._idle.set()

    def _give_up(self) -> None:
        """Nobody reads any more. What is said from now on is dropped; we end as if the host had closed our stdin."""
        self._wait_for_pipe(False)
        self._busy = True
        self._lines = _Void()
        self.on_broken()


class _Void(list[bytes]):
    def append(self, _line: bytes, /) -> None:
        """Keep nothing."""


def _unblock(fd: int) -> None:
    """Never block on the wire. A terminal is left alone: its setting belongs to the shell as well."""
    if not os.isatty(fd):
        os.set_blocking(fd, False)
