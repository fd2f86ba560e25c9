"""Where every run has a process of its own, one waits ready for the next, and knows nothing before that."""

from pathlib import Path

import anyio
import psutil
import pytest

from paddock.runners import spares
from runners.house import House, eventually, house, marked, plugin

pytestmark = pytest.mark.anyio
ONE_EACH = plugin(runs_per_process=1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spares, "AFTER_SECONDS", 0.0)


async def pid_of_a_run(here: House) -> int:
    news, _ = await here.run("pid")
    return int((await news.over()).results[-1].data["pid"])


async def waiting(here: House) -> int:
    """The one process that is there when all others have gone: its number, once it is ready."""
    with anyio.fail_after(30):
        while True:
            [status] = await here.gateway.list_runners()
            if status.state == "ready" and len(runners_of(here)) == 1 and status.pid is not None:
                return status.pid
            await anyio.sleep(0.01)


def runners_of(here: House) -> list[int]:
    """Its processes without their wardens."""
    return [pid for pid in marked(here.mark) if "warden" not in _command(pid)]


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return "warden"


@pytest.mark.spec("wire/one-waits")
async def test_a_process_waits_for_the_next_run_and_serves_no_other(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        first = await pid_of_a_run(here)
        spare = await waiting(here)
        second, third = await pid_of_a_run(here), await pid_of_a_run(here)
        assert (second, len({first, second, third})) == (spare, 3)


async def test_one_waits_however_many_runs_there_were(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        started = [await here.run("pid") for _ in range(3)]
        served = {(await news.over()).results[-1].data["pid"] for news, _ in started}
        assert len(served) == 3
        assert await waiting(here) not in served


@pytest.mark.spec("wire/one-waits")
async def test_what_waits_was_told_of_no_run(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin(program="wiretap.py", runs_per_process=1)]) as here:
        news, _ = await here.run("a secret question", run_id="the-first")
        await news.over()
        heard = tmp_path / "runners" / "test" / "nasty" / f"{await waiting(here)}.heard"
        await eventually(lambda: heard.exists() and "initialize" in heard.read_text())
        assert "secret" not in heard.read_text()
        assert "the-first" not in heard.read_text()


@pytest.mark.spec("wire/deadline")
async def test_the_handshake_tells_the_time_that_deadlines_are_told_in(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin(program="wiretap.py")], host_time=lambda: 1234.5) as here:
        news, _ = await here.run("hello")
        await news.over()
        [heard] = (tmp_path / "runners" / "test" / "nasty").glob("*.heard")
        assert '"host_time": 1234.5' in heard.read_text()


async def test_one_that_nobody_needs_is_given_up(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH], spare_seconds=2.0) as here:
        served = await pid_of_a_run(here)
        assert await waiting(here) != served
        await eventually(lambda: marked(here.mark) == [])
        await eventually(lambda: here.gateway.count_by_state() == {"stopped": 1})
        assert await pid_of_a_run(here)


async def test_one_that_was_only_asked_what_it_offers_is_given_up_too(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH], spare_seconds=2.0) as here:
        [status] = await here.gateway.list_runners()
        assert status.state == "ready"
        await eventually(lambda: marked(here.mark) == [])


async def test_none_waits_where_none_is_wanted(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH], spare_seconds=0.0) as here:
        await pid_of_a_run(here)
        await eventually(lambda: marked(here.mark) == [])
        await eventually(lambda: here.gateway.count_by_state() == {"stopped": 1})


async def test_one_that_died_is_not_given_a_run(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        await pid_of_a_run(here)
        spare = await waiting(here)
        psutil.Process(spare).kill()
        await eventually(lambda: here.gateway.count_by_state() != {"ready": 1})
        assert await pid_of_a_run(here) != spare
