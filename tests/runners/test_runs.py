"""Runs through a real child process: what goes right."""

import json
import os
from pathlib import Path

import anyio
import pytest

from paddock.rules.errors import ErrorCode, HostError
from runners.house import FIXTURES, News, eventually, house, plugin

pytestmark = pytest.mark.anyio


async def test_a_run_is_acknowledged_once_streams_and_completes(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("echo hello")
        await news.over()
        assert (news.acks, news.text, news.losses) == (1, ["hello"], [])
        assert [result.sequence for result in news.results] == [1, 2]


async def test_the_host_counts_for_a_runner_that_does_not(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("unnumbered hello")
        await news.over()
        assert [result.sequence for result in news.results] == [1, 2]


async def test_runs_share_one_process_that_is_started_on_demand(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        started = [await here.run("pid") for _ in range(20)]
        pids = {(await news.over()).results[-1].data["pid"] for news, _ in started}
        [status] = await here.gateway.list_runners()
        assert pids == {status.pid}
        assert status.state == "ready"


async def test_runs_that_start_at_once_share_one_start(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        pids: list[int] = []

        async def one() -> None:
            news, _ = await here.run("pid")
            pids.append((await news.over()).results[-1].data["pid"])

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
        assert len(pids) == 10
        assert len(set(pids)) == 1


async def test_a_plugin_may_have_one_process_for_each_run_and_none_stays(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin(runs_per_process=1)]) as here:
        pids = []
        for _ in range(3):
            news, handle = await here.run("pid")
            pids.append((await news.over()).results[-1].data["pid"])
            handle.release()
        assert len(set(pids)) == 3
        await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


async def test_a_run_that_was_refused_unread_leaves_no_process_behind(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin(runs_per_process=1)]) as here:
        news, _ = await here.run("echo " + "x" * 5_000_000)
        assert news.code == "payload_too_large"
        await here.until_not_ready()
        again, _ = await here.run("echo fine")
        assert (await again.over()).text == ["fine"]


async def test_the_environment_is_the_allow_list_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    monkeypatch.setenv("ALLOWED", "yes")
    given = plugin(env={"EXTRA": "one"}, python_path=(FIXTURES,))
    async with house(tmp_path, [given], env_allow=("ALLOWED", "ABSENT"), mark=f"the-mark-{os.getpid()}") as here:
        news, _ = await here.run("environment")
        said = (await news.over()).results[-1].data
        home = tmp_path / "runners" / "test" / "nasty"
        assert said["env"] == {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": str(FIXTURES),
            "PADDOCK_PLUGIN": "test/nasty",
            "PADDOCK_MARK": here.mark,
            "ALLOWED": "yes",
            "EXTRA": "one",
        }
        assert home.stat().st_mode & 0o777 == 0o700
        assert said["cwd"] == str(FIXTURES)
        assert said["sid"] == (await here.gateway.list_runners())[0].pid


async def test_a_cancelled_run_is_over_when_the_runner_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, handle = await here.run("hang")
        await news.until(lambda news: news.text == ["started"])
        assert await handle.cancel("user")
        assert await handle.cancel("again")
        assert news.losses == []


async def test_a_host_call_reaches_the_handler_with_the_identity_of_the_connection(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        _, handle = await here.run("call state.get", run_id="run-1")
        await eventually(lambda: len(here.calls.made) == 1)
        caller, method, params = here.calls.made[0]
        assert (caller.plugin, caller.connection_id) == ("test/nasty", handle.connection_id)
        assert (method, params) == ("state.get", {"run_id": "run-1"})


async def test_an_unknown_runner_is_not_found_whatever_its_name(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        for runner_id in ("plugin:test/nasty/other", "plugin:nobody/nasty/default", "nonsense", "plugin:a/b/../c"):
            with pytest.raises(HostError) as refused:
                await here.gateway.manifest(runner_id)
            assert refused.value.code is ErrorCode.NOT_FOUND
        news, _ = await here.run("echo", name="absent")
        assert news.code == "runner.not_found"


async def test_a_runner_that_reads_in_its_own_time_gets_all_its_runs(tmp_path: Path) -> None:
    """Forty contexts of 256 KiB exceed what may wait in a pipe at once; nobody is given up for it."""
    async with house(tmp_path) as here:
        await here.gateway.manifest("plugin:test/nasty/default")
        heard = [(await here.run(f"echo {number} {'x' * 262_144}"))[0] for number in range(40)]
        assert [int((await news.over()).text[0].split()[0]) for news in heard] == list(range(40))


async def test_an_installed_plugin_whose_runner_cannot_be_listed_says_why(tmp_path: Path) -> None:
    typo = {"id": "plugin:test/nasty/default", "name": "default", "label": "x", "capabilities": {}, "context": {}}
    offer = json.dumps([typo | {"permissions": {"history": ["rewrite"]}}])
    command = ("python", str(FIXTURES / "offers.py"), offer)
    async with house(tmp_path, [plugin(command=command)]) as here:
        [status] = await here.gateway.list_runners()
        said = "runner 'default': permissions.history.0: 'rewrite' is not known; known are 'page', 'search'"
        assert (status.runner_id, status.detail) == ("plugin:test/nasty/*", said)
        news, _ = await here.run("echo hello")
        told = "there is no runner 'plugin:test/nasty/default'; the host's log tells why"
        assert news.losses == [("runner.not_found", told)]
        other = News()
        await here.gateway.start_run("plugin:test/nasty/other", "r2", {"run_id": "r2"}, other)
        assert other.losses == [("runner.not_found", "there is no runner 'plugin:test/nasty/other'")]
