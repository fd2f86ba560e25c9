"""Where every run has a process of its own, one waits ready for the next, and knows nothing before that."""

from collections.abc import Collection, Sequence
from pathlib import Path

import anyio
import psutil
import pytest

from paddock.runners.processes import prewarming
from runners.house import House, eventually, house, marked, plugin

pytestmark = pytest.mark.anyio
ONE_EACH = plugin(runs_per_process=1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prewarming, "AFTER_SECONDS", 0.0)


async def pid_of_a_run(here: House, workspace: str = "") -> int:
    news, _ = await here.run("pid", workspace=workspace)
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


@pytest.fixture
def became_ready(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each process that is, or was, ready."""
    ready, so_far = prewarming.Prewarming.ready, list[bool]()

    def noted(self: prewarming.Prewarming, *, ahead: bool) -> None:
        so_far.append(ahead)
        ready(self, ahead=ahead)

    monkeypatch.setattr(prewarming.Prewarming, "ready", noted)
    return so_far


async def so_many_wait(here: House, many: int, served: Collection[int], became_ready: Sequence[bool]) -> set[int]:
    """The processes that are there when those that served a run have gone, once they are ready."""
    with anyio.fail_after(30):
        while True:
            found = set(runners_of(here))
            if len(found) == many and not found & set(served) and len(became_ready) == len(served) + many:
                return found
            await anyio.sleep(0.01)


async def test_a_workspace_with_many_runs_leaves_the_process_that_waits_for_another(
    tmp_path: Path, became_ready: list[bool]
) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        served = [await pid_of_a_run(here, "quiet")]
        await so_many_wait(here, 1, served, became_ready)
        for _ in range(3):
            await here.run("flood 0", workspace="loud")  # goes on
        there = set(runners_of(here))
        assert len(there) == 4, "each of these runs had a process started for itself"
        assert await pid_of_a_run(here, "quiet") in there


async def test_a_process_that_is_kept_for_nobody_serves_whoever_comes(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        [status] = await here.gateway.list_runners()
        assert await pid_of_a_run(here, "anybody") == status.pid


async def test_processes_that_wait_are_bounded_of_one_workspace_and_in_all(
    tmp_path: Path, became_ready: list[bool]
) -> None:
    async with house(tmp_path, [ONE_EACH]) as here:
        served: list[int] = []
        for news, _ in [await here.run("pid", workspace="loud") for _ in range(3)]:
            served.append(int((await news.over()).results[-1].data["pid"]))
        await so_many_wait(here, 1, served, became_ready)
        served += [await pid_of_a_run(here, f"w{number}") for number in range(prewarming.MOST + 1)]
        kept = await so_many_wait(here, prewarming.MOST, served, became_ready)
        theirs = [await pid_of_a_run(here, f"w{number}") for number in range(1, prewarming.MOST + 1)]
        assert set(theirs) == kept, "those whose runs ended last have one each"


async def test_a_workspace_takes_what_is_kept_for_it_or_for_nobody() -> None:
    async def start() -> None:
        """Done by the test."""

    waiting = prewarming.Prewarming(60.0, start=start, give_up=lambda _: None)
    names = [f"w{number}" for number in range(prewarming.MOST + 1)]
    for name in names:
        waiting.run_over(name)
        waiting.ready(ahead=True)
    assert [waiting.may_take(name, prewarming.MOST) for name in names] == [False, True, True, True, True]
    assert waiting.may_take(names[0], prewarming.MOST + 1)
    waiting.stop()


async def test_all_that_wait_are_given_up_when_nobody_comes(tmp_path: Path) -> None:
    async with house(tmp_path, [ONE_EACH], spare_seconds=1.0) as here:
        for workspace in ("one", "two"):
            await pid_of_a_run(here, workspace)
        await eventually(lambda: here.gateway.count_by_state() == {"ready": 1})
        await eventually(lambda: marked(here.mark) == [])
        assert await pid_of_a_run(here, "one")
