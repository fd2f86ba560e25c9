"""Files, blobs and state that a runner process keeps with a real host are there after the host was killed."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from walk.hosts import HostProcess, text_of

PLUGINS = Path(__file__).parent / "keeping"
AGENTS = """
default_agent: keeper
agents:
  keeper: {runner: "plugin:test/keeper/default"}
"""


def asked(host: HostProcess, text: str, thread: str) -> tuple[dict[str, Any], list[str]]:
    """What the runner found, and the names of the files it announced."""
    events = host.events(host.post(text, thread=thread).json()["taskId"])
    files = [
        event.data["value"].get("name") for event in events if event.data.get("name") == "paddock.artifact.created"
    ]
    assert events[-1].type == "RUN_FINISHED", events[-1].data
    return json.loads(text_of(events)), files


def test_what_a_runner_keeps_outlives_the_host(new_host: Callable[..., HostProcess]) -> None:
    thread = str(uuid.uuid4())
    host = new_host(agents=AGENTS, plugins=(PLUGINS,)).start()
    found, files = asked(host, "keep", thread)
    assert (found["blob"], found["file"], found["type"]) == (True, True, "text/plain")
    assert files == ["lines.txt", "note.txt"]
    host.kill()
    host.start()
    found, files = asked(host, "look", thread)
    assert (found["blob"], found["file"], files) == (True, True, [])
    assert found["events"][0] == "message.received"
    assert "artifact.created" in found["events"]
    assert host.stop() == 0
