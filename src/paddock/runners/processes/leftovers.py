"""Processes that carry our mark and belong to nobody any more: found in /proc and killed. A last rung, never a first.

Only exact matches of the mark and only our own user (root: any user, because isolated runners have their own).
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

MARK_VARIABLE = "PADDOCK_MARK"
PROC = Path("/proc")
QUIET_LOOKS, MOST_LOOKS, PAUSE_SECONDS = 3, 100, 0.01


class Leftovers:
    """Knows the mark of one data directory and which wardens are alive and ours."""

    def __init__(self, mark: str) -> None:
        if not mark:
            raise ValueError("a mark must not be empty: every process would match")
        self.mark = mark
        self._ours: set[int] = set()

    def keep(self, pid: int) -> None:
        self._ours.add(pid)

    def forget(self, pid: int) -> None:
        self._ours.discard(pid)

    def sweep(self) -> list[int]:
        """Kill every marked process that is neither ours nor below one of ours; returns whom. Takes some milliseconds.

        Who forks and exits just while we look can be missed by one look, hardly by three in a row.
        """
        killed: list[int] = []
        quiet = 0
        for _ in range(MOST_LOOKS if sys.platform == "linux" else 0):
            found = self._look()
            killed += found
            quiet = 0 if found else quiet + 1
            if quiet == QUIET_LOOKS:
                break
            time.sleep(PAUSE_SECONDS)
        return killed

    def _look(self) -> list[int]:
        parents = {int(entry.name): _parent(entry) for entry in PROC.iterdir() if entry.name.isdigit()}
        candidates = [pid for pid in parents if not self._is_ours(pid, parents)]
        return [pid for pid in candidates if self._kill_if_marked(pid)]

    def _is_ours(self, pid: int, parents: dict[int, int]) -> bool:
        seen: set[int] = set()
        while pid > 1 and pid not in seen:
            if pid in self._ours:
                return True
            seen.add(pid)
            pid = parents.get(pid, 0)
        return os.getpid() in seen and len(seen) == 1

    def _kill_if_marked(self, pid: int) -> bool:
        """Hold the process by a descriptor first, so that the one killed is the one looked at."""
        with suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if self._is_marked(pid):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                    return True
            finally:
                os.close(handle)
        return False

    def _is_marked(self, pid: int) -> bool:
        entry = PROC / str(pid)
        if os.geteuid() not in (0, entry.stat().st_uid):
            return False
        return f"{MARK_VARIABLE}={self.mark}".encode() in (entry / "environ").read_bytes().split(b"\0")


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
