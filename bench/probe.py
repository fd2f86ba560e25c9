"""How slow the machine is right now: the CPU time that a fixed piece of work takes, again and again, beside a load.

Two programs that share a core each need more CPU time for the same work than one alone. Where a bench compares few busy
processes with many, that is part of what it finds, and this says how much. Run as `python -m bench.probe`.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import psutil

from bench.servers import spawned

PAUSE_SECONDS = 0.02
ROUNDS = 400


def work() -> int:
    """About half a millisecond of what hosts do most: small objects, attributes, dictionaries, calls."""
    found = dict[str, int]()
    for number in range(ROUNDS):
        found[f"key {number % 50}"] = len(f"{number}:{found.get('key 1')}")
    return len(found)


class Probe:
    """A probe at work in a process of its own."""

    def __init__(self, process: psutil.Popen) -> None:
        self._process = process

    def microseconds(self) -> float:
        """CPU time of one piece of work, on average since it was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())


@contextmanager
def probing() -> Generator[Probe]:
    with spawned((sys.executable, "-m", "bench.probe"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Probe(process)


class _Meter:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent, self._count = 0.0, 0

    def work_for_ever(self) -> None:
        while True:
            began = time.thread_time()
            work()
            with self._lock:
                self._spent, self._count = self._spent + time.thread_time() - began, self._count + 1
            time.sleep(PAUSE_SECONDS)

    def read_off(self) -> float:
        with self._lock:
            spent, count, self._spent, self._count = self._spent, self._count, 0.0, 0
        return spent / count * 1e6 if count else 0.0


def main() -> None:
    """Answer each line with a figure, until there are no more."""
    meter = _Meter()
    threading.Thread(target=meter.work_for_ever, daemon=True).start()
    for _ in sys.stdin:
        print(meter.read_off(), flush=True)


if __name__ == "__main__":
    main()
