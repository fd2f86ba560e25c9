"""What runners leave behind, however hard they try, is gone within five seconds: also when the host is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import anyio
import psutil
import pytest

from paddock.runners.processes.leftovers import Leftovers
from patience import at_most
from runners.house import PYTHON, eventually, house, marked, measured

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")]
HOST = Path(__file__).parent / "fixtures" / "small_host.py"


@pytest.fixture
def mark() -> str:
    return f"orphans-{uuid4().hex}"


async def test_force_stop_leaves_nobody(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, handle = await here.run("orphan-then-block")
        await news.until(lambda news: bool(news.text))
        await eventually(
            lambda: len(marked(mark)) == 3
        )  # warden, runner and the orphan; who forked it is on its way out
        await handle.force_stop()
        assert marked(mark) == []


async def test_stopping_the_gateway_leaves_nobody_and_takes_less_than_five_seconds(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, _ = await here.run("orphan-then-block")
        await news.until(lambda news: bool(news.text))
        started = time.monotonic()
        await here.gateway.stop()
        assert marked(mark) == []
        assert time.monotonic() - started < at_most(2)


async def test_stopping_goes_on_when_whoever_asked_is_cancelled(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, _ = await here.run("orphan-then-block")
        await news.until(lambda news: bool(news.text))
        with anyio.move_on_after(0.05):
            await here.gateway.stop()
        await eventually(lambda: marked(mark) == [])


async def test_a_crash_takes_its_orphans_along(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, _ = await here.run("orphan")
        await news.until(lambda news: bool(news.text))
        [status] = await here.gateway.list_runners()
        os.kill(status.pid, signal.SIGKILL)
        assert (await news.over()).code == "runner.crashed"
        await eventually(lambda: marked(mark) == [])


@pytest.mark.parametrize("how", ["orphan", "orphan-then-block"])
async def test_a_host_that_is_killed_leaves_nobody(tmp_path: Path, mark: str, how: str) -> None:
    host = subprocess.Popen([PYTHON, str(HOST), str(tmp_path), mark, how], stdout=subprocess.PIPE)
    try:
        assert host.stdout.readline() == b"orphaned\n"
        await eventually(lambda: len(marked(mark)) == 3)
    finally:
        host.kill()
        host.wait()
    await eventually(lambda: marked(mark) == [])


async def test_a_runner_that_kills_its_warden_gains_nothing(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, _ = await here.run("kill-warden")
        assert (await news.over()).code == "runner.crashed"
        await eventually(lambda: marked(mark) == [])


async def test_a_runner_that_freezes_its_warden_gains_nothing(tmp_path: Path, mark: str) -> None:
    async with house(tmp_path, mark=mark) as here:
        news, handle = await here.run("stop-warden")
        await news.until(lambda news: bool(news.text))
        await handle.force_stop()
        assert marked(mark) == []


async def test_the_sweep_kills_what_carries_the_mark_and_nothing_else(tmp_path: Path, mark: str) -> None:
    def sleeper(**env: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([PYTHON, "-I", "-S", "-c", "import time; time.sleep(60)"], env=env)

    left = sleeper(PADDOCK_MARK=mark)
    others = [sleeper(PADDOCK_MARK=mark + "x"), sleeper(OTHER=f"PADDOCK_MARK={mark}"), sleeper()]
    try:
        async with house(tmp_path, mark=mark) as here:
            mine, _ = await here.run("hang")
            await eventually(lambda: left.pid in marked(mark))
            await here.gateway.start()
            assert left.wait(30) == -signal.SIGKILL
            assert [other.poll() for other in others] == [None, None, None]
            assert mine.losses == []
    finally:
        for each in (left, *others):
            each.kill()
            each.wait()


def test_a_sweep_without_a_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        Leftovers("")


async def test_the_warden_stays_small(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        await here.gateway.manifest("plugin:test/nasty/default")
        [status] = await here.gateway.list_runners()
        warden = psutil.Process(psutil.Process(status.pid).ppid())
        assert "warden.py" in " ".join(warden.cmdline())
        assert warden.memory_full_info().uss < 6_000_000


async def test_no_descriptors_and_no_zombies_stay(tmp_path: Path) -> None:
    assert await measured("leftovers", tmp_path) == {"children": []}
