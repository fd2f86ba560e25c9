"""One runner process and its warden: start it, carry bytes to and from it, stop it for certain.

What the bytes mean is the connection's business. Standard error goes to the log, capped. Whatever happens to the host,
nothing started here outlives it: the warden sees to that, and stopping is a ladder that always reaches the ground.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import structlog

from paddock.confinement.sandbox import filtered
from paddock.runners.installed.plugins import OPEN, ProcessPlace
from paddock.runners.processes.leftovers import Leftovers
from paddock.runners.processes.stderr_log import StderrLog
from paddock.runners.wire.connection import RunnerConnection

WARDEN = Path(__file__).with_name("warden.py")
MAX_BACKLOG = 8 * 1024 * 1024
HIGH_WATER = 1024 * 1024
LINES_AT_ONCE = 4
"""Lines that leave in one write. A write costs as much as making a line, and wakes the runner; more lines than these
would let it sleep while we work."""
SHORT_LINE = 16 * 1024
"""A longer line leaves at once, so that whoever sends the next one sees whether the runner reads."""
STALL_SECONDS = 10.0
HALF_CLOSED_SECONDS = 0.5
REAP_SECONDS = 0.001

Rung = tuple[bytes, float]
"""What to tell the warden (nothing, TERM or KILL), and how long to wait for the end."""
POLITE: tuple[Rung, ...] = ((b"", 2.0), (b"T", 1.0), (b"K", 1.5))
AT_ONCE: tuple[Rung, ...] = ((b"K", 1.5),)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything needed to start one process. The environment is given whole; nothing is inherited."""

    plugin: str
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]


class _Pipe(asyncio.Protocol):
    """Hands on what one pipe brings, and that it ended."""

    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self._on_end()


