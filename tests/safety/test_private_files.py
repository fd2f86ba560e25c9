"""A data directory is its owner's alone, whichever command makes it, whatever the umask is; an old one becomes so."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paddock.confinement.private import private_directory
from walk.hosts import HostProcess

UMASKS = [0o000, 0o022]
PROGRAM = """\
from paddock import Agent

agent = Agent("helper")
"""
OTHERS = 0o077


def seen_by_others(data: Path) -> list[str]:
    """The directory itself and the files in it that others may read; whatever lies deeper is out of their reach."""
    places = [data, *(path for path in data.iterdir() if path.is_file())]
    return [str(path.relative_to(data.parent)) for path in places if stat.S_IMODE(path.lstat().st_mode) & OTHERS]


def paddock(*words: object, umask: int = 0o022, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """A command as somebody with this umask gives it."""
    asked = [Path(sys.executable).with_name("paddock"), *map(str, words)]
    env = {**os.environ, "PADDOCK_DISCOVER_MODELS": "false", "NO_COLOR": "1"}
    return subprocess.run(
        asked, umask=umask, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(params=UMASKS, ids=lambda mask: f"umask {mask:03o}")
def umask(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    made = paddock("runner", "new", "mine", "--author", "me", cwd=tmp_path)
    assert made.returncode == 0, made.stdout + made.stderr
    return next(path.parent for path in tmp_path.rglob("*plugin.toml"))


COMMANDS: dict[str, list[str]] = {
    "keys create": ["keys", "create", "--user", "ann"],
    "keys list": ["keys", "list"],
    "keys rotate-signing": ["keys", "rotate-signing"],
    "admin verify": ["admin", "verify"],
    "doctor": ["doctor"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=list(COMMANDS))
def test_whatever_a_command_makes_others_cannot_read(words: list[str], tmp_path: Path, umask: int) -> None:
    data = tmp_path / "data"
    paddock(*words, "--data", data, umask=umask)
    assert not data.exists() or seen_by_others(data) == []


def test_what_installing_a_plugin_makes_others_cannot_read(tmp_path: Path, plugin: Path, umask: int) -> None:
    data = tmp_path / "data"
    done = paddock("runner", "install", plugin, "--yes", "--data", data, umask=umask)
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen_by_others(data) == []
    assert seen_by_others(data / "plugins") == []


def test_what_run_makes_others_cannot_read(tmp_path: Path, umask: int) -> None:
    (tmp_path / "agent.py").write_text(PROGRAM)
    done = paddock("run", "agent.py", "hello", umask=umask, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [data] = [path for path in tmp_path.iterdir() if path.is_dir()]
    assert seen_by_others(data) == []


def test_a_backup_and_what_is_restored_from_it_others_cannot_read(tmp_path: Path, umask: int) -> None:
    data, backup, again = tmp_path / "data", tmp_path / "backup.tar", tmp_path / "again"
    paddock("keys", "create", "--user", "ann", "--data", data, umask=umask)
    done = paddock("admin", "backup", backup, "--data", data, umask=umask)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not stat.S_IMODE(backup.stat().st_mode) & OTHERS
    done = paddock("admin", "restore", backup, "--data", again, umask=umask)
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen_by_others(again) == []


def test_an_old_data_directory_is_tightened_with_a_line_that_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    host = HostProcess(data).start()
    host.stop()
    data.chmod(0o755)
    for name in ("paddock.db", "host-id"):
        (data / name).touch()
        (data / name).chmod(0o644)
    host = HostProcess(data).start()
    assert host.says("could be read by others (0755), and is its owner's alone from now on")
    assert seen_by_others(data) == []
    host.stop()
    data.chmod(0o750)
    done = paddock("keys", "create", "--user", "ann", "--data", data)
    assert "could be read by others (0750)" in done.stderr
    assert "read by others" not in done.stdout
    assert seen_by_others(data) == []


def test_a_directory_that_is_somebody_elses_matter_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch(mode=0o644)
    tmp_path.chmod(0o755)
    private_directory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    private_directory(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o1777
