"""Starting, watching and ending the processes a bench needs; what they are asked is somebody else's business.

Every process ends with the `with` block that started it, and with the bench itself even if that is killed.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.request import urlopen

import psutil

Pipe = int | IO[bytes] | None
ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0
STOP_SECONDS = 10.0
ORPHAN_SECONDS = 0.5
LAST_WORDS = 2000
PR_SET_PDEATHSIG = 1
NOT_FOR_CHILDREN = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Both would slow the measured programs down: one compiles them anew at each start, one unbuffers their output."""


class BenchError(Exception):
    """The bench cannot go on; the message says why in one or two sentences."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a server is started, and the path that answers 200 when it is ready (empty: an open port is enough)."""

    name: str
    command: Sequence[str]
    port: int
    ready_path: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process tree has used up to now. `root_bytes` is the server alone, `tree_bytes` it and all below it."""

    cpu_seconds: float
    root_bytes: int
    tree_bytes: int


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    launch: Launch
    process: psutil.Popen
    log: Path

    @property
    def port(self) -> int:
        return self.launch.port

    def usage(self) -> Usage:
        """What the tree has used; children that ended are counted by the parent that waited for them."""
        self.check_alive()
        cpu, sizes = 0.0, list[int]()
        for process in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess), process.oneshot():
                cpu += sum(process.cpu_times()[:4])  # own user and system time, and that of children waited for
                sizes.append(process.memory_info().rss)
        return Usage(cpu, sizes[0], sum(sizes))

    def check_alive(self) -> None:
        if (status := self.process.poll()) is not None:
            last_words = self.log.read_text(errors="replace")[-LAST_WORDS:]
            command = " ".join(self.launch.command)
            raise BenchError(f"{self.launch.name} ended with status {status} ({command}). It said:\n{last_words}")


def cpu_of(process: psutil.Process) -> float:
    """Seconds of CPU that all threads of a process have used, to the nanosecond where Linux tells it."""
    tasks = Path(f"/proc/{process.pid}/task")
    try:
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
    except OSError:
        times = process.cpu_times()
        return times.user + times.system


def floor_launch(work: Path) -> Launch:
    """The floor on a fresh database."""
    port = free_port()
    command = (sys.executable, "-m", "bench.floor", "--port", str(port), "--data", str(work / "floor.db"))
    return Launch("floor", command, port)


def bare_floor_launch(work: Path) -> Launch:
    """The floor that answers past Starlette."""
    floor = floor_launch(work)
    return Launch("bare", (*floor.command, "--bare"), floor.port)


def free_port() -> int:
    """A loopback port nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(launch: Launch, log: Path) -> Generator[Server]:
    """The server, ready; ended with everything it started when the block ends."""
    with log.open("wb") as output, spawned(launch.command, stdout=output, stderr=output) as process:
        server = Server(launch, process, log)
        _wait_until_ready(server)
        yield server


@contextmanager
def spawned(
    command: Sequence[str], *, stdin: int = subprocess.DEVNULL, stdout: Pipe = None, stderr: Pipe = None
) -> Generator[psutil.Popen]:
    """A child in a process group of its own; it and all below it are gone after the block."""
    process = psutil.Popen(
        command,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN},
        start_new_session=True,
        preexec_fn=_end_with_parent(),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        yield process
    finally:
        _end(process)


def _end_with_parent() -> Callable[[], None] | None:
    """Ask Linux to end the child should the bench be killed; elsewhere there is no such promise."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _end(process: psutil.Popen) -> None:
    """TERM the child, give it time to end its own, then KILL whoever is left of its tree."""
    tree: list[psutil.Process] = [process]
    with suppress(psutil.NoSuchProcess):
        tree += process.children(recursive=True)
        process.terminate()
    with suppress(psutil.TimeoutExpired):
        process.wait(STOP_SECONDS)
    _, alive = psutil.wait_procs(tree, timeout=ORPHAN_SECONDS)
    for survivor in alive:
        with suppress(psutil.NoSuchProcess):
            survivor.kill()
    psutil.wait_procs(alive, timeout=STOP_SECONDS)


def _wait_until_ready(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_ready(server.launch):
        server.check_alive()
        if time.monotonic() > deadline:
            raise BenchError(f"{server.launch.name} was not ready within {START_SECONDS:g} s; see {server.log}")
        time.sleep(0.02)


def _is_ready(launch: Launch) -> bool:
    try:
        if launch.ready_path:
            with urlopen(f"http://127.0.0.1:{launch.port}{launch.ready_path}", timeout=2) as answer:
                return answer.status == 200
        socket.create_connection(("127.0.0.1", launch.port), timeout=2).close()
    except OSError:  # URLError is one
        return False
    return True
