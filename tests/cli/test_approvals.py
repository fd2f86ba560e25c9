"""`paddock approvals` and `paddock explain` beside a real host."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Command
from walk.hosts import HostProcess


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    host = HostProcess(tmp_path / "data").start()
    yield host
    host.stop()


def test_a_run_is_explained_in_words_and_as_json(paddock: Command, host: HostProcess) -> None:
    said = paddock("chat", "--data", host.data, "--agent", "echo", "--json", "hi")
    run = next(event["runId"] for line in said.stdout.splitlines() if "runId" in (event := json.loads(line)))
    told = paddock("explain", "--data", host.data, run, "history.page")
    assert told.returncode == 0
    assert told.stdout.splitlines()[0] == "history.page: not granted, refused now"
    assert "The runner's manifest does not ask for it." in told.stdout
    story = json.loads(paddock("explain", "--data", host.data, "--json", run, "history.page").stdout)
    assert (story["granted"], story["layer"]) == (False, "manifest")
    slip = paddock("explain", "--data", host.data, run, "history.pag")
    assert (slip.returncode, slip.stdout) == (1, "")
    assert "did you mean history.page?" in slip.stderr
    assert "there is no such run" in paddock("explain", "--data", host.data, "nobody", "history.page").stderr


def test_nothing_waits_and_what_is_not_there_cannot_be_decided(paddock: Command, host: HostProcess) -> None:
    listed = paddock("approvals", "list", "--data", host.data)
    assert (listed.returncode, listed.stdout) == (0, "Nothing waits for approval.\n")
    assert json.loads(paddock("approvals", "list", "--data", host.data, "--json").stdout) == []
    for decision in ("grant", "deny"):
        refused = paddock("approvals", decision, "--data", host.data, "ap_none")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "there is no such approval" in refused.stderr
