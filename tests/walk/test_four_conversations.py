"""Four kinds of conversation, each told from beginning to end: at every step what the run was given, what it can read
of the history and the events, what the transcript holds and what the stream says agree."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from loopback import QuietHandler
from paddock.rules.access.signatures import webhook_headers
from walk.hosts import HostProcess, text_of, wait_until

WITNESS = Path(__file__).parent / "witness"
SECRET = "a-secret-of-the-chat-platform"
AGENTS = """
default_agent: ada
agents:
  ada: {runner: "plugin:test/witness/default", tools: all}
  bea: {runner: "plugin:test/witness/default", tools: all}
  all: {runner: "plugin:test/witness/default", tools: all, history_scope: workspace}
  greeter: {runner: "plugin:test/witness/default", events: [group.member_joined, message.recalled]}
"""
SESSIONS = "/api/v1/agent/sessions"
Seen = Mapping[str, Any]


class Chat:
    """A chat platform: says what happens there, and takes what is delivered."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        taken = self.taken

        class Takes(QuietHandler):
            def do_POST(self) -> None:
                taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.server.server_port}/answers"
        return f'[platforms.chat]\nsecret = "env:CHAT_SECRET"\nwebhook = "{url}"\nuser = "dev"\n'

    def tells(self, host: HostProcess, event_type: str, **event: Any) -> dict[str, Any]:
        told = {"event_id": uuid.uuid4().hex, "event_type": event_type, "conversation_id": "room", **event}
        body = json.dumps(told).encode()
        headers = {"Content-Type": "application/json"}
        headers |= webhook_headers(SECRET.encode(), told["event_id"], time.time(), body)
        with host.client() as client:
            answer = client.post("/api/v1/events?platform=chat", content=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()

    def says(self, host: HostProcess, who: str, text: str, thread: str | None = None, **event: Any) -> dict[str, Any]:
        there = {} if thread is None else {"thread_id": thread}
        actor = {"actor_id": f"u-{who.lower()}", "actor_name": who}
        return self.tells(host, "message.received", actor=actor, input={"text": text}, **there, **event)


@pytest.fixture
def chat() -> Iterator[Chat]:
    chat = Chat()
    yield chat
    chat.server.shutdown()


@pytest.fixture
def host(new_host: Callable[..., HostProcess], chat: Chat, tmp_path: Path) -> HostProcess:
    for name in ("data", "data-beside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "paddock.toml").write_text(chat.settings)
    env = {"CHAT_SECRET": SECRET, "PADDOCK_CALLS_PER_SECOND": "0", "PADDOCK_DISCOVER_MODELS": "false"}
    return new_host(agents=AGENTS, plugins=(WITNESS,), env=env).start()


def seen(host: HostProcess, task: str) -> Seen:
    """What a run told of itself; it also ended well, and its stream says what its transcript holds."""
    stream = host.events(task)
    assert stream[-1].type == "RUN_FINISHED", stream[-1].data
    assert host.finished(task)["status"] == "completed"
    told = json.loads(text_of(stream))
    assert_sound(told)
    return told


def assert_sound(told: Seen) -> None:
    """What is true of every run: its own event is as the context has it, and nothing is of another thread."""
    ctx, own = told["ctx"], told["own"]
    thread = ctx["conversation"].get("thread_id")
    assert thread == ctx["context"].get("thread_id")
    event = ctx["event"]
    assert (own["event_id"], own["event_type"]) == (event["event_id"], event["event_type"])
    assert int(own["event_time"]) == event["event_time"]
    assert own.get("source_event_type") == event.get("source_event_type")
    assert {name: own.get(name) for name in ("actor_type", "actor_id", "actor_name")} == {
        name: ctx["actor"].get(name) for name in ("actor_type", "actor_id", "actor_name")
    }
    subject = ctx.get("subject") or {}
    assert (own.get("subject_type"), own.get("subject_id")) == (subject.get("subject_type"), subject.get("subject_id"))
    assert event["data"].items() <= own["metadata"]["data"].items()
    for item in (*told["before"]["items"], *told["history"]["items"], *told["found"]["items"]):
        assert item.get("thread_id") == thread
    for record in told["events"]:
        assert record.get("thread_id") in (None, thread)
    assert own["event_id"] in [record["event_id"] for record in told["events"]]
    numbers = [item["seq"] for item in told["before"]["items"]]
    assert numbers == sorted(numbers, reverse=True)
    assert ctx["context"]["has_history_before"] is bool(numbers)
    assert event["event_id"] not in [item["event_id"] for item in told["before"]["items"]]
    shown = [record["seq"] for record in told["events"] if record["seq"] <= ctx["context"]["event_seq"]]
    assert ctx["context"]["event_seq"] == max(shown)


def words(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was said, the oldest first; answers of a witness by who gave them."""
    return [item["content"] if item["role"] != "assistant" else f"<{item.get('bot_id')}>" for item in reversed(items)]


def types(told: Seen) -> list[str]:
    return [record["event_type"] for record in reversed(told["events"])]


def session_stream(host: HostProcess, thread: str) -> list[dict[str, Any]]:
    with host.client() as client, client.stream("GET", f"{SESSIONS}/{thread}/events?after=0") as answer:
        found: list[dict[str, Any]] = []
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if found[-1].get("subtype") == "FINAL":
                    return found
    return found


# --- a conversation over the API --------------------------------------------------------------------------------------


@pytest.mark.spec("wire/where-it-stood")
def test_a_conversation_over_the_api(host: HostProcess, tmp_path: Path) -> None:
    thread, gate = str(uuid.uuid4()), tmp_path / "open"
    first = seen(host, host.post("hello", thread=thread).json()["taskId"])
    assert (first["before"]["items"], words(first["history"]["items"])) == ([], ["hello"])
    assert first["ctx"]["trigger"]["source"] == "api"
    assert first["ctx"]["context"]["transcript_seq"] == first["history"]["items"][0]["seq"]

    with host.client(headers={"Sec-Fetch-Site": "same-origin"}) as console:
        body = {"threadId": str(uuid.uuid4()), "runId": "1", "forwardedProps": {"runtime_mode": "chat"}}
        typed = {**body, "messages": [{"id": "m1", "role": "user", "content": "typed into the console"}]}
        shown = seen(host, console.post("/api/v1/agent/runs", json=typed).json()["taskId"])
    assert (shown["ctx"]["trigger"]["source"], shown["own"]["source"]) == ("webui", "webui")

    held = host.post(f"hold {gate}", thread=thread).json()["taskId"]
    waiting = [host.post(text, thread=thread).json()["taskId"] for text in ("second", "third")]
    wait_until(lambda: all(host.run(task)["status"] == "queued" for task in waiting), what="the queue")
    gate.touch()
    told = [seen(host, task) for task in (held, *waiting)]
    assert words(told[0]["before"]["items"]) == ["hello", "<ada>"]
    assert sorted(words(told[1]["before"]["items"])) == sorted(["hello", "<ada>", f"hold {gate}", "<ada>"])
    assert sorted(words(told[2]["before"]["items"])) == sorted(
        ["hello", "<ada>", f"hold {gate}", "second", "<ada>", "<ada>"]
    )
    for one in told[1:]:
        answers = [item["seq"] for item in one["before"]["items"] if item["role"] == "assistant"]
        assert one["ctx"]["context"]["transcript_seq"] == max(answers)
    assert all(item["actor_id"] == "dev" for item in told[2]["history"]["items"] if item["role"] == "user")
    with host.client() as client:
        day = client.get("/api/v1/agent/history", params={"threadId": thread}).json()
    assert len(day["messages"]) == 8


@pytest.mark.spec("wire/cursors")
def test_a_cursor_counts_where_it_was_given_and_nowhere_else(host: HostProcess) -> None:
    here, there = str(uuid.uuid4()), str(uuid.uuid4())
    one = seen(host, host.post("hello", thread=here).json()["taskId"])
    other = [seen(host, host.post("hello", thread=there).json()["taskId"]) for _ in range(3)][-1]
    own, foreign = one["history"]["items"][0]["cursor"], other["history"]["items"][0]["cursor"]
    latest = one["ctx"]["context"]["latest_cursor"]
    for call in ("history.page", "events.page"):
        for cursor in (own, latest):
            asked = f"ask {call} {json.dumps({'before_cursor': cursor})}"
            assert "items" in seen(host, host.post(asked, thread=here).json()["taskId"])["asked"]
        for cursor in (foreign, other["events"][0]["cursor"], "h1", "e1", "1", "0", own[:-2] + "AA"):
            asked = f"ask {call} {json.dumps({'before_cursor': cursor})}"
            told = seen(host, host.post(asked, thread=here).json()["taskId"])
            assert told["asked"] == {"code": "not_found"}, (call, cursor)


# --- a group on a platform, with threads ------------------------------------------------------------------------------


@pytest.mark.spec("wire/threads-apart", "wire/events-as-they-were", "wire/events-of-the-host")
def test_a_group_with_threads(host: HostProcess, chat: Chat, tmp_path: Path) -> None:
    room = chat.says(host, "Ann", "hello all")
    group, ada = room["threadId"], seen(host, room["taskId"])
    assert ada["ctx"]["actor"]["actor_name"] == "Ann"
    assert ada["own"]["actor_name"] == "Ann"

    ann = seen(host, chat.says(host, "Ann", "my secret is blue", "a")["taskId"])
    bob = seen(host, chat.says(host, "Bob", "what is the secret?", "b")["taskId"])
    assert words(ann["history"]["items"]) == ["my secret is blue"]
    assert words(bob["history"]["items"]) == ["what is the secret?"] == words(bob["found"]["items"])
    assert "blue" not in json.dumps(bob)
    assert "Ann" not in json.dumps({**bob, "ctx": None})
    assert bob["before"]["items"] == []

    again = seen(host, chat.says(host, "Cid", "and who am I?", "a")["taskId"])
    assert [(item["actor_name"], item["actor_id"]) for item in again["history"]["items"] if item["role"] == "user"] == [
        ("Cid", "u-cid"),
        ("Ann", "u-ann"),
    ]
    assert words(again["before"]["items"]) == ["my secret is blue", "<ada>"]
    assert words(again["found"]["items"])[0] == "my secret is blue"

    joined = seen(
        host,
        chat.tells(
            host,
            "group.member_joined",
            source_event_type="im.chat.member",
            event_time="2026-03-15T10:00:00Z",
            actor={"actor_id": "u-dan", "actor_name": "Dan", "metadata": {"rank": 3}},
            subject={"subject_type": "group", "subject_id": "room", "data": {"size": 5}},
            data={"invited_by": "u-ann"},
        )["taskId"],
    )
    assert joined["own"]["metadata"]["data"]["invited_by"] == "u-ann"
    assert joined["own"]["event_time"] == 1773568800
    assert joined["ctx"]["actor"]["metadata"] == {"rank": 3}
    assert words(joined["before"]["items"]) == ["hello all", "<ada>"]
    recalled = seen(
        host,
        chat.tells(
            host,
            "message.recalled",
            thread_id="a",
            actor={"actor_id": "u-ann", "actor_name": "Ann"},
            subject={"subject_type": "message", "subject_id": "m-7"},
        )["taskId"],
    )
    assert types(recalled).count("message.recalled") == 1
    assert "group.member_joined" not in types(recalled)

    gate = tmp_path / "open"
    held = chat.says(host, "Ann", f"hold {gate}", "a")["taskId"]
    waits = chat.says(host, "Bob", "me too", "b")["taskId"]
    wait_until(lambda: host.run(waits)["status"] == "queued", what="the queue")
    gate.touch()
    seen(host, held)
    assert words(seen(host, waits)["before"]["items"]) == ["what is the secret?", "<ada>"]
    wait_until(lambda: len(chat.taken) >= 8, what="the deliveries")
    last = seen(host, chat.says(host, "Ann", "add 6*7", "a")["taskId"])
    assert "Bob" not in json.dumps({**last, "ctx": None})
    assert_calls_and_deliveries(last)
    other = seen(host, chat.says(host, "Bob", "what was added?", "b", bot_id="bea")["taskId"])
    assert "tool.called" not in types(other)
    for record in last["events"]:
        asked = f"ask events.get {json.dumps({'event_id': record['event_id']})}"
        found = seen(host, chat.says(host, "Ann", asked, "a")["taskId"])["asked"]
        assert {**found, "metadata": None} == {**record, "metadata": None}
    hidden = {record["event_id"] for record in bob["events"] if record.get("thread_id")}
    for event_id in hidden:
        asked = f"ask events.get {json.dumps({'event_id': event_id})}"
        assert seen(host, chat.says(host, "Ann", asked, "a")["taskId"])["asked"] == {"code": "not_found"}
    assert session_stream(host, group)


def assert_calls_and_deliveries(told: Seen) -> None:
    """What the host did for runs of this thread is among its events, where it happened."""
    [called] = [record for record in told["events"] if record["event_type"] == "tool.called"]
    assert (called["actor_type"], called["actor_id"], called["source"]) == (
        "agent",
        told["ctx"]["conversation"]["bot_id"],
        "host",
    )
    assert (called["subject_type"], called["subject_id"]) == ("tool", "calculate")
    data = called["metadata"]["data"]
    assert (data["status"], data["parameters"], data["result"]) == ("completed", {"expression": "6*7"}, 42)
    assert told["events"][0] == called, "nothing happened after it"
    made = [record for record in told["events"] if record["event_type"] == "delivery.made"]
    said = [record["event_id"] for record in told["events"] if record["event_type"] == "message.completed"]
    assert {record["subject_id"] for record in made} == set(said)
    assert {record["source_event_type"] for record in made} == {"message.completed"}
    assert {record["metadata"]["data"]["status"] for record in made} <= {"delivered", "pending"}
    order = [record["event_id"] for record in told["events"]]
    for record in made:  # the newest come first
        assert order.index(record["event_id"]) < order.index(record["subject_id"])
    assert len(set(order)) == len(order)


@pytest.mark.spec("wire/threads-apart")
def test_other_threads_need_the_consents_of_other_conversations(host: HostProcess, chat: Chat) -> None:
    seen(host, chat.says(host, "Ann", "in a", "a")["taskId"])
    ask = f"ask history.page {json.dumps({'thread_id': 'a'})}"
    assert seen(host, chat.says(host, "Bob", ask, "b")["taskId"])["asked"] == {"code": "unauthorized"}
    told = seen(host, chat.says(host, "Bob", ask, "b", bot_id="all")["taskId"])
    assert words(told["asked"]["items"]) == ["in a", "<ada>"]
    every = f"ask history.page {json.dumps({'thread_id': '*'})}"
    told = seen(host, chat.says(host, "Bob", every, "b", bot_id="all")["taskId"])
    assert {item.get("thread_id") for item in told["asked"]["items"]} == {"a", "b"}


# --- an automation ----------------------------------------------------------------------------------------------------


@pytest.mark.spec("wire/events-as-they-were")
def test_an_automation(host: HostProcess) -> None:
    with host.client() as client:
        job = {"name": "Morning", "prompt": "what is new?", "cron": "0 9 * * 1-5", "enabled": False}
        made = client.post("/api/v1/automations", json=job).json()
        runs = [client.post(f"/api/v1/automations/{made['jobId']}/run").json()["taskId"] for _ in range(1)]
        told = [seen(host, runs[0])]
        runs.append(client.post(f"/api/v1/automations/{made['jobId']}/run").json()["taskId"])
        told.append(seen(host, runs[1]))
    for one in told:
        assert one["ctx"]["trigger"] == one["ctx"]["trigger"] | {"type": "schedule.triggered", "source": "scheduler"}
        assert one["ctx"]["subject"]["subject_type"] == "schedule"
        assert one["ctx"]["subject"]["subject_id"] == made["jobId"]
        assert one["own"]["metadata"]["data"]["job_name"] == "Morning"
    assert types(told[1]).count("schedule.triggered") == 2
    assert words(told[1]["before"]["items"]) == ["what is new?", "<ada>"]


# --- one agent hands over to the next ---------------------------------------------------------------------------------


@pytest.mark.spec("wire/events-as-they-were")
def test_a_chain_of_handovers(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    seen(host, host.post("leave bea", thread=thread).json()["taskId"])
    second = confirmed(host, thread)
    told = seen(host, second)
    assert told["ctx"]["event"]["event_type"] == "handover.received"
    assert told["ctx"]["event"]["data"]["summary"] == "they want maps"
    assert told["own"]["input_summary"] == "not mine"
    assert types(told).count("handover.received") == 1
    chain = [kind for kind in types(told) if kind.startswith("handover.")]  # accepted is recorded as soon as it is due
    assert chain[:3] == ["handover.requested", "handover.confirmed", "handover.received"]
    assert words(told["before"]["items"]) == ["leave bea", "<ada>"]
    seen(host, host.post("add 2+3", thread=thread).json()["taskId"])
    again = seen(host, host.post("who is there?", thread=thread, agent="ada").json()["taskId"])
    [called] = [record for record in again["events"] if record["event_type"] == "tool.called"]
    assert called["actor_id"] == "bea"
    assert "parameters" not in called["metadata"]["data"], "what another agent gave to a tool is its own"
    after = seen(host, host.post("who is there?", thread=thread, agent="bea").json()["taskId"])
    assert after["ctx"]["conversation"]["bot_id"] == "bea"
    told_to = ["leave bea", "<ada>", "<bea>", "add 2+3", "<bea>", "who is there?", "<ada>"]
    assert words(after["before"]["items"]) == told_to


def confirmed(host: HostProcess, thread: str) -> str:
    """Say yes to a handover; the id of the run that follows."""
    with host.client() as client:
        known = {run["taskId"] for run in client.get("/api/v1/agent/runs", params={"threadId": thread}).json()["runs"]}
        answer = client.post(f"{SESSIONS}/{thread}/control", json={"subtype": "HANDOVER_CONFIRM", "payload": {}})
        assert answer.status_code == 202, answer.text
        new: list[str] = []

        def begun() -> bool:
            runs = client.get("/api/v1/agent/runs", params={"threadId": thread}).json()["runs"]
            new.extend(run["taskId"] for run in runs if run["taskId"] not in known)
            return bool(new)

        wait_until(begun, what="the run of the other agent")
    return new[0]
