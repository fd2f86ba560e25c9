"""How hints name the program: so that they can be typed as they are."""

import sys
from pathlib import Path

import pytest

from paddock.cli.output import command, program


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in a directory that PATH does not name."""
    script = tmp_path / ".venv" / "bin" / "paddock"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin")
    return script


def test_a_program_called_by_its_path_is_named_by_it(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/paddock", "serve"])
    assert program() == ".venv/bin/paddock"
    assert command("chat", data=Path("my data")) == ".venv/bin/paddock chat --data 'my data'"


def test_a_program_found_by_its_name_is_named_so(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert program() == "paddock"


def test_another_program_of_that_name_on_the_path_is_not_taken_for_this_one(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "bin" / "paddock"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setattr(sys, "argv", [str(installed)])
    assert program() == str(installed)


def test_without_a_path_it_is_just_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for called in ("paddock", "", "/usr/lib/python/pytest/__main__.py"):
        monkeypatch.setattr(sys, "argv", [called])
        assert program() == "paddock"
