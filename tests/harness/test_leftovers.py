"""What a harness leaves behind is found and ended, wherever it went, and nobody else is."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.fixtures import alive
from paddock_runners.harness import process as processes
from paddock_runners.harness.attachments import Picture
from paddock_runners.harness.heard import HarnessError, Heard, Permission
from paddock_runners.harness.leftovers import MARK_VARIABLE, bystanders, started_at, starts, survivors, sweep
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.wire import Wire

pytestmark = pytest.mark.anyio

OURS = f"ours-{os.getpid()}"
"""Of this process: another one may run these tests at the same time."""


@pytest.fixture
def strays() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Three that sleep: one with the mark, one with another's, one without."""
    marks = [{MARK_VARIABLE: OURS}, {MARK_VARIABLE: f"{OURS}-not"}, {}]
    made = [subprocess.Popen(["sleep", "60"], env={**os.environ, **mark}, start_new_session=True) for mark in marks]
    yield made
    for one in made:
        one.kill()
        one.wait()


async def test_only_those_with_the_mark_are_ended(strays: list["subprocess.Popen[bytes]"]) -> None:
    assert survivors(OURS, session=-1) == [strays[0].pid]
    assert await sweep(OURS, session=-1) == 1
    assert [one.poll() is None for one in strays] == [False, True, True]
    assert survivors(OURS, session=-1) == []


async def test_a_session_is_found_without_a_mark_and_nobody_who_began_earlier(
    strays: list["subprocess.Popen[bytes]"],
) -> None:
    assert survivors("nobody's", session=strays[2].pid) == [strays[2].pid]
    assert survivors(OURS, session=-1, since=started_at(strays[0].pid) + 1) == []


async def test_those_who_were_there_before_are_not_looked_at_again(strays: list["subprocess.Popen[bytes]"]) -> None:
    began = started_at(strays[0].pid)
    assert not {str(one.pid) for one in strays} & bystanders(began).names
    before = bystanders(began + 1_000_000).still()
    assert {str(one.pid) for one in strays} <= before
    assert survivors(OURS, session=-1, but=before) == []
    assert survivors(OURS, session=-1, since=began, but=bystanders(began).still()) == [strays[0].pid]


async def test_a_number_that_may_be_anothers_by_now_is_looked_at_again() -> None:
    now = bystanders(started_at(os.getpid()) + 1_000_000)
    numbers = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert now.still() == now.names != frozenset()
    assert replace(now, starts=starts() - numbers // 2 - 1).still() == frozenset()
    assert replace(now, starts=0).still() == frozenset(), "not known"


class Deaf(Wire):
    """A harness that is asked to stop and says nothing."""

    def __init__(self, process: HarnessProcess) -> None:
        super().__init__(process)
        self.asked = asyncio.Event()

    async def interrupt(self) -> None:
        self.asked.set()

    async def open(self, session_id: str | None) -> None: ...

    async def ask(self, text: str, pictures: Sequence[Picture] = ()) -> None: ...

    async def steer(self, text: str) -> None: ...

    async def answer(self, asked: Permission, allowed: bool, why: str, *, stop: bool = False) -> None: ...

    def read(self, said: dict[str, Any]) -> Iterable[Heard]:
        return ()

    def on_silence(self) -> None: ...


async def test_a_second_cancel_while_it_is_asked_to_stop_leaves_no_process(tmp_path: Path) -> None:
    process = await HarnessProcess.start(["sleep", "60"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    wire = Deaf(process)
    closing = asyncio.create_task(wire.close())
    await wire.asked.wait()
    closing.cancel()
    with suppress(asyncio.CancelledError):
        await closing
    assert not alive(process.pid)


async def test_ending_twice_or_while_cancelled_is_as_good_as_once(tmp_path: Path) -> None:
    process = await HarnessProcess.start(["sleep", "60"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    first = asyncio.create_task(process.end())
    await asyncio.sleep(0)
    first.cancel()
    await process.end()
    assert not alive(process.pid)


async def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LINE_BYTES", 1000)
    command = [sys.executable, "-c", "print('x' * 100_000)"]
    process = await HarnessProcess.start(command, cwd=tmp_path, env={})
    with pytest.raises(HarnessError, match="longer than 1000 bytes"):
        [line async for line in process.lines()]
    await process.end()


async def test_who_reads_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BACKLOG_BYTES", 1000)
    process = await HarnessProcess.start(["sleep", "60"], cwd=tmp_path, env={"PATH": os.environ["PATH"]})
    process.write({"words": "x" * 1_000_000})
    with pytest.raises(HarnessError, match="does not read its input"):
        process.write({"words": "one more"})
    await process.end()
    assert not alive(process.pid)
