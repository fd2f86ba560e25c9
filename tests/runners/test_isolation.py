"""Isolation L1 really confines, with bubblewrap itself; and a level that cannot be had is refused."""

import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from needs import install, not_run
from paddock.confinement import sandbox
from paddock.confinement.homes import FIRST_UID, LAST_UID
from paddock.confinement.sandbox import OTHER_DIRECTORY, Sandbox, filtered
from paddock.confinement.trees import known, pinned
from paddock.ports import ANYWHERE, Placement
from paddock.runners.processes import isolation
from paddock.runners.processes.isolation import ActiveLevel, active_level
from runners.house import FIXTURES, House, News, eventually, house, marked, plugin

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
        sentence = "test/nasty must run at isolation L1, which cannot be had here"
        assert news.losses == [("runner.start_failed", sentence)]
        [status] = await here.gateway.list_runners()
        assert (status.state, status.detail) == ("stopped", f"{sentence}: bwrap is not installed")


async def refused(here: House, attempt: str = "who", placement: Placement = ANYWHERE) -> str:
    news, run_id = News(), str(uuid4())
    context = {"run_id": run_id, "input": {"text": attempt}}
    await here.gateway.start_run("plugin:test/nasty/default", run_id, context, news, placement)
    [(code, sentence)] = (await news.over()).losses
    assert code == "runner.start_failed"
    [status] = await here.gateway.list_runners()
    assert status.detail.startswith(sentence), "places on this machine are told to whoever runs the host alone"
    return status.detail


async def test_more_memory_than_the_operator_gives_is_refused(bubblewrap: None, tmp_path: Path) -> None:
    greedy = plugin(program="prober.py", isolation="L1", memory_mb=3000)
    async with house(tmp_path, [greedy], memory_mb=1000) as here:
        said = await refused(here)
    assert said == (
        "test/nasty asks for 3000 MiB of memory; this host gives a process at most 1000 (the setting plugin_memory_mb)"
    )


async def test_what_holds_the_hosts_data_is_shown_to_no_confined_process(bubblewrap: None, tmp_path: Path) -> None:
    data = tmp_path / "project" / ".paddock"
    data.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    around = plugin(program="prober.py", isolation="L1", directory=tmp_path / "project")
    async with house(data, [around], data=data) as here:
        said = "would be shown what holds this host's data"
        assert f"{said}: {tmp_path}/project; move it or the data ({data}) elsewhere" in await refused(here)
    async with house(data, [plugin(program="prober.py")], data=data) as here:
        for named in (tmp_path / "project", tmp_path, data):
            for placed in ({"directory": str(named)}, {"visible": (str(named),)}):
                said = await refused(here, placement=Placement(isolation="L1", **placed))
                assert f"would be shown what holds this host's data: {named}" in said
        (data / "files").mkdir()
        said = await refused(here, placement=Placement(isolation="L1", visible=(str(data / "files"),)))
        assert f"would be shown what is part of this host's data: {data}/files" in said
        said = await refused(here, placement=Placement(isolation="L1", visible=(str(tmp_path / "link"),)))
        assert "link is a link" in said


async def test_a_program_outside_of_its_directory_does_not_show_it_what_lies_beside(
    bubblewrap: None, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").touch(0o755)
    outside = plugin(program="prober.py", isolation="L1", command=(str(tmp_path / "secrets" / "key"),))
    async with house(tmp_path, [outside]) as here:
        assert "lies outside its directory and is not seen at isolation L1" in await refused(here)


def test_the_hosts_data_are_covered_where_something_around_them_is_shown(bubblewrap: None, tmp_path: Path) -> None:
    data = tmp_path / "around" / "data"
    (data / "homes").mkdir(parents=True)
    (data / "secret").write_text("of the host")
    shown = Sandbox(read_only=(known(tmp_path / "around"),), writable=(known(data / "homes"),), hidden=data)
    with filtered(shown.around(("sh", "-c", f"cd {data}; ls; echo x > homes/mine; echo x > new"))) as (argv, files):
        done = subprocess.run(argv, capture_output=True, pass_fds=files, check=False, text=True)
    assert done.stdout == "homes\n"
    assert "new: Read-only file system" in done.stderr
    assert (data / "homes" / "mine").exists()


def test_a_directory_that_was_exchanged_on_the_way_ends_the_process_before_its_first_line(
    bubblewrap: None, tmp_path: Path
) -> None:
    (tmp_path / "one").mkdir()
    meant = pinned(tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "away")
    (tmp_path / "one").mkdir()
    for shown in (Sandbox(read_only=(meant,)), Sandbox(writable=(meant,)), Sandbox(moved=((meant, Path("/other")),))):
        with filtered(shown.around(("echo", "begun"))) as (argv, files):
            done = subprocess.run(argv, capture_output=True, pass_fds=files, check=False, text=True)
        assert (done.returncode, done.stdout) == (OTHER_DIRECTORY, "")
        assert "exchanged for something else" in done.stderr


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
