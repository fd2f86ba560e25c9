"""JSON that is nested without end is a mistake of who sends it, and keeps no host from starting."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from walk.hosts import HostProcess

JSON = {"Content-Type": "application/json"}
BODIES = {
    "agent": ("PUT", "/api/v1/agents/deep", '{"runner": "plugin:paddock/echo/default", "config": {"x": %s}}'),
    "automation": ("POST", "/api/v1/automations", '{"name": "n", "prompt": "p", "cron": "0 9 * * *", "agentId": %s}'),
    "person": ("PATCH", "/api/v1/users/me", '{"displayName": %s}'),
    "document": ("POST", "/api/v1/knowledge/notes/documents", '{"name": "a.txt", "text": "a", "metadata": {"x": %s}}'),
    "card": ("POST", "/api/v1/agent/ui-actions/a.b", '{"values": {"x": %s}}'),
    "conversation": ("POST", "/api/v1/agent/sessions", '{"threadId": %s}'),
}


def nested(depth: int, opens: str) -> str:
    closes = "]" if opens == "[" else "}"
    return opens * depth + ("" if opens == "[" else "1") + closes * depth


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_is_nested_without_end_is_refused(host: HostProcess, name: str) -> None:
    method, path, body = BODIES[name]
    with host.client() as client:
        for depth in (80, 250, 300, 900, 2000):
            for opens in ("[", '{"a":'):
                answer = client.request(method, path, content=body % nested(depth, opens), headers=JSON)
                assert answer.status_code in {404, 422}, (depth, opens, answer.text[:200])


def test_a_stored_agent_that_cannot_be_read_keeps_no_host_from_starting(tmp_path: Path) -> None:
    host = HostProcess(tmp_path / "data").start()
    with host.client() as client:
        for name in ("deep", "well"):
            client.put(f"/api/v1/agents/{name}", json={"runner": "plugin:paddock/echo/default", "config": {}})
    host.stop()
    body = BODIES["agent"][2] % nested(600, "[")
    with closing(sqlite3.connect(host.data / "paddock.db")) as database, database:
        database.execute("update agents set body = ? where agent_id = 'deep'", (body.encode(),))
    host.start()
    try:
        assert host.says("a stored agent cannot be used", "deep")
        assert host.finished(host.post("hello", agent="well").json()["taskId"])["status"] == "completed"
    finally:
        host.stop()
