"""`paddock harness doctor`: what is installed, whether we know it, and how to get the rest."""

import json
from pathlib import Path

import pytest

from cli.conftest import Command
from paddock.cli.commands.harness import HARNESSES, judge

PINS = Path(__file__).parents[2] / "harnesses"


def a_program(directory: Path, name: str, says: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && {says}\n')
    (directory / name).chmod(0o755)


def test_what_is_missing_comes_with_the_command_that_installs_it(paddock: Command, tmp_path: Path) -> None:
    a_program(tmp_path / "bin", "claude", "echo '2.1.330 (Claude Code)'")
    a_program(tmp_path / "bin", "codex", "echo 'codex-cli 0.1.2'")
    seen = paddock("harness", "doctor", env={"PATH": str(tmp_path / "bin")})
    assert seen.returncode == 0, seen.stderr
    assert "2.1.330 at" in seen.stdout
    assert "within the tested range, 2.1.x" in seen.stdout
    assert "older than the tested range, 0.166.x" in seen.stdout
    assert (
        "npm install --global @moonshot-ai/kimi-code@2.1.0  (it needs Node 22.19 or newer; here is none)" in seen.stdout
    )


@pytest.mark.parametrize("folder", ["harnesses/node_modules/.bin", "harnesses/acp/node_modules/.bin"])
def test_one_that_make_installed_is_found_and_how_runs_find_it_is_said(
    paddock: Command, tmp_path: Path, folder: str
) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    a_program(place, "kimi", "env node --version")  # with the Node beside it, as a host with that PATH would
    a_program(place, "node", "echo 2.1.0")
    seen = paddock("harness", "doctor", "kimi-code", env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert f"note  kimi-code    2.1.0 at {place}/kimi" in seen.stdout
    assert "the tested version, and not on the PATH, where a run looks for it" in seen.stdout
    assert f'PATH="{place}:$PATH" paddock serve' in seen.stdout
    assert seen.returncode == 0


def test_one_that_is_asked_for_and_absent_or_broken_is_a_failure(paddock: Command, tmp_path: Path) -> None:
    a_program(tmp_path / "bin", "codex", "exit 3")
    path = {"PATH": str(tmp_path / "bin")}
    assert paddock("harness", "doctor", "claude-code", env=path).returncode == 1
    assert "does not tell its version" in paddock("harness", "doctor", "codex", env=path).stdout
    strange = paddock("harness", "doctor", "emacs", env=path)
    assert "known are claude-code, codex" in strange.stderr


@pytest.mark.parametrize("name", HARNESSES)
def test_the_tested_version_is_the_one_that_is_pinned(name: str) -> None:
    known = HARNESSES[name]
    pins = [json.loads((PINS / part / "package.json").read_text())["dependencies"] for part in (".", "acp")]
    assert known.tested in [part.get(known.package) for part in pins]
    assert judge(known.tested, known) == ("ok", "the tested version")
