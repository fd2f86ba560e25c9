"""Data that an earlier version wrote, and what that version showed of it: for tests that a newer one loses nothing.

`make_upgrade_fixtures.py` writes both; `test_upgrade.py` opens the data with the code of today and compares.
"""

import asyncio
import hmac
import json
import re
import tarfile
import time
import uuid
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
PLUGINS = HERE / "upgrade"
DATABASE = "upgraded"
CHAT_SECRET = "a-secret-of-the-chat-platform"
AGENTS = """
default_agent: archivist
agents:
  archivist: {runner: "plugin:test/archivist/default", storage: [plugin, workspace], platform_actions: [message.edit]}
  helper: {runner: "plugin:paddock/local-agent/default", config: {model: demo}, tools: all}
"""
SETTINGS = """
[platforms.chat]
secret = "env:CHAT_SECRET"
webhook = "http://127.0.0.1:9/answers"
actions = ["message.edit"]
workspace = "acme"
user = "chat"
"""
FOR_EVER = {f"PADDOCK_{kind}_DAYS": "0" for kind in ("ARTIFACT", "CONVERSATION", "CALL", "AUDIT")}
ENVIRONMENT = {"CHAT_SECRET": CHAT_SECRET, "PADDOCK_CALLS_PER_SECOND": "0", "PADDOCK_DISCOVER_MODELS": "false"}
API = "/api/v1"
PASSING = frozenset(
    {"url", "upcoming", "nextAt", "lastUsedAt", "attempts", "dueAt", "detail", "pid", "updatedAt", "headers"}
)
"""Fields that differ at every look, or because time goes on."""
ERASED = re.compile(rb"\x00erased:.{32}", re.DOTALL)
"""Schema 24 told it in the story of a run, in front of what is left of erased words."""
LATER = "later"
CAREFULLY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""How an archive is unpacked; the first versions of Python 3.11 do not know it."""
NUMBERS = frozenset({"seq", "messageId"})
"""Where something stands in its log: another host may have noted more before what came later."""
GROWING = frozenset({"cursor", "inflightCursor"})
"""Where a log ends, and where its turns begin that have not ended."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?")
"""A time, or a day: a conversation that was answered after the upgrade shows the day of the answer."""


