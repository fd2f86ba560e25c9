"""Measure how the work of a function grows with its input, in a child process that cannot run away.

What is measured is the child's CPU time, so a busy machine changes little; what has no end is stopped by the kernel.
"""

import contextlib
import gc
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TIMES = 4
"""How much larger the second input is."""
AT_MOST = 8.0
"""Linear work takes four times as long for it, quadratic work sixteen times; the rest is for caches and chance."""
TOO_QUICK = 0.004
"""Seconds within which growth says nothing."""
ENOUGH_SECONDS = 8
"""CPU seconds after which the kernel ends the child."""


@dataclass(frozen=True)
class Case:
    """A function of the host, and the worst we know to hand to it: `make(n)` is an input of about `n` characters."""

    make: Callable[[int], Any]
    run: Callable[[Any], object]
    most: int
    """The longest input that reaches the function, or a length at which anything but linear work is seen."""
    seconds: float = 0.1
    """CPU seconds that the longest input may take: what the event loop may be held up for."""


@dataclass(frozen=True)
class Measured:
    small: float
    large: float

    @property
    def times(self) -> float:
        return self.large / max(self.small, 1e-6)

    def problem(self, case: Case) -> str | None:
        if self.large > case.seconds:
            return f"an input of {case.most} takes {self.large:.3f} s"
        if self.large > TOO_QUICK and self.times > AT_MOST:
            return f"{TIMES} times the input takes {self.times:.1f} times as long"
        return None


def problem_of(case: Case) -> str | None:
    """Say what is wrong with how the case grows; None when it is linear and quick enough."""
    said = in_a_child(lambda say: say(_measured(case).problem(case) or ""))
    return "it has no end in sight" if said is None else said or None


def _measured(case: Case) -> Measured:
    return Measured(best(case, case.most // TIMES), best(case, case.most))


def best(case: Case, size: int) -> float:
    """The least CPU time of a few tries; a long one is not repeated."""
    found: list[float] = []
    while len(found) < 5 and sum(found) < 0.5:
        given = case.make(size)
        before = time.thread_time()
        with contextlib.suppress(Exception):  # a refusal is an answer too
            case.run(given)
        found.append(time.thread_time() - before)
    return min(found)


def in_a_child(work: Callable[[Callable[[str], None]], None], *, seconds: int = ENOUGH_SECONDS) -> str | None:
    """Everything that `work` says in a process of its own; None when its time was up before it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _as_child(work, writing, seconds)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 0:
        return said
    if os.WIFSIGNALED(status):
        return None
    raise AssertionError(f"the child failed: {said}")


def _as_child(work: Callable[[Callable[[str], None]], None], writing: int, seconds: int) -> None:
    code = 1
    try:
        gc.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        work(lambda text: (os.write(writing, text.encode()), None)[1])
        code = 0
    except BaseException as error:  # noqa: BLE001 - a child of the test process must never return into it
        os.write(writing, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(code)
