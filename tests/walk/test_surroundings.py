"""What a run finds around itself on a real host: its endpoint, its directory, and at L1 nothing else."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from needs import install, not_run
from paddock.runners.processes.isolation import active_level
from walk.hosts import HostProcess, text_of, wait_until

HARNESS = Path(__file__).parent / "harness"
AGENTS = """\
agents:
  open: {runner: plugin:test/insider/default}
  apart: {runner: plugin:test/insider/default, isolation: L1}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where all hosts have the directories of runs."""
    return tmp_path / "shared" / "default"


@pytest.fixture
def host(new_host: Callable[..., HostProcess], root: Path) -> HostProcess:
    env = {"PADDOCK_WORKING_DIRECTORIES": str(root.parent)}
    return new_host(agents=AGENTS, plugins=(HARNESS,), env=env).start()


def told(host: HostProcess, words: str, agent: str, thread: str | None = None) -> dict[str, Any]:
    accepted = host.post(words, agent=agent, thread=thread).json()
    events = host.events(accepted["taskId"])
    assert events[-1].type == "RUN_FINISHED", events[-1].data
    return json.loads(text_of(events))


def test_a_run_reaches_its_endpoint_and_its_directory_and_both_end_when_they_should(
    host: HostProcess, root: Path
) -> None:
    thread, other = str(uuid.uuid4()), str(uuid.uuid4())
    first = told(host, "knock token where write=a project", "open", thread)
    assert (first["knock"], first["endpoint"]) == (200, f"{host.at_work.url}/mcp/run")
    assert first["where"] == str(root / thread / "open")
    assert Path(first["project"][0]).read_text().startswith("# What this session is")
    token = first["token"][::-1]
    assert token not in Path(first["project"][1]).read_text()
    again = told(host, "knock token where write=b", "open", thread)
    assert again["token"] != first["token"]
    assert {"a", "b"} <= set(again["write"])
    assert "a" not in told(host, "write=c", "open", other)["write"]
    with host.client() as client:
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        assert client.post("/mcp/run", json={}, headers=headers).status_code == 401
        assert client.post("/mcp/run", json={}).status_code == 401, "the keyless rule does not count here"
        assert client.delete(f"/api/v1/agent/sessions/{thread}").status_code == 204
    assert not (root / thread).exists()
    assert (root / other).exists()
    seen = "".join(host.output) + "".join(path.read_text("latin-1") for path in host.data.glob("*.db*"))
    assert token not in seen


def test_a_conversation_that_is_deleted_leaves_no_directory_on_any_host(new_host: Callable[..., HostProcess]) -> None:
    host, thread = new_host(agents=AGENTS, plugins=(HARNESS,)).start(), str(uuid.uuid4())
    places = {Path(told(host, "where", "open", thread)["where"]).parent for _ in range(2)}
    assert len(places) == len(getattr(host, "pair", [host]))
    assert all(place.is_dir() and place.name == thread for place in places)
    with host.client() as client:
        assert client.delete(f"/api/v1/agent/sessions/{thread}").status_code == 204
    wait_until(lambda: not any(place.exists() for place in places), what="the end of every directory")


@pytest.fixture
def confined() -> None:
    if not install("bubblewrap", "bwrap"):
        not_run("a run at isolation L1, because bubblewrap cannot be installed here")
    if active_level().level != "L1":
        pytest.fail(active_level().why)


def test_at_l1_a_run_sees_of_its_plugins_home_what_is_of_its_conversation_and_no_other(
    host: HostProcess, confined: None
) -> None:
    for thread in (str(uuid.uuid4()), str(uuid.uuid4())):
        key, seen = told(host, "keep=session", "apart", thread)["keep"]
        assert seen == ["conversations", f"conversations/{key}", f"conversations/{key}/session"]
        assert told(host, "change=program", "apart", thread)["change"] == "OSError", "others would start it"
    key, seen = told(host, "keep=session", "open")["keep"]
    assert len([path for path in seen if path.endswith("/session")]) > 1, "at L0 nothing is hidden"


def test_at_l1_a_run_sees_its_own_directory_and_the_way_to_its_endpoint_and_nothing_else(
    host: HostProcess, root: Path, confined: None
) -> None:
    thread, other = str(uuid.uuid4()), str(uuid.uuid4())
    open_one = told(host, "write=theirs uid", "open", other)
    inside = told(
        host,
        f"knock knock_at={host.url}/mcp/run where write=mine uid project see={root / other} "
        f"list={root} see={host.data / 'paddock.db'}",
        "apart",
        thread,
    )
    assert (inside["knock"], inside["resource"]) == (200, "unix:/run/paddock/mcp.sock")
    assert inside["knock_at"] == "URLError", "there is no network: the host itself cannot be reached"
    assert inside["where"] == str(root / thread / "apart")
    assert inside["write"] == ["mine"]
    assert inside["list"] is None or inside["list"] == [thread]
    assert inside["see"] is False
    assert inside["uid"] != 0 or open_one["uid"] != 0
    assert (root / thread / "apart" / "mine").read_text() == "mine"
    assert told(host, "write=more", "apart", thread)["write"] == sorted(
        ["mine", "more", *{Path(name).parts[0] for name in inside["project"][2]}]
    )
    with host.client() as client:
        levels = {one["agentId"]: one["isolation"] for one in client.get("/api/v1/agents").json()["agents"]}
    assert levels == {"open": "L0", "apart": "L1"}
