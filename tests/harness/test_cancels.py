"""Fifty cancels through the whole host: what hears them and what does not is gone in time, with all it started."""

import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness.clis import processes_of
from patience import at_most
from walk.hosts import HostProcess, wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
FAKE = Path(__file__).parent / "fakes" / "claude.py"
CANCELS = 25


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    agent = {"runner": "plugin:paddock/claude-code/default", "config": {"command": str(FAKE)}}
    made = HostProcess(tmp_path / "data", agents=yaml.safe_dump({"agents": {"fake": agent}}))
    yield made.start()
    made.stop()


def cancelled(host: HostProcess, text: str) -> float:
    """Seconds from the cancel until the run had its end on record and nothing of it was left."""
    task = host.post(text, thread=str(uuid.uuid4())).json()["taskId"]
    host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    assert processes_of(host.data)
    began = time.monotonic()
    with host.client() as client:
        client.post(f"/api/v1/agent/runs/{task}/cancel")
    wait_until(lambda: not processes_of(host.data), 30, "the end of its processes")
    took = time.monotonic() - began
    assert host.finished(task)["status"] == "cancelled"
    return took


def test_fifty_cancels_leave_no_process(host: HostProcess) -> None:
    assert os.access(FAKE, os.X_OK)
    heard = [cancelled(host, "hang") for _ in range(CANCELS)]
    deaf = [cancelled(host, "deaf") for _ in range(CANCELS)]
    assert max(heard) < at_most(1)
    assert max(deaf) < at_most(5)
    assert processes_of(host.data) == []
