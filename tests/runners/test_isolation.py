"""Isolation L1 really confines, with bubblewrap itself; and a level that cannot be had is refused."""

import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import install, not_run
from paddock.confinement import sandbox
from paddock.confinement.homes import FIRST_UID, LAST_UID
from paddock.runners import isolation
from paddock.runners.isolation import ActiveLevel, active_level
from runners.house import FIXTURES, House, eventually, house, marked, plugin

pytestmark = pytest.mark.anyio
AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def bubblewrap() -> None:
    """Make sure the real thing is there, or say loudly that it is not."""
    if install("bubblewrap", "bwrap"):
        active_level.cache_clear()
    level, why = active_level()
    if level != "L1":
        not_run(f"the tests of isolation L1 ({why})")


@pytest.fixture
async def confined(bubblewrap: None, tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, [plugin(program="prober.py", isolation="L1")]) as here:
        yield here


async def outcome(here: House, attempt: str) -> Any:
    news, _ = await here.run(attempt)
    await news.over()
    assert news.losses == []
    return news.results[-1].data


async def test_it_sees_its_own_directory_its_home_and_little_else(confined: House, tmp_path: Path) -> None:
    assert "prober.py" in (await outcome(confined, f"list {FIXTURES}"))["value"]
    assert (await outcome(confined, f"list {tmp_path}"))["value"] == ["conversations", "runners"]
    for hidden in ("/etc/passwd", "/etc/shadow", str(Path(__file__)), "/proc/1/environ"):
        assert (await outcome(confined, f"read {hidden}")).get("error"), hidden
    assert (await outcome(confined, "list /home"))["error"] == "FileNotFoundError"


async def test_it_writes_into_its_home_and_nowhere_else(confined: House, tmp_path: Path) -> None:
    home = tmp_path / "runners" / "test" / "nasty"
    assert "value" in await outcome(confined, f"write {home}/mine")
    assert (home / "mine").read_text() == "x"
    for place in (FIXTURES / "x", Path("/usr/x"), Path("/x"), tmp_path / "x", Path("/etc/x")):
        assert (await outcome(confined, f"write {place}")).get("error") in ("OSError", "PermissionError"), place


async def test_it_sees_no_process_but_its_own(confined: House) -> None:
    assert len((await outcome(confined, "processes"))["value"]) <= 3


@pytest.fixture
def listening_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_it_has_no_network(confined: House, listening_port: int) -> None:
    assert (await outcome(confined, f"connect {listening_port}"))["error"] in ("ConnectionRefusedError", "OSError")


async def test_a_granted_network_is_there(bubblewrap: None, tmp_path: Path, listening_port: int) -> None:
    granted = plugin(program="prober.py", isolation="L1", network=True)
    async with house(tmp_path, [granted]) as here:
        assert (await outcome(here, f"connect {listening_port}"))["value"] == "connected"


async def test_it_has_no_privileges_and_as_root_a_user_of_its_own(confined: House) -> None:
    who = (await outcome(confined, "who"))["value"]
    assert (who["CapEff"], who["CapPrm"], who["NoNewPrivs"]) == (["0" * 16], ["0" * 16], ["1"])
    if AS_ROOT:
        [uid] = set(who["Uid"])
        assert FIRST_UID < int(uid) <= LAST_UID
        assert (set(who["Gid"]), who["Groups"], who["CapBnd"]) == ({uid}, [], ["0" * 16])


async def test_each_plugin_has_its_own_user_and_cannot_read_anothers_home(bubblewrap: None, tmp_path: Path) -> None:
    if not AS_ROOT:
        not_run("users of their own, which need root")
    plugins = [plugin(name, program="prober.py", isolation="L1") for name in ("one", "two")]
    async with house(tmp_path, plugins) as here:
        uids = set()
        for name in ("one", "two"):
            news, _ = await here.run("who", name=name)
            uids |= set((await news.over()).results[-1].data["value"]["Uid"])
        assert len(uids) == 2
        assert {str(home.stat().st_uid) for home in (tmp_path / "runners" / "test").iterdir()} == uids


async def test_its_memory_files_and_descriptors_are_limited(confined: House) -> None:
    assert (await outcome(confined, "allocate 4096"))["error"] == "MemoryError"
    assert (await outcome(confined, "big-file 300"))["error"] == "OSError"
    assert (await outcome(confined, "open-files 300"))["error"] == "OSError"


async def test_its_processes_are_limited_and_all_end_with_it(confined: House) -> None:
    assert (await outcome(confined, "fork 200"))["value"] < 64
    await confined.gateway.stop()
    await eventually(lambda: marked(confined.mark) == [])


async def test_its_environment_is_exactly_what_it_is_at_l0(confined: House, tmp_path: Path) -> None:
    inside = (await outcome(confined, "environment"))["value"]
    await confined.gateway.stop()
    async with house(tmp_path, [plugin(program="prober.py")], mark=confined.mark) as here:
        assert (await outcome(here, "environment"))["value"] == inside


async def test_the_operator_can_ask_for_l1_and_the_status_says_so(bubblewrap: None, tmp_path: Path) -> None:
    async with house(tmp_path, [plugin(program="prober.py")], isolation="L1") as here:
        assert (await outcome(here, "read /etc/passwd")).get("error")
        [status] = await here.gateway.list_runners()
        assert status.isolation == "L1"


async def test_a_level_that_cannot_be_had_is_refused_and_never_lowered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "active_level", lambda: ActiveLevel("L0", "bwrap is not installed"))
    async with house(tmp_path, [plugin(program="prober.py", isolation="L1")]) as here:
        news, _ = await here.run("who")
        sentence = "test/nasty must run at isolation L1, which cannot be had: bwrap is not installed"
        assert news.losses == [("runner.start_failed", sentence)]
        [status] = await here.gateway.list_runners()
        assert (status.state, status.detail) == ("stopped", sentence)


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda program: None if program == "bwrap" else program)
    active_level.cache_clear()
    assert active_level() == ActiveLevel("L0", "bwrap is not installed")
    active_level.cache_clear()


def test_a_sandbox_that_is_installed_but_does_not_work_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    active_level.cache_clear()
    level, why = active_level()
    active_level.cache_clear()
    assert (level, why) == ("L0", "bubblewrap does not work here: bwrap: No permissions to create a new namespace")
