"""When a process dies: the rule by itself, and a supervisor that obeys it."""

import asyncio
from pathlib import Path

import pytest

from paddock.rules.run.restart import Failure, LeaveDown, RestartAfter, after_exit, apart_for, rest_for
from paddock.runners.processes import supervisor
from runners.house import FIXTURES, House, house, marked, plugin

pytestmark = pytest.mark.anyio

PROCESSES_EACH = 2
"""The runner and its warden carry the mark."""


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


@pytest.mark.spec("wire/restarts")
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


# --- whose crash it was -----------------------------------------------------------------------------------------------


def crash(at: float, *workspaces: str) -> Failure:
    return Failure(at, frozenset(workspaces))


def test_crashes_of_one_workspace_leave_the_runner_down_for_it_alone() -> None:
    failures = [crash(at, "a") for at in (0, 1, 3, 7, 15, 31)]
    assert rest_for(failures, "a", now=31) == LeaveDown(60)
    assert rest_for(failures, "b", now=31) == RestartAfter(1)
    assert rest_for(failures, "b", now=32) == RestartAfter(0)
    assert rest_for(failures, "a", now=91) == RestartAfter(0)


@pytest.mark.spec("wire/crashes-apart")
def test_a_crash_that_several_shared_counts_once_against_each_and_sets_them_apart() -> None:
    failures = [crash(0, "a", "b", "c"), *(crash(at, "a") for at in (1, 3, 7, 15, 31))]
    assert rest_for(failures, "a", now=31) == LeaveDown(60)
    assert rest_for(failures, "b", now=31) == RestartAfter(1), "one crash of its own, long ago; one of somebody's, now"
    assert [apart_for(failures, one, now=31) > 0 for one in "abcd"] == [True, True, True, False]
    assert apart_for(failures, "b", now=600) == 0


def test_a_runner_that_crashes_for_many_workspaces_is_left_down_for_all() -> None:
    failures = [crash(at, name) for at, name in enumerate("abcdef")]
    assert rest_for(failures, "z", now=5) == LeaveDown(60)
    assert rest_for(failures[:5], "z", now=4) == RestartAfter(16)


def test_a_runner_that_cannot_start_is_left_down_for_all() -> None:
    failures = [Failure(at) for at in (0, 1, 3, 7, 15, 31)]
    assert rest_for(failures, "z", now=31) == rest_for(failures, None, now=31) == LeaveDown(60)


@pytest.mark.spec("wire/crashes-apart")
async def test_the_crashes_of_one_workspace_do_not_close_a_runner_for_another(tmp_path: Path, clock: Clock) -> None:
    async with house(tmp_path, clock=clock) as here:
        for number in range(6):
            bystander, _ = await here.run("hang", workspace="quiet")
            await bystander.until(lambda news: bool(news.results))
            news, _ = await here.run("exit 7", workspace="noisy")
            assert (await news.over()).code == "runner.crashed"
            assert bool(bystander.losses) is (number == 0), "only the first crash may take others along"
        assert (await here.run("echo", workspace="noisy"))[0].code == "runner.unhealthy"
        news, _ = await here.run("echo fine", workspace="quiet")
        assert (await news.over()).text == ["fine"]
        news, _ = await here.run("echo too", workspace="third")
        assert (await news.over()).text == ["too"]
        states = {one: (await here.gateway.list_runners(one))[0].state for one in ("noisy", "quiet", "third")}
        assert states == {"noisy": "unhealthy", "quiet": "ready", "third": "ready"}
        [status] = await here.gateway.list_runners()
        assert (status.state, status.unhealthy_for) == ("unhealthy", ("noisy",))
        assert here.gateway.count_by_state() == {"unhealthy": 1}


@pytest.mark.spec("wire/restarts")
async def test_what_breaks_the_connection_counts_like_a_crash(tmp_path: Path, clock: Clock) -> None:
    async with house(tmp_path, clock=clock) as here:
        for _ in range(6):
            news, _ = await here.run("long-line 5", workspace="noisy")
            assert (await news.over()).code == "payload_too_large"
            await here.until_not_ready()
        assert (await here.run("echo", workspace="noisy"))[0].code == "runner.unhealthy"
        assert (await (await here.run("echo fine", workspace="quiet"))[0].over()).text == ["fine"]


async def test_a_workspace_that_was_set_apart_comes_back_and_its_process_goes(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "APART_CHECK_SECONDS", 0.05)
    async with house(tmp_path, clock=clock) as here:
        await (await here.run("exit 7", workspace="noisy"))[0].over()
        await here.until_not_ready()
        await (await here.run("echo", workspace="noisy"))[0].over()
        await (await here.run("echo", workspace="quiet"))[0].over()
        assert len(marked(here.mark)) == 2 * PROCESSES_EACH
        clock.now += 600
        await (await here.run("echo", workspace="noisy"))[0].over()
        async with asyncio.timeout(30):
            while len(marked(here.mark)) != PROCESSES_EACH:
                await asyncio.sleep(0.01)
