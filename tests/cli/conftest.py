from collections.abc import Callable, Iterator

import pytest

from cli.terminals import Person
from needs import needs
from walk.hosts import NASTY, HostProcess

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