class _Input(asyncio.BaseProtocol):
    """The writing end of stdin: lets writers wait while the runner is slow to read."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self.flowing = asyncio.Event()
        self.flowing.set()

    def pause_writing(self) -> None:
        self.flowing.clear()

    def resume_writing(self) -> None:
        self.flowing.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is asyncio's
        self.flowing.set()
        self._on_end()


class RunnerProcess:
    """A live, or just ended, runner process. Also the line transport of its connection."""

    def __init__(self, launch: Launch, leftovers: Leftovers) -> None:
        """Start the warden, which starts the command. Raises OSError when not even that is possible."""
        self.pid: int | None = None
        """Of the runner itself; the warden tells it."""
        self.note = ""
        """What it did that made us end it, if we did."""
        self.on_output: Callable[[bytes], None] = lambda _data: None
        self.on_stall: Callable[[str], None] = lambda _reason: None
        self._loop = asyncio.get_running_loop()
        self._leftovers = leftovers
        self.only_run: str | None = None
        """The one run it was ever told of; none before the first, and none from the second on."""
        self._stderr = StderrLog(launch.plugin, lambda: self.only_run)
        self._code: int | None = None
        self._output_ended = False
        self._closing = False
        self._finished: asyncio.Future[int] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._input_side = _Input(self._input_closed)
        self._input: asyncio.WriteTransport | None = None
        self._unsent: list[bytes] = []
        self._readers: list[asyncio.BaseTransport] = []
        self._handed_over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs:
            self._warden = _spawn(launch, theirs)
        leftovers.keep(self._warden.pid)
        self._loop.add_reader(self._control, self._told)

    @classmethod
    async def start(cls, launch: Launch, leftovers: Leftovers) -> "RunnerProcess":
        process = cls(launch, leftovers)
        try:
            await process._connect()
        except BaseException:
            await process.stop(AT_ONCE)
            raise
        return process

    async def _connect(self) -> None:
        loop, warden = self._loop, self._warden
        self._handed_over = True  # the transports close these files; closing one twice may hit a stranger's
        self._input, _ = await loop.connect_write_pipe(lambda: self._input_side, warden.stdin)
        self._input.set_write_buffer_limits(HIGH_WATER)
        errors, _ = await loop.connect_read_pipe(lambda: _Pipe(self._stderr.feed, self._stderr.close), warden.stderr)
        output, _ = await loop.connect_read_pipe(lambda: _Pipe(self._heard, self._output_closed), warden.stdout)
        self._readers = [errors, output]

    # --- carrying lines -------------------------------------------------------------------------------------------

    def send(self, line: bytes) -> None:
        """A few lines of one turn of the loop leave together."""
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(line)
        if len(self._unsent) >= LINES_AT_ONCE or len(line) > SHORT_LINE:
            self._flush()

    def _flush(self) -> None:
        lines, self._unsent = self._unsent, []
        pipe = self._input
        if not lines or pipe is None or pipe.is_closing():
            return
        lines.append(b"")
        pipe.write(b"\n".join(lines))
        if pipe.get_write_buffer_size() > MAX_BACKLOG:
            self.on_stall(f"the runner does not read its input; more than {MAX_BACKLOG} bytes wait for it")

    def close(self) -> None:
        """End its input, which asks it to finish and exit."""
        self._closing = True
        self._flush()
        if self._input is not None and not self._input.is_closing():
            self._input.close()

    def flowing(self) -> bool:
        return self._input_side.flowing.is_set()

    async def drained(self) -> None:
        """Wait while much is still unread. A runner that reads nothing for too long is given up."""
        while not self._input_side.flowing.is_set():
            with anyio.move_on_after(STALL_SECONDS) as wait:
                await self._input_side.flowing.wait()
            if wait.cancelled_caught:
                self.on_stall(f"the runner has not read its input for {STALL_SECONDS:.0f} seconds")
                return

    def _heard(self, data: bytes) -> None:
        self.on_output(data)

    # --- how it ends ----------------------------------------------------------------------------------------------

    async def finished(self) -> int:
        """Wait until it exited and all it said was heard; its exit code, negative for a signal."""
        return await asyncio.shield(self._finished)

    async def gone(self) -> None:
        """Wait until neither it nor anything it started is alive."""
        await self._gone.wait()

    def ending(self) -> str:
        """Describe how the process ended, in general words, not those of a run."""
        return self.note or describe_exit(self._code)

    def last_line(self) -> str:
        """The last line of its standard error, for whoever runs the host: any of its runs may have written it."""
        return self._stderr.last_line()

    async def stop(self, ladder: Sequence[Rung] = POLITE) -> None:
        """Close its input, then demand ever more strongly. Goes on to the end even when the caller is cancelled."""
        descent = self._loop.create_task(self._descend(ladder))
        self._tasks.add(descent)
        descent.add_done_callback(self._tasks.discard)
        await asyncio.shield(descent)

    async def _descend(self, ladder: Sequence[Rung]) -> None:
        self._abandon_input()
        for demand, seconds in ladder:
            self._demand(demand)
            with anyio.move_on_after(seconds):
                await self._gone.wait()
                return
        await self._last_resort()

    def _abandon_input(self) -> None:
        """Close the input; unread bytes would keep the pipe open for ever when the runner reads nothing."""
        self._closing = True
        if self._input is None:
            return
        if self._input.get_write_buffer_size():
            self._input.abort()
        else:
            self.close()

    def _demand(self, demand: bytes) -> None:
        with suppress(OSError):
            self._control.send(demand)

    async def _last_resort(self) -> None:
        """The warden itself does not act (stopped, or stuck): kill its group and the runner's, and sweep."""
        log.error(
            "a warden did not act and was killed", action="runner.warden_stuck", pid=self.pid, warden=self._warden.pid
        )
        for group in (self.pid, self._warden.pid):
            if group is not None and self._warden.poll() is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
        with anyio.move_on_after(1.0):
            await self._gone.wait()

    def _told(self) -> None:
        try:
            news = self._control.recv(256)
        except BlockingIOError:
            return
        except OSError:
            news = b""
        for line in news.splitlines():
            word, _, number = line.partition(b" ")
            if word == b"pid":
                self.pid = int(number)
            elif word == b"exit":
                self._exited(int(number))
        if not news:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._reap()

    def _reap(self) -> None:
        """The warden closed its end, so it is exiting: collect it, now or in a moment."""
        code = self._warden.poll()
        if code is None:
            self._loop.call_later(REAP_SECONDS, self._reap)
            return
        self._leftovers.forget(self._warden.pid)
        if code < 0:  # somebody killed the warden: what it guarded may be loose
            self._tasks.add(self._loop.create_task(self._sweep_up(code)))
        else:
            self._all_gone(code if code <= 128 else 128 - code)

    async def _sweep_up(self, code: int) -> None:
        killed = await anyio.to_thread.run_sync(self._leftovers.sweep)
        log.error(
            "a warden was killed, and what it guarded was ended",
            action="runner.warden_killed",
            code=code,
            swept=len(killed),
        )
        self._all_gone(code)

    def _all_gone(self, code: int) -> None:
        self._exited(code)
        self._gone.set()
        self._abandon_input()
        self._loop.call_later(HALF_CLOSED_SECONDS, self._close_pipes)

    def _close_pipes(self) -> None:
        for pipe in self._readers:
            pipe.close()
        for file in (self._warden.stdin, self._warden.stdout, self._warden.stderr):
            if file is not None and not self._handed_over:
                file.close()

    def _exited(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self._loop.call_later(HALF_CLOSED_SECONDS, self._finish)
        if self._output_ended:
            self._finish()

    def _output_closed(self) -> None:
        self._output_ended = True
        if self._code is not None:
            self._finish()
        self._half_closed("it closed its standard output")

    def _input_closed(self) -> None:
        self._half_closed("it closed its standard input")

    def _finish(self) -> None:
        if not self._finished.done() and self._code is not None:
            self._finished.set_result(self._code)

    def _half_closed(self, note: str) -> None:
        """If it does not exit by itself in a moment, it is of no use any more."""
        self._loop.call_later(HALF_CLOSED_SECONDS, self._end_half_closed, note)

    def _end_half_closed(self, note: str) -> None:
        if self._code is None and not self._closing:
            self.note = note
            self._demand(b"K")


@dataclass(slots=True, eq=False)
class Worker:
    """One process and the connection to it."""

    process: RunnerProcess
    place: ProcessPlace = OPEN
    connection: RunnerConnection = field(init=False)
    served: int = 0
    workspace: str = ""
    """Whose run it served last."""
    ready: bool = False
    dismissed: bool = False
    """No more runs go to it, and its end is no crash."""
    watch: "asyncio.Task[None] | None" = None

    @property
    def usable(self) -> bool:
        return self.ready and not self.dismissed and not self.connection.closed

    def serves(self, run_id: str, workspace: str) -> None:
        self.served += 1
        self.workspace = workspace
        self.process.only_run = run_id if self.served == 1 else None


def _spawn(launch: Launch, control: socket.socket) -> "subprocess.Popen[bytes]":
    with filtered(launch.argv) as (argv, files):
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(WARDEN), str(control.fileno()), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=launch.cwd,
            env=dict(launch.env),
            pass_fds=(control.fileno(), *files),
            start_new_session=True,
        )


def describe_exit(code: int | None) -> str:
    if code is None:
        return "it did not exit"
    if code >= 0:
        return f"it exited with status {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
