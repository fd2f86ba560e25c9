"""A whole host with one real harness before a scripted model, and the conversation a test holds there."""

import json
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import httpx
import yaml

from harness.clis import WORK, Real, processes_of
from images.pictures import picture
from loopback import free_port
from model_server import ModelServer, Says, model_server
from walk.hosts import Event, HostProcess, wait_until

MOODY = Path(__file__).parents[1] / "tools" / "servers" / "moody.py"
INSTRUCTIONS = "Always answer like a lighthouse keeper."
SKILL = "---\nname: tea-ceremony\ndescription: How we brew oolong here.\n---\nBoil water.\n"
DRAWING = '''
from pathlib import Path

def draw() -> bytes:
    """Draw a picture."""
    return Path(__file__).with_name("drawn.png").read_bytes()
'''
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
KEPT = """SELECT value FROM state WHERE key = ? AND scope_key IN
 (SELECT scope_key FROM state WHERE key = 'external.working_directory' AND CAST(value AS TEXT) LIKE ?)"""


@dataclass
class Stage:
    """A host with one real harness, the model it talks to, and one conversation."""

    real: Real
    host: HostProcess
    model: ModelServer
    thread: str

    def start(self, text: str, *answers: Says, agent: str = "free", thread: str | None = None) -> str:
        self.model.says(*answers)
        return self.host.post(text, thread=thread or self.thread, agent=agent).json()["taskId"]

    def shown(self, text: str, picture: bytes, *answers: Says) -> list[Event]:
        """Upload a picture, send it along with the words, and wait for the answer."""
        self.model.says(*answers)
        with self.host.client() as client:
            sent = client.post("/api/v1/agent/attachments", files={"file": ("tea.png", picture, "image/png")}).json()
            block = {"type": "binary", "mimeType": "image/png", "url": sent["url"]}
            said = {"id": "m1", "role": "user", "content": [{"type": "text", "text": text}, block]}
            body = {"threadId": self.thread, "runId": uuid.uuid4().hex, "messages": [said]}
            body |= {"forwardedProps": {"runtime_mode": "chat"}}
            answer = client.post("/api/v1/agent/runs", json=body, params={"agent": "free"})
        assert answer.status_code == 202, answer.text
        return self.host.events(answer.json()["taskId"])

    def said(self, text: str, *answers: Says, **more: Any) -> list[Event]:
        return self.host.events(self.start(text, *answers, **more))

    def cancelled(self, task: str) -> float:
        """Cancel; how long until nothing of it was left."""
        began = time.monotonic()
        with self.host.client() as client:
            client.post(f"/api/v1/agent/runs/{task}/cancel")
        assert self.host.finished(task)["status"] == "cancelled"
        wait_until(lambda: not processes_of(self.host.data), 30, "the end of its processes")
        return time.monotonic() - began

    def asked(self) -> str:
        """All that the model was told in the last request."""
        return json.dumps(self.model.last)

    def reach(self, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        return httpx.post(f"{self.host.url}/mcp/run", json=INITIALIZE, headers=headers, timeout=60).status_code

    def instructed(self) -> int:
        """How often the model was told the agent's instructions in the first request about this conversation."""
        asked = [json.dumps(body) for _, _, body in self.model.asked]
        return next(body for body in asked if "title generator" not in body).count(INSTRUCTIONS)

    def audited(self, action: str) -> list[str]:
        """The runs that did it."""
        rows = self._rows("SELECT run_id FROM audit WHERE action = ? AND result = 'allowed'", action)
        return [str(row[0]) for row in rows]

    def kept(self, key: str) -> Any:
        """A value of the agent's state in this conversation, known by where it works; None when there is none."""
        rows = self._rows(KEPT, key, f"%{self.thread}%")
        return json.loads(rows[0][0]) if rows else None

    def _rows(self, query: str, *about: str) -> list[Any]:
        store = apsw.Connection(str(self.host.data / "paddock.db"), flags=apsw.SQLITE_OPEN_READONLY)
        return list(store.execute(query, about))


@contextmanager
def a_further_server() -> Generator[dict[str, str]]:
    """An MCP server that adds, as an agent lists one."""
    port = free_port()
    with subprocess.Popen([sys.executable, MOODY, str(port)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: _takes_connections(port), 60, "the server")
            yield {"name": "moody", "url": f"http://127.0.0.1:{port}/mcp"}
        finally:
            process.kill()


def _takes_connections(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextmanager
def a_house(real: Real, **more: Any) -> Generator[tuple[Real, HostProcess, ModelServer]]:
    """Two agents: `free` may do everything, `strict` nothing that must be asked for."""
    real.path()
    place = WORK / uuid.uuid4().hex
    (place / "skills").mkdir(parents=True)
    (place / "skills" / "SKILL.md").write_text(SKILL)
    (place / "drawing.py").write_text(DRAWING)
    (place / "drawn.png").write_bytes(picture())
    with model_server() as model:
        skills = [{"name": "tea-ceremony", "path": str(place / "skills")}]
        shared = {"instructions": INSTRUCTIONS, "skills": skills, "tools": ["calculate", "draw"], **more}
        agents = {
            "free": {**real.agent(model.url, on_permission="allow"), **shared},
            "strict": {**real.agent(model.url, on_permission="deny"), **shared},
            "asking": {**real.agent(model.url), **shared},
        }
        named = {"default_agent": "free", "agents": agents, "tools": [str(place / "drawing.py")]}
        host = HostProcess(place / "data", agents=yaml.safe_dump(named))
        try:
            yield real, host.start(), model
        finally:
            host.stop()
            shutil.rmtree(place, ignore_errors=True)


def results(events: list[Event]) -> list[str]:
    return [str(event.data["content"]) for event in events if event.type == "TOOL_CALL_RESULT"]


def titles(body: Any) -> Says | None:
    """opencode lets a model name the conversation, beside the conversation."""
    return Says("A title") if "title generator" in json.dumps(body) else None
