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


def test_directories_made_on_the_way_are_nobody_elses_to_write_in(tmp_path: Path) -> None:
    """Who may write above a data directory puts another one in its place."""
    plugin = paddock("runner", "new", "mine", "--author", "me", cwd=tmp_path)
    assert plugin.returncode == 0
    asked = [
        (["keys", "create", "--user", "ann", "--data", "a/b/data"], "a/b"),
        (["runner", "install", "mine", "--yes", "--data", "c/d/data"], "c/d"),
        (["admin", "backup", "e/f/kept.tar", "--data", "a/b/data"], "e/f"),
        (["admin", "restore", "e/f/kept.tar", "--data", "g/h/data"], "g/h"),
    ]
    for words, above in asked:
        done = paddock(*words, umask=0, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        made = [tmp_path / above, (tmp_path / above).parent]
        assert [str(path) for path in made if stat.S_IMODE(path.lstat().st_mode) & 0o022] == [], words


def test_a_backup_that_is_a_directory_others_cannot_read_wherever_its_files_are_taken(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    paddock("keys", "create", "--user", "ann", "--data", data, umask=0)
    done = paddock("admin", "backup", backup, "--data", data, umask=0)
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen_by_others(backup) == []


ONLY_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root lays out what belongs to another user")
SOMEBODY = 12_345
COMES_FIRST = """\
from pathlib import Path

Path({proof!r}).touch()


def f() -> str:
    "Said by somebody else."
    return ""
"""


@pytest.fixture
def laid_out(tmp_path: Path) -> Path:
    """A directory where everybody may write, and in which somebody was before us."""
    here = tmp_path / "everybodys"
    planted = here / ".paddock"
    planted.mkdir(parents=True)
    (here / "first.py").write_text(COMES_FIRST.format(proof=str(here / "ran")))
    (planted / "paddock.toml").write_text(f'tools = ["{here / "first.py"}"]\nport = 0\n')
    (planted / "serve.json").write_text('{"url": "http://127.0.0.1:9", "pid": 1}')
    (planted / "local-token").write_text("pdl_planted\n")
    for path in (planted, *planted.iterdir()):
        os.chown(path, SOMEBODY, SOMEBODY)
    return here


USING = {
    "serve": ["serve"],
    "doctor": ["doctor"],
    "keys create": ["keys", "create", "--user", "ann"],
    "runner list": ["runner", "list"],
    "admin verify": ["admin", "verify"],
    "agents list": ["agents", "list"],
    "chat": ["chat", "a word meant for our own host"],
}


@ONLY_ROOT
@pytest.mark.parametrize("words", USING.values(), ids=list(USING))
def test_a_data_directory_that_somebody_else_laid_here_is_not_used(words: list[str], laid_out: Path) -> None:
    done = paddock(*words, cwd=laid_out)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "belongs to another user" in done.stderr
    assert sorted(path.name for path in laid_out.rglob("*")) == [
        ".paddock", "first.py", "local-token", "paddock.toml", "serve.json",
    ]  # fmt: skip


@ONLY_ROOT
def test_settings_that_somebody_else_laid_into_ours_are_not_used(laid_out: Path) -> None:
    os.chown(laid_out / ".paddock", 0, 0)
    assert "paddock.toml belongs to another user" in paddock("serve", cwd=laid_out).stderr


@ONLY_ROOT
def test_a_data_directory_of_another_user_is_used_when_it_is_named(laid_out: Path) -> None:
    """Volumes and service accounts: who names it knows whose it is."""
    done = paddock("runner", "list", "--data", ".paddock", cwd=laid_out)
    assert done.returncode == 0, done.stdout + done.stderr
