"""A host on which one workspace has something of every kind, and every word of it carries a mark that can be found.

Private marks are in what belongs to one person, shared ones in what belongs to the workspace.
"""

import json
import time
import uuid
from base64 import b64decode
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from loopback import QuietHandler
from paddock.rules.access.signatures import webhook_headers
from safety.tenants import DOT, ENDED, Tenant, got, key_of
from walk.hosts import HostProcess, wait_until

PRIVATE = f"private{uuid.uuid4().hex}"
SHARED = f"shared{uuid.uuid4().hex}"
SECRET = "sixteen bytes and more"
OWNER = {"workspace": "acme", "user": "acme-ann"}
AGENTS = """\
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  asker: {runner: "plugin:test/asker/default", platform_actions: [message.edit]}
  secretary: {runner: "plugin:paddock/local-agent/default", config: {model: demo}, tools: [calendar_write]}
"""
CONFIG = """\
[platforms.chat]
secret = "env:CHAT_SECRET"
webhook = "%s"
agent = "asker"
actions = ["message.edit"]
workspace = "acme"
user = "acme-ann"
"""
PLUGINS = Path(__file__).parent.parent / "browser" / "plugins"
LIFTED = {"PADDOCK_CALLS_PER_SECOND": "0", "CHAT_SECRET": SECRET}


@dataclass(frozen=True)
class Furnished:
    host: HostProcess
    owner: Tenant

    def person(self, user: str, workspace: str, role: str = "user") -> httpx.Client:
        """Open a client of somebody else's."""
        if workspace == OWNER["workspace"]:
            key = got(self.owner.client.post("/api/v1/api-keys", json={"user": user, "role": role}))["key"]
        else:
            key = key_of(self.host, workspace)
        return self.host.client(headers={"Authorization": f"Bearer {key}"})


class _Gone(QuietHandler):
    """A chat platform that takes nothing any more, so that deliveries stay on record as dead."""

    def do_POST(self) -> None:
        self.send_response(410)
        self.end_headers()


@contextmanager
def a_furnished_host(place: Path) -> Generator[Furnished]:
    """Start a host and give its first workspace one of everything that has an id."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Gone) as platform:
        Thread(target=platform.serve_forever, daemon=True).start()
        config = place / "paddock.toml"
        config.write_text(CONFIG % f"http://127.0.0.1:{platform.server_port}/hook")
        env = LIFTED | {"PADDOCK_CONFIG": str(config)}
        host = HostProcess(place / "data", agents=AGENTS, plugins=(PLUGINS,), env=env).start()
        try:
            yield Furnished(host, _furnish(host))
            assert host.process is not None
            assert host.process.poll() is None, "the host went down"
        finally:
            host.stop()
            platform.shutdown()


def _furnish(host: HostProcess) -> Tenant:
    key = key_of(host, OWNER["workspace"])
    client = host.client(headers={"Authorization": f"Bearer {key}"})
    thread = str(uuid.uuid4())
    ids = {**OWNER, "thread": thread, "agent": "helper", "author": "test", "name": "index.js"}
    got(client.put("/api/v1/agents/helper", json=_agent()))
    ids["run"] = _ask(client, thread, f"hello {PRIVATE}")
    day = got(client.get("/api/v1/agent/history", params={"threadId": thread}))
    ids["item"] = day["messages"][-1]["id"]
    got(client.patch(f"/api/v1/agent/sessions/{thread}", json={"title": f"about {PRIVATE}"}))
    form = {"file": (f"{PRIVATE}.png", b64decode(DOT), "image/png")}
    ids["attachment"] = got(client.post("/api/v1/agent/attachments", files=form))["attachmentId"]
    job = {"name": f"Morning {PRIVATE}", "prompt": PRIVATE, "cron": "0 9 * * 1-5", "enabled": False}
    ids["job"] = got(client.post("/api/v1/automations", json=job))["jobId"]
    ids["key"] = got(client.post("/api/v1/api-keys", json={"user": f"spare-{SHARED}"}))["keyId"]
    ids |= _knowledge(client)
    ids["action"] = _card(client)
    ids |= _platform(host, client)
    _calendar(client)
    return Tenant(client, key, ids)


def _agent() -> dict[str, Any]:
    return {"runner": "plugin:paddock/echo/default", "label": SHARED, "config": {"instructions": SHARED}}


def _ask(client: httpx.Client, thread: str, text: str, agent: str = "echo") -> str:
    body = {
        "threadId": thread,
        "runId": uuid.uuid4().hex,
        "messages": [{"id": "m1", "role": "user", "content": text}],
        "forwardedProps": {"runtime_mode": "chat"},
    }
    run = got(client.post("/api/v1/agent/runs", params={"agent": agent}, json=body))["taskId"]
    wait_until(lambda: got(client.get(f"/api/v1/agent/runs/{run}"))["status"] in ENDED, 60, "the run's end")
    return run


def _knowledge(client: httpx.Client) -> dict[str, str]:
    kb = got(client.post("/api/v1/knowledge", json={"kbId": "notes", "description": SHARED}))["kbId"]
    document = {"name": f"{SHARED}.md", "text": f"# Leave\n\nThirty days, says {SHARED}."}
    job = got(client.post(f"/api/v1/knowledge/{kb}/documents", json=document))["jobId"]

    def documents() -> list[dict[str, Any]]:
        return got(client.get(f"/api/v1/knowledge/{kb}/documents"))["documents"]

    wait_until(documents, 60, "the document being read")
    return {"kb": kb, "document": documents()[0]["documentId"], "reading": job}


def _card(client: httpx.Client) -> str:
    """Have an agent show a card, and find the name of one of its buttons."""
    run = _ask(client, str(uuid.uuid4()), "card", agent="asker")
    with client.stream("GET", f"/api/v1/agent/runs/{run}/events") as said:
        shown = [line for line in said.iter_lines() if '"ref":' in line]
    return next(_refs(json.loads(shown[0].removeprefix("data: "))))


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("ref"), str):
            yield value["ref"]
        for one in value.values():
            yield from _refs(one)
    elif isinstance(value, list):
        for one in value:
            yield from _refs(one)


def _platform(host: HostProcess, client: httpx.Client) -> dict[str, str]:
    """A message of a chat platform: it leads to a question to its user, and to a delivery that nobody takes."""
    event = {"event_id": uuid.uuid4().hex, "event_type": "message.received", "conversation_id": PRIVATE}
    body = json.dumps({**event, "actor": {"actor_id": "u-42"}, "input": {"text": "permission"}}).encode()
    signed = webhook_headers(SECRET.encode(), event["event_id"], time.time(), body)
    got(host.client().post("/api/v1/events?platform=chat", content=body, headers=signed))

    def listed(what: str) -> list[dict[str, Any]]:
        return got(client.get(f"/api/v1/{what}"))[what]

    wait_until(lambda: listed("approvals") and listed("deliveries"), 60, "the platform's question")
    return {"approval": listed("approvals")[0]["approvalId"], "delivery": listed("deliveries")[0]["deliveryId"]}


def _calendar(client: httpx.Client) -> None:
    call = {"action": "create", "title": PRIVATE, "event_timezone": "UTC"}
    call |= {"start": "2026-11-20T09:00", "end": "2026-11-20T10:00"}
    _ask(client, str(uuid.uuid4()), f"call calendar_write {json.dumps(call)}", agent="secretary")
    assert PRIVATE in client.get("/api/v1/calendar.ics").text
