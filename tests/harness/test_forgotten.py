"""A conversation that is deleted takes with it what its harness kept of it, and no other's."""

import uuid
from pathlib import Path

import yaml

from walk.hosts import HostProcess, wait_until

FAKE = Path(__file__).parent / "fakes" / "claude.py"


def sessions(host: HostProcess) -> set[str]:
    return {path.name for path in host.data.rglob("fake-*")}


def test_a_deleted_conversation_takes_the_session_of_its_harness_with_it(tmp_path: Path) -> None:
    agent = {"runner": "plugin:paddock/claude-code/default", "config": {"command": str(FAKE)}}
    host = HostProcess(tmp_path / "data", agents=yaml.safe_dump({"agents": {"fake": agent}})).start()
    try:
        thread, other = str(uuid.uuid4()), str(uuid.uuid4())
        host.events(host.post("hello", thread=other).json()["taskId"])
        before = sessions(host)
        host.events(host.post("hello", thread=thread).json()["taskId"])
        assert len(sessions(host)) == 2
        with host.client() as client:
            assert client.delete(f"/api/v1/agent/sessions/{thread}").status_code == 204
        wait_until(lambda: sessions(host) == before, 30, "the end of its session")
    finally:
        host.stop()
