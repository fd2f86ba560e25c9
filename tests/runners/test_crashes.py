"""Runner processes that end when they should not: who hears of it, how soon, and who does not."""

import signal
import time
from pathlib import Path

import anyio
import pytest

from paddock.runners import gateway
from patience import at_most
from runners.house import FIXTURES, PYTHON, house, plugin

pytestmark = pytest.mark.anyio

ENDINGS = [
    ("exit 0", "it exited with status 0"),
    ("exit 1", "it exited with status 1"),
    (f"signal {signal.SIGSEGV.value}", "it was ended by SIGSEGV"),
    (f"signal {signal.SIGKILL.value}", "it was ended by SIGKILL"),
]


@pytest.mark.parametrize(("how", "said"), ENDINGS)
async def test_a_crash_in_the_stream_is_heard_once_and_soon_and_what_was_said_is_kept(
    tmp_path: Path, how: str, said: str
) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run(how)
        await news.until(lambda news: bool(news.text))
        started = time.monotonic()
        await news.over()
        assert time.monotonic() - started < at_most(1)
        assert (news.code, news.text) == ("runner.crashed", ["partial"])
        assert said in news.losses[0][1]


async def test_every_run_of_a_crashed_process_hears_of_it_once(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        neighbours = [(await here.run("hang"))[0] for _ in range(5)]
        news, _ = await here.run("exit 1")
        for each in [*neighbours, news]:
            assert (await each.over()).code == "runner.crashed"


@pytest.mark.parametrize("status", [0, 1])
async def test_a_process_that_ends_after_the_final_result_spoils_nothing(tmp_path: Path, status: int) -> None:
    async with house(tmp_path) as here:
        for _ in range(3):
            news, _ = await here.run(f"finish-then-exit {status}")
            await news.over()
            assert (news.text, news.losses, news.ended) == (["whole"], [], True)
            await here.until_not_ready()


async def test_a_crashing_plugin_never_disturbs_another(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("good"), plugin("bad")]) as here:
        steady, handle = await here.run("hang", name="good")
        await steady.until(lambda news: bool(news.text))
        for how in ("exit 1", "signal 11"):
            assert (await (await here.run(how, name="bad"))[0].over()).code == "runner.crashed"
        quick, _ = await here.run("echo fine", name="good")
        assert (await quick.over()).text == ["fine"]
        assert await handle.cancel("done")
        assert steady.losses == []


@pytest.mark.parametrize("how", ["close-output", "close-input"])
async def test_a_runner_that_closes_a_pipe_is_of_no_use_and_ended(tmp_path: Path, how: str) -> None:
    async with house(tmp_path) as here:
        news, handle = await here.run(how)
        await news.until(lambda news: bool(news.text))
        handle.give_credit(1)
        with anyio.fail_after(30):
            while not news.losses:
                handle.give_credit(1)
                await anyio.sleep(0.02)
        assert news.code == "runner.crashed"
        assert "it closed its standard" in news.losses[0][1]


START_FAILURES = {
    "crash at start": ("python", "-c", "import sys; sys.exit('no good')"),
    "no such program": ("there-is-no-such-program",),
    "no handshake version": ("python", str(FIXTURES / "versions.py"), "none"),
    "another major version": ("python", str(FIXTURES / "versions.py"), "2"),
    "version zero": ("python", str(FIXTURES / "versions.py"), "0"),
    "an exit right after a greeting": ("python", "-c", "print('hi')"),
}
SENTENCES = {
    "crash at start": "no good",
    "no such program": "cannot start there-is-no-such-program: No such file or directory",
    "no handshake version": "names no protocol version",
    "another major version": "speaks protocol version '2'",
    "version zero": "speaks protocol version '0'",
    "an exit right after a greeting": "it exited with status 0",
}


@pytest.mark.parametrize("case", START_FAILURES)
async def test_a_runner_that_cannot_start_fails_the_run_and_operators_see_the_reason(tmp_path: Path, case: str) -> None:
    async with house(tmp_path, [plugin(command=START_FAILURES[case])]) as here:
        started = time.monotonic()
        news, handle = await here.run("echo")
        assert news.code == "runner.start_failed"
        [status] = await here.gateway.list_runners()
        assert SENTENCES[case] in status.detail
        assert time.monotonic() - started < at_most(2)
        assert await handle.cancel("it never began")


async def test_a_runner_that_says_nothing_is_given_up_after_its_time(tmp_path: Path) -> None:
    silent = plugin(command=(PYTHON, "-c", "import time; time.sleep(600)"))
    async with house(tmp_path, [silent], start_seconds=0.3) as here:
        news, _ = await here.run("echo")
        assert news.code == "runner.start_failed"
        assert "was not ready within" in news.losses[0][1]


async def test_a_slow_plugin_does_not_hold_up_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "LIST_SECONDS", 0.3)
    silent = plugin("silent", command=(PYTHON, "-c", "import time; time.sleep(600)"))
    async with house(tmp_path, [silent]) as here:
        [status] = await here.gateway.list_runners()
        assert (status.runner_id, status.state) == ("plugin:test/silent/*", "starting")


async def test_stopping_the_gateway_tells_every_run_why(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("hang")
        await news.until(lambda news: bool(news.text))
        await here.gateway.stop()
        assert news.code == "host_shutdown"
        late, _ = await here.run("echo")
        assert late.code == "host_shutdown"
