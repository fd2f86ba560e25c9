"""When a process dies: the rule by itself, and a supervisor that obeys it."""

from pathlib import Path

import pytest

from paddock.rules.restart import LeaveDown, RestartAfter, after_exit
from paddock.runners import supervisor
from runners.house import FIXTURES, House, house, plugin

pytestmark = pytest.mark.anyio


def test_each_failure_in_a_minute_doubles_the_wait() -> None:
    waits = [after_exit([0.0] * count, now=0.0) for count in range(1, 6)]
    assert waits == [RestartAfter(seconds) for seconds in (1, 2, 4, 8, 16)]


def test_after_five_restarts_in_a_minute_it_is_left_down_for_a_minute() -> None:
    assert after_exit([0, 1, 3, 7, 15, 31], now=31) == LeaveDown(60)
    assert after_exit([0.0] * 3, now=0.0, limit=2) == LeaveDown(60)


def test_old_failures_are_forgiven() -> None:
    assert after_exit([0, 1, 3, 7, 15, 100], now=100) == RestartAfter(1)
    assert after_exit([0, 60], now=60) == RestartAfter(1)


class Clock:
    """Time that passes only when a supervisor waits or a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.waits: list[float] = []
        monkeypatch.setattr(supervisor.anyio, "sleep", self.sleep)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def state_of(here: House) -> tuple[str, str]:
    [status] = await here.gateway.list_runners()
    return status.state, status.detail


async def test_a_crash_loop_is_restarted_five_times_and_then_shown_unhealthy(tmp_path: Path, clock: Clock) -> None:
    async with house(tmp_path, clock=clock) as here:
        for _ in range(6):
            news, _ = await here.run("exit 7")
            assert (await news.over()).code == "runner.crashed"
            await here.until_not_ready()
        assert clock.waits == [0, 1, 2, 4, 8, 16]
        refused, _ = await here.run("echo")
        assert refused.code == "runner.unhealthy"
        assert refused.losses[0][1].startswith("test/nasty keeps failing; the host's log")
        await here.run("echo")
        state, detail = await state_of(here)
        assert state == "unhealthy"
        assert detail.startswith("it exited with status 7")


async def test_an_unhealthy_runner_is_tried_again_after_a_minute_by_the_next_demand(
    tmp_path: Path, clock: Clock
) -> None:
    async with house(tmp_path, clock=clock) as here:
        for _ in range(6):
            await (await here.run("exit 7"))[0].over()
            await here.until_not_ready()
        clock.now += 59
        assert (await here.run("echo"))[0].code == "runner.unhealthy"
        clock.now += 2
        news, _ = await here.run("echo again")
        assert (await news.over()).text == ["again"]
        assert await state_of(here) == ("ready", "")


async def test_a_runner_that_cannot_start_is_counted_the_same(tmp_path: Path, clock: Clock) -> None:
    broken = plugin(command=("python", str(FIXTURES / "versions.py"), "2"))
    async with house(tmp_path, [broken], clock=clock) as here:
        codes = [(await here.run("echo"))[0].code for _ in range(7)]
        assert codes == ["runner.start_failed"] * 6 + ["runner.unhealthy"]


async def test_a_process_that_dies_idle_is_just_started_again(tmp_path: Path, clock: Clock) -> None:
    async with house(tmp_path, clock=clock) as here:
        for _ in range(8):
            news, _ = await here.run("finish-then-exit 1")
            assert (await news.over()).ended
            await here.until_not_ready()
        assert set(clock.waits) == {0}


async def test_an_unhealthy_plugin_does_not_touch_its_neighbour(tmp_path: Path, clock: Clock) -> None:
    broken = plugin("bad", command=("python", "-c", "raise SystemExit(1)"))
    async with house(tmp_path, [broken, plugin("good")], clock=clock) as here:
        for _ in range(7):
            await here.run("echo", name="bad")
        news, _ = await here.run("echo fine", name="good")
        assert (await news.over()).text == ["fine"]
        states = {status.plugin: status.state for status in await here.gateway.list_runners()}
        assert states == {"test/bad": "unhealthy", "test/good": "ready"}
