"""The suite's own runner: in CI a starved test gets a second try alone, elsewhere it fails like a wrong one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import at_most
from twice import MANY, without_group

RUNNER = Path(__file__).with_name("twice.py")
STARVED = """
import pathlib
import pytest

@pytest.mark.xdist_group("slow")
@pytest.mark.parametrize("who", ["a@b"])
def test_starved(who):
    seen = pathlib.Path("seen")
    first = not seen.exists()
    seen.touch()
    assert not first
"""
WRONG = "def test_wrong():\n    assert False\n"


def run(place: Path, source: str, *, ci: str = "true") -> subprocess.CompletedProcess[str]:
    (place / "test_it.py").write_text(source)
    command = [sys.executable, str(RUNNER), "-p", "xdist", "-n", "1", "--dist", "loadgroup"]
    env = os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to load them all takes longer than the tests
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=at_most(20), check=False)


def test_outside_ci_an_unsteady_test_fails_and_is_not_run_again(tmp_path: Path) -> None:
    said = run(tmp_path, STARVED, ci="")
    assert said.returncode == 1, said.stdout
    assert "once more" not in said.stdout


def test_in_ci_what_passes_alone_is_green_and_named_as_unsteady(tmp_path: Path) -> None:
    said = run(tmp_path, STARVED)
    assert said.returncode == 0, said.stdout
    assert "UNSTEADY, passed alone only: test_it.py::test_starved[a@b]" in said.stdout


def test_what_fails_alone_fails(tmp_path: Path) -> None:
    said = run(tmp_path, STARVED + WRONG)
    assert said.returncode == 1
    assert "UNSTEADY" not in said.stdout


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    said = run(tmp_path, "".join(WRONG.replace("wrong", f"wrong_{n}") for n in range(MANY + 1)))
    assert said.returncode == 1
    assert "once more" not in said.stdout


@pytest.mark.parametrize(("name", "plain"), [("a::b@group", "a::b"), ("a::b[x@y]", "a::b[x@y]"), ("a::b", "a::b")])
def test_a_group_is_no_part_of_a_name(name: str, plain: str) -> None:
    assert without_group(name) == plain
