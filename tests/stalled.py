"""What held up the event loops of the hosts that tests use: collected here, asked for by `conftest.py`.

A host that `warm.py` starts writes each stall to a file of its own accord, whoever reads its output and whatever it
logs; of one that is started as the program itself `walk.hosts` hands in the lines that tell of one. Those in the
process of the tests are heard of too, unless it is a test itself that keeps the loop.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

EVERYWHERE = bool(os.environ.get("PADDOCK_TEST_NO_STALLS"))
"""Every test fails on a stall, and not only long ones and those that attack."""
_files: set[Path] = set()
_read: dict[Path, int] = {}
_lines: list[str] = []


def note(line: str) -> None:
    """Hear a line that a host logged."""
    if "loop.stalled" in line or "loop.stalling" in line:
        _lines.append(line)


def in_this_process(line: str) -> None:
    """Hear of a stall of a host that runs in the process of the tests."""
    _lines.append(line)


def expect_in(path: Path) -> None:
    """Read from this file what hosts write into it."""
    _files.add(path)


def since_last() -> list[str]:
    """All that was heard of since this was asked the last time."""
    found = list(_lines)
    _lines.clear()
    for path in _files:
        with suppress(OSError):
            text = path.read_text()
            found += text[_read.get(path, 0) :].splitlines()
            _read[path] = len(text)
    return found


def tell(hear: Callable[[str], None], *, of_tests_too: bool = False) -> None:
    """Have every watch of this process tell of its stalls."""
    from paddock.telemetry.loop_watch import LoopWatch

    for name in ("count", "note_going_on"):
        _wrap(LoopWatch, name, hear, of_tests_too)


def _wrap(watch: Any, name: str, hear: Callable[[str], None], of_tests_too: bool) -> None:
    inner = getattr(watch, name)

    def told(self: Any, seconds: float, stack: list[str]) -> None:
        if of_tests_too or not stack or "paddock" in stack[-1].partition(":")[0]:
            hear(f"{name} {seconds:.3f} s of CPU time at {' > '.join(stack)}")
        inner(self, seconds, stack)

    setattr(watch, name, told)


def tell_in(path: str) -> None:
    """For a host: write what holds it up into a file."""

    def write(line: str) -> None:
        with suppress(OSError), Path(path).open("a") as file:
            file.write(f"{os.getpid()}: {line}\n")

    tell(write, of_tests_too=True)
