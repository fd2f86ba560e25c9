"""Processes a harness left behind: found by a mark in their environment or by the session they were started in, ended.

Harnesses start the commands of their tools in sessions of their own, so ending a process group misses them. Linux;
where there is no /proc only the group is ended, which is weaker and said in the guide.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "PADDOCK_HARNESS_RUN"
SWEEP_SECONDS = 1.0
ROUND_SECONDS = 0.01
PROC = Path("/proc")


def survivors(mark: str, session: int) -> list[int]:
    """Processes, other than we ourselves, that carry the mark or belong to that session. The dead do not count."""
    if not PROC.is_dir():
        return []
    found = [int(entry) for entry in os.listdir(PROC) if entry.isdigit()]  # noqa: PTH208 - names are all we need
    return [pid for pid in found if pid != os.getpid() and _belongs(pid, f"{MARK_VARIABLE}={mark}".encode(), session)]


def _belongs(pid: int, mark: bytes, session: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in {b"Z", b"X"}:
            return False
        return int(fields[3]) == session or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (OSError, IndexError, ValueError):
        return False  # it ended while we looked, or is somebody else's


async def sweep(mark: str, session: int) -> int:
    """Kill them until none is left, for a bounded time; how many were killed."""
    killed: set[int] = set()
    rounds = int(SWEEP_SECONDS / ROUND_SECONDS)
    for _ in range(rounds):
        left = survivors(mark, session)
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed.update(left)
        await asyncio.sleep(ROUND_SECONDS)
    return len(killed)