@dataclass
class Talk:
    """Speaks to a host as people of two workspaces and as a platform; `shift` is how far the host's clock is off."""

    url: str
    keys: Mapping[str, str]
    shift: float = 0.0
    clients: dict[str, httpx.Client] = field(default_factory=dict)

    def to(self, who: str) -> httpx.Client:
        if who not in self.clients:
            headers = {"Authorization": f"Bearer {self.keys[who]}"}
            self.clients[who] = httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)
        return self.clients[who]

    def get(self, who: str, path: str) -> Any:
        return got(self.to(who).get(f"{API}/{path}"))

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    # --- saying something

    def say(self, who: str, text: str, thread: str, *, run: str | None = None, agent: str | None = None) -> str:
        """Accept a message by the native door; return the id of its run."""
        answer = self.to(who).post(
            f"{API}/agent/runs", json=native_body(text, thread, run or uuid.uuid4().hex), params=of_agent(agent)
        )
        return got(answer)["taskId"]

    def say_by_ag_ui(self, who: str, text: str, thread: str, *, run: str) -> str:
        """Say something by the AG-UI door and read its stream to the end."""
        body = {
            "threadId": thread,
            "runId": run,
            "state": {},
            "messages": [{"id": f"of-{run}", "role": "user", "content": text}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
        answer = self.to(who).post(f"{API}/agent/ag-ui", json=body)
        assert answer.status_code == 200, answer.text
        return answer.text

    def event(self, text: str, room: str, event_id: str, *, sub_thread: str | None = None) -> dict[str, Any]:
        """Hand in a message of the platform."""
        event: dict[str, Any] = {
            "event_id": event_id,
            "event_type": "message.received",
            "conversation_id": room,
            "actor": {"actor_id": "u-42", "actor_name": "Una"},
            "input": {"text": text},
        }
        if sub_thread is not None:
            event["thread_id"] = sub_thread
        body, stamp = json.dumps(event).encode(), int(time.time() + self.shift)
        digest = hmac.digest(CHAT_SECRET.encode(), b"%b.%d.%b" % (event_id.encode(), stamp, body), sha256)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(stamp),
            "webhook-signature": f"v1,{b64encode(digest).decode()}",
        }
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as client:
            return got(client.post(f"{API}/events", params={"platform": "chat"}, content=body, headers=headers))

    def ended(self, who: str, run: str, seconds: float = 30.0) -> dict[str, Any]:
        """Wait for the end of a run."""
        end = time.monotonic() + seconds
        while (seen := self.get(who, f"agent/runs/{run}"))["status"] not in {"completed", "failed", "cancelled"}:
            assert time.monotonic() < end, f"the run did not end: {seen}"
            time.sleep(0.02)
        return seen

    def said(self, who: str, run: str) -> str:
        """Return the words a run said."""
        stream = self.to(who).get(f"{API}/agent/runs/{run}/events").text
        events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
        return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def native_body(text: str, thread: str, run: str) -> dict[str, Any]:
    return {
        "threadId": thread,
        "runId": run,
        "messages": [{"id": f"of-{run}", "role": "user", "content": text}],
        "forwardedProps": {"runtime_mode": "chat"},
    }


def of_agent(agent: str | None) -> dict[str, str]:
    return {} if agent is None else {"agent": agent}


def got(answer: httpx.Response) -> Any:
    assert answer.is_success, f"{answer.request.method} {answer.request.url} {answer.status_code} {answer.text}"
    return json.loads(ERASED.sub(b"", answer.content)) if answer.content else None


# --- the picture ------------------------------------------------------------------------------------------------------


def shown(talk: Talk, noted: Mapping[str, Any]) -> dict[str, Any]:
    """Everything the host shows of the data over its API, by who asks and what for."""
    before, seen = noted["moment"], dict[str, Any]()
    for who in talk.keys:
        seen.update({f"{who} {path}": talk.get(who, path) for path in paths_for(talk, who, noted)})
        for run in talk.get(who, "agent/runs?limit=200")["runs"]:
            seen[f"{who} events of {run['taskId']}"] = _stream(talk, who, run["taskId"])
    for attachment in noted["attachments"]:
        about = talk.get("ann", f"agent/attachments/{attachment}")
        seen[f"bytes of {attachment}"] = sha256(talk.to("ann").get(about["url"]).content).hexdigest()
    return {path: steady(value, before) for path, value in seen.items()}


def paths_for(talk: Talk, who: str, noted: Mapping[str, Any]) -> Iterable[str]:
    """What one person can ask for."""
    yield from ("users/me", "agents", "knowledge", "calendar?from=2026-01-01&to=2026-01-31", "agent/sessions?limit=100")
    yield from ("agent/sessions?archived=true", "agent/runs?limit=200", "approvals", "automations", "api-keys")
    for session in talk.get(who, "agent/sessions?limit=100")["sessions"]:
        thread = session["threadId"]
        yield f"agent/sessions/{thread}"
        yield f"agent/sessions/{thread}/export?format=json"
        yield f"agent/history?threadId={thread}"
    for run in talk.get(who, "agent/runs?limit=200")["runs"]:
        yield f"agent/runs/{run['taskId']}"
        yield f"agent/runs/{run['taskId']}/story"
    for job in talk.get(who, "automations")["automations"]:
        yield f"automations/{job['jobId']}"
        yield f"automations/{job['jobId']}/firings"
    if who != "ann":
        return
    yield from (f"agents/{agent}" for agent in noted["agents"])
    yield from ("deliveries?limit=200", "audit?limit=200", "agent/runs?scope=workspace&limit=200")
    for base in talk.get(who, "knowledge")["bases"]:
        yield f"knowledge/{base['kbId']}"
        yield f"knowledge/{base['kbId']}/documents"


def _stream(talk: Talk, who: str, run: str) -> list[Any]:
    """The events of a run; a run whose beginning was trimmed says so."""
    answer = talk.to(who).get(f"{API}/agent/runs/{run}/events")
    if answer.status_code != 200:
        return [answer.status_code, answer.json()["code"]]
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def steady(value: Any, before: float) -> Any:
    """Leave out what passes, and rows that came after the moment; later times are all alike."""
    if isinstance(value, dict):
        return {name: steady(one, before) for name, one in value.items() if name not in PASSING}
    if isinstance(value, list):
        return [steady(one, before) for one in value if not _came_later(one, before)]
    if isinstance(value, float | int) and not isinstance(value, bool) and _is_later(float(value), before):
        return LATER
    return LATER if isinstance(value, str) and _is_later(_seconds(value), before) else value


def _came_later(row: Any, before: float) -> bool:
    """Whether it is a row of the audit or of a story that was written after the moment."""
    return isinstance(row, dict) and _is_later(_seconds(str(row.get("time"))), before)


def _is_later(seconds: float, before: float) -> bool:
    return before < seconds < 4e9 or before * 1000 < seconds < 4e12


def _seconds(text: str) -> float:
    if not MOMENT.fullmatch(text):
        return 0.0
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def lost(old: Any, new: Any, where: str = "") -> list[str]:
    """The places where something that was there is not there any more; what is new besides does not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{where}/{name}: is gone" for name in old if name not in new]
        kept = (name for name in old if name in new and not _may_differ(name, old, new))
        return gone + [line for name in kept for line in lost(old[name], new[name], f"{where}/{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for at, pair in enumerate(zip(old, new, strict=True)) for line in lost(*pair, f"{where}[{at}]")]
    return [] if old in (new, "") else [f"{where}: was {str(old)[:300]}, is {str(new)[:300]}"]


def _may_differ(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return (name in NUMBERS and LATER in old.values()) or (name in GROWING and int(new[name]) > int(old[name]))


async def logs_of(store: Any, threads: Iterable[str], before: float) -> dict[str, Any]:
    """The facts of conversations as a store gives them, up to the moment."""
    told: dict[str, Any] = {}
    for thread in threads:
        facts = sorted(await store.read(thread), key=lambda fact: fact.seq)
        told[thread] = [_fact(fact) for fact in facts if fact.time <= before]
    return json.loads(json.dumps(told))


def _fact(fact: Any) -> list[Any]:
    header = [fact.seq, fact.position, fact.kind, fact.target, fact.sender, fact.target_id, fact.turn_id, fact.tx_id]
    payload = fact.read_payload()
    if fact.kind == "EVENT:LOG_TRIMMED":  # the digest it goes on from is another where a chain was made anew
        payload.pop("digest")
    return [*header, fact.time, payload, fact.read_metadata()]


def facts_of(store: Any, threads: Iterable[str], before: float) -> dict[str, Any]:
    """Open a store that is nobody's, read the logs, close it."""

    async def read() -> dict[str, Any]:
        await store.open()
        try:
            return await logs_of(store, threads, before)
        finally:
            await store.close()

    return asyncio.run(read())
