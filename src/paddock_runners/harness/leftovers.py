"""Processes a harness left behind: found by a mark in their environment or by the session they were started in, ended.

Harnesses start the commands of their tools in sessions of their own, so ending a process group misses them. Linux;
where there is no /proc only the group is ended, which is weaker and said in the guide.
"""

import asyncio
import os
import signal
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MARK_VARIABLE = "PADDOCK_HARNESS_RUN"
SWEEP_SECONDS = 1.0
ROUND_SECONDS = 0.01
PROC = Path("/proc")


def started_at(pid: int) -> int:
    """When a process began, on the kernel's own clock; 0 when that cannot be known."""
    fields = _stat(str(pid))
    return int(fields[19]) if fields else 0


@dataclass(frozen=True, slots=True)
class Bystanders:
    """Processes that began before, and how many this machine had started by then. They need not be looked at again."""

    names: frozenset[str]
    starts: int

    def still(self) -> frozenset[str]:
        """Numbers are given out in a circle: before half of it was gone through, none of theirs is another's now."""
        started, numbers = starts() - self.starts, _read(f"{PROC}/sys/kernel/pid_max")
        sure = self.starts > 0 and numbers.strip().isdigit() and 0 <= started < int(numbers) // 2
        return self.names if sure else frozenset()


def bystanders(since: int) -> Bystanders:
    """List the processes that began before. Takes milliseconds, so it is done early and not at the end of a turn."""
    before = starts()
    return Bystanders(frozenset(name for name in _all() if (fields := _stat(name)) and int(fields[19]) < since), before)


def starts() -> int:
    """How many processes and threads this machine has started so far; 0 when that cannot be known."""
    told = _read(f"{PROC}/stat").partition(b"\nprocesses ")[2].split(maxsplit=1)
    return int(told[0]) if told else 0


def survivors(mark: str, session: int, since: int = 0, but: Container[str] = ()) -> list[int]:
    """Processes, other than we ourselves, that carry the mark or belong to that session. The dead do not count.

    Who began before `since` cannot be one of them, and is not looked at closely: this is done at every turn's end.
    """
    carried = f"{MARK_VARIABLE}={mark}".encode()
    return [int(name) for name in _all() if name not in but and _belongs(name, carried, session, since)]


def _all() -> list[str]:
    """Every process but ourselves."""
    if not PROC.is_dir():
        return []
    ourselves = str(os.getpid())
    return [name for name in os.listdir(PROC) if name.isdigit() and name != ourselves]  # noqa: PTH208 - names are enough


def _belongs(name: str, mark: bytes, session: int, since: int) -> bool:
    fields = _stat(name)
    if not fields or fields[0] in {b"Z", b"X"} or int(fields[19]) < since:
        return False
    return int(fields[3]) == session or mark in _read(f"/proc/{name}/environ").split(b"\0")


def _stat(name: str) -> list[bytes]:
    """Fields of a process after its command name: state, parent, group, session and so on; empty when it is gone."""
    return _read(f"/proc/{name}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """A whole file of /proc; empty when the process ended while we looked, or is somebody else's."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        pieces = list(iter(lambda: os.read(file, 131_072), b""))
    except OSError:
        return b""
    finally:
        os.close(file)
    return b"".join(pieces)


async def sweep(mark: str, session: int, since: int = 0, but: Container[str] = ()) -> int:
    """Kill them until none is left, for a bounded time; how many were killed."""
    killed: set[int] = set()
    rounds = int(SWEEP_SECONDS / ROUND_SECONDS)
    for _ in range(rounds):
        left = survivors(mark, session, since, but)
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(left)
        await asyncio.sleep(ROUND_SECONDS)
    return len(killed)
