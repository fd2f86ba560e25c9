"""What is particular to the real Codex: settings in its directory that it would obey."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clis import REAL, Real
from harness.stages import Stage, a_house
from model_server import ModelServer, Says
from walk.hosts import HostProcess

pytestmark = pytest.mark.xdist_group("real-harnesses")
SETTINGS = '[mcp_servers.other]\ncommand = "touch"\nargs = ["{place}/obeyed"]'


@pytest.fixture(scope="module")
def house() -> Iterator[tuple[Real, HostProcess, ModelServer]]:
    with a_house(REAL["codex"]) as made:
        yield made


@pytest.fixture
def stage(house: tuple[Real, HostProcess, ModelServer]) -> Stage:
    real, host, model = house
    return Stage(real, host, model.afresh(), str(uuid.uuid4()))


def patching(path: str, content: str) -> tuple[str, str]:
    lines = "\n".join(f"+{line}" for line in content.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{lines}\n*** End Patch"
    return "exec_command", json.dumps({"cmd": f"apply_patch <<'EOF'\n{patch}\nEOF"})


@pytest.mark.parametrize("name", [".codex/config.toml", ".git/config"])
def test_it_patches_no_settings_that_it_would_obey_without_asking(stage: Stage, name: str) -> None:
    """The agent may do everything it asks for."""
    stage.said("hello", Says("Hello."))
    place = Path(stage.kept("external.working_directory"))
    for path, written in ((name, False), ("notes.txt", True)):
        call = patching(path, SETTINGS.format(place=place))
        stage.said("write it", Says("", calls=(call,)), Says("Done."))
        assert (place / path).exists() == written
    stage.said("hello", Says("Hello."))
    assert not (place / "obeyed").exists()
