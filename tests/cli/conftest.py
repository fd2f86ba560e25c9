import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import warm
from cli.terminals import Person
from needs import needs
from walk.hosts import NASTY, HostProcess

Command = Callable[..., "subprocess.CompletedProcess[str]"]

AGENTS = """\
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  slow: {runner: "plugin:test/slow/default"}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """A host for a whole file of tests: echo answers, slow behaves as it is told."""
    host = HostProcess(tmp_path_factory.mktemp("served") / "data", agents=AGENTS, plugins=(NASTY,)).start()
    yield host
    assert host.stop() == 0


@pytest.fixture
def clean_env(tmp_path: Path) -> dict[str, str]:
    """No setting from outside; what a command remembers stays in the test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "NO_COLOR": "1"}


@pytest.fixture
def paddock(clean_env: dict[str, str], tmp_path: Path) -> Command:
    """Run a command to its end, in an empty directory."""

    def run(*arguments: object, env: dict[str, str] | None = None, **more: Any) -> "subprocess.CompletedProcess[str]":
        more = {"cwd": tmp_path, **({} if "input" in more else {"stdin": subprocess.DEVNULL}), **more}
        return warm.run(arguments, env={**clean_env, **(env or {})}, **more)

    return run


@pytest.fixture
def person(clean_env: dict[str, str]) -> Iterator[Callable[..., Person]]:
    """Somebody who runs a command at a terminal."""
    at_terminals: list[Person] = []

    def run(*arguments: object, **env: str) -> Person:
        at_terminals.append(Person([str(one) for one in arguments], {**clean_env, **env}))
        return at_terminals[-1]

    yield run
    for one in at_terminals:
        one.close()


@pytest.fixture
def node() -> None:
    needs("node", "the runner in another language, from the command line")
