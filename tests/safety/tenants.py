"""Two workspaces on one real host, each with an administrator and one thing of every kind that has an id."""

import os
import uuid
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

import httpx

import warm
from walk.hosts import HostProcess, wait_until

AGENT = {"runner": "plugin:paddock/echo/default"}
AUTOMATION = {"name": "Morning", "prompt": "What is on?", "cron": "0 9 * * 1-5", "enabled": False}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
"""A picture of one point."""
ENDED = {"completed", "failed", "cancelled"}


@dataclass(frozen=True)
class Tenant:
    client: httpx.Client
    key: str
    ids: dict[str, str]
    """By the name of the path's parameter."""

    def seen(self) -> dict[str, Any]:
        """Everything of this workspace that others must be unable to change."""
        one = self.ids
        paths = [
            f"agent/sessions/{one['thread']}",
            f"agent/runs/{one['run']}",
            f"agents/{one['agent']}",
            f"knowledge/{one['kb']}",
            f"knowledge/{one['kb']}/documents",
            f"automations/{one['job']}",
            f"agent/attachments/{one['attachment']}",
            "api-keys",
        ]
        return {path: without_what_passes(got(self.client.get(f"/api/v1/{path}"))) for path in paths}


def without_what_passes(value: Any) -> Any:
    """Signed addresses, and times to come, differ at every look."""
    if isinstance(value, dict):
        passing = {"url", "expiresAt", "upcoming", "lastUsedAt"}
        return {name: without_what_passes(one) for name, one in value.items() if name not in passing}
    return [without_what_passes(one) for one in value] if isinstance(value, list) else value


def got(answer: httpx.Response) -> Any:
    assert answer.is_success, f"{answer.request.method} {answer.request.url} {answer.status_code} {answer.text}"
    return answer.json()


def key_of(host: HostProcess, workspace: str) -> str:
    create = ["keys", "create", "--user", f"{workspace}-ann", "--workspace", workspace, "--role", "admin"]
    made = warm.run([*create, "--data", host.data], env=os.environ)
    return next(word for word in made.stdout.split() if word.startswith("pdk_"))


def tenant(host: HostProcess, workspace: str, key: str) -> Tenant:
    client = host.client(headers={"Authorization": f"Bearer {key}"})
    thread = str(uuid.uuid4())
    ids = {"thread": thread, "run": _run(client, thread), "agent": f"{workspace}-helper", "item": "m1"}
    got(client.put(f"/api/v1/agents/{ids['agent']}", json=AGENT))
    ids["job"] = got(client.post("/api/v1/automations", json=AUTOMATION))["jobId"]
    ids["key"] = got(client.post("/api/v1/api-keys", json={"user": "spare"}))["keyId"]
    base = got(client.post("/api/v1/knowledge", json={"kbId": f"{workspace}-notes"}))
    ids["kb"] = base["kbId"]
    ids["attachment"] = _attachment(client)
    return Tenant(client, key, ids)


def _run(client: httpx.Client, thread: str) -> str:
    body = {
        "threadId": thread,
        "runId": uuid.uuid4().hex,
        "messages": [{"id": "m1", "role": "user", "content": "hello"}],
        "forwardedProps": {"runtime_mode": "chat"},
    }
    run = got(client.post("/api/v1/agent/runs", json=body))["taskId"]
    one = f"/api/v1/agent/runs/{run}"
    wait_until(lambda: got(client.get(one))["status"] in ENDED, 20, "the run's end")
    return run


def _attachment(client: httpx.Client) -> str:
    form = {"file": ("dot.png", b64decode(DOT), "image/png")}
    return got(client.post("/api/v1/agent/attachments", files=form))["attachmentId"]
