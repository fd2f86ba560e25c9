"""A runner's standard error in the log: whole lines, whole tracebacks, whatever the edges of the chunks are."""

import asyncio
import subprocess
import sys

import pytest
import structlog

from paddock.runners.processes import stderr_log
from paddock.runners.processes.stderr_log import StderrLog

pytestmark = pytest.mark.anyio

CHAINED = """
def inner():
    raise KeyError("lost")
try:
    inner()
except KeyError as error:
    raise ValueError("not found") from error
"""
GROUP = 'raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])'


def stderr_of(program: str) -> bytes:
    """What a real interpreter writes when a program fails."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).stderr


async def logged(data: bytes, size: int) -> list[str]:
    """The records that become of some bytes that come in chunks of this size."""
    with structlog.testing.capture_logs() as said:
        log = StderrLog("a/b")
        for at in range(0, len(data), size):
            log.feed(data[at : at + size])
        log.close()
    return [line["line"] for line in said]


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
@pytest.mark.parametrize("program", [CHAINED, GROUP])
async def test_a_traceback_is_one_record_whole_and_what_stands_around_it_are_others(program: str, size: int) -> None:
    traceback = stderr_of(program)
    assert traceback.count(b"\n") > 5
    said = await logged(b"before\n\n" + traceback + b"after\n  indented\n", size)
    assert said == ["before", traceback.decode().rstrip(), "after", "  indented"]


async def test_two_tracebacks_in_a_row_are_not_lost_in_each_other() -> None:
    one = stderr_of("1 / 0")
    said = await logged(one + b"then\n" + one, 64)
    assert said == [one.decode().rstrip(), "then", one.decode().rstrip()]


async def test_what_has_no_end_is_logged_soon_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr_log, "HELD_SECONDS", 0.0)
    with structlog.testing.capture_logs() as said:
        log = StderrLog("a/b")
        log.feed(b"Traceback (most recent call last):\n  File")
        async with asyncio.timeout(20):
            while not said:
                await asyncio.sleep(0)
    assert [line["line"] for line in said] == ["Traceback (most recent call last):\n  File"]


async def test_a_line_and_a_traceback_without_end_are_held_only_so_far() -> None:
    said = await logged(b"x" * 50_000 + b"\nTraceback (most recent call last):\n" + b"  a\n" * 50_000, 4096)
    assert max(map(len, said)) <= stderr_log.MAX_TRACEBACK
    assert sum(map(len, said)) < 200_000
