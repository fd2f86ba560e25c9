"""Hosts whose clocks are 90 s apart: what they do between them goes by the database's clock."""

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from loopback import QuietHandler
from nats_server import NatsServer
from paddock.rules.access.approvals import DECIDED
from paddock.rules.access.signatures import webhook_headers
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.storage.postgres import PostgresStore
from postgres_server import database_of, the_server
from walk.hosts import NASTY, HostProcess, wait_until

CLOCK = Path(__file__).parent / "clock"
SECRET = "a-secret-of-the-chat-platform"
AGENTS = 'default_agent: echo\nagents:\n  echo: {runner: "plugin:paddock/echo/default"}\n'
PATIENT = 60.0


class Chat:
    """A chat platform that takes its time with some of what is delivered, and counts how often each comes."""

    def __init__(self) -> None:
        self.came = Counter[str]()
        self.texts: dict[str, str] = {}
        self.go_on = threading.Event()
        chat = self

        class Takes(QuietHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                name, text = self.headers["webhook-id"], json.dumps(told)
                chat.texts[name] = text
                chat.came[name] += 1
                if "slowly" in text:
                    chat.go_on.wait(10)
                self.send_response(200)
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Takes)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> str:
        url = f"http://127.0.0.1:{self.server.server_port}/answers"
        return f'[platforms.chat]\nsecret = "env:CHAT_SECRET"\nwebhook = "{url}"\nuser = "dev"\n'

    def says(self, host: HostProcess, text: str) -> None:
        event = {"event_id": uuid.uuid4().hex, "event_type": "message.received", "conversation_id": uuid.uuid4().hex}
        body = json.dumps({**event, "actor": {"actor_id": "u-1"}, "input": {"text": text}}).encode()
        headers = {"Content-Type": "application/json"}
        headers |= webhook_headers(SECRET.encode(), event["event_id"], time.time(), body)
        with host.client() as client:
            answer = client.post("/api/v1/events?platform=chat", content=body, headers=headers)
        assert answer.status_code == 202, answer.text

    def has(self, text: str) -> bool:
        return any(text in told for told in list(self.texts.values()))


@pytest.fixture(scope="module")
def chat() -> Iterator[Chat]:
    chat = Chat()
    yield chat
    chat.go_on.set()
    chat.server.shutdown()


@pytest.fixture(scope="module")
def hosts(
    tmp_path_factory: pytest.TempPathFactory, database: str, nats: NatsServer, chat: Chat
) -> Iterator[tuple[HostProcess, HostProcess]]:
    """One whose clock is ahead, which has been there longest, and one whose clock is behind."""
    home = tmp_path_factory.mktemp("apart")
    with ExitStack() as stack:
        made: list[HostProcess] = []
        for name, ahead in (("ahead", 70.0), ("behind", -20.0)):
            (home / name).mkdir()
            (home / name / "paddock.toml").write_text(chat.settings)
            env = {
                "PADDOCK_STORE": database,
                "PADDOCK_BUS": nats.url,
                "CHAT_SECRET": SECRET,
                "PADDOCK_DISCOVER_MODELS": "false",
                "PYTHONPATH": str(CLOCK),
                "CLOCK_AHEAD": str(ahead),
            }
            host = HostProcess(home / name, agents=AGENTS, plugins=(NASTY,), env=env, fresh=True)
            stack.callback(host.end)
            made.append(host.start())
        yield made[0], made[1]


@pytest.mark.spec("http/one-clock")
def test_a_delivery_that_takes_its_time_is_tried_once(hosts: tuple[HostProcess, HostProcess], chat: Chat) -> None:
    ahead, behind = hosts
    chat.says(behind, "slowly please")
    wait_until(lambda: chat.has("slowly"), PATIENT, "the first attempt")
    for number in range(3):
        chat.says(ahead, f"quick {number}")
        wait_until(lambda number=number: chat.has(f"quick {number}"), PATIENT, "the other host delivering")
    chat.go_on.set()
    with ahead.client() as client:
        listed = "/api/v1/deliveries?status=pending"
        wait_until(lambda: not client.get(listed).json()["deliveries"], PATIENT, "all being delivered")
    assert set(chat.came.values()) == {1}, chat.came


@pytest.mark.spec("http/one-clock")
def test_a_tick_is_neither_missed_nor_fired_before_its_time(
    hosts: tuple[HostProcess, HostProcess], database: str
) -> None:
    wait_until(lambda: time.time() % 60 < 30, PATIENT, "a moment well after a minute began")
    began = int(time.time() // 60) * 60
    coming = [new_job(host, began + 60, database) for host in hosts]
    come = [new_job(host, began, database) for host in hosts]
    for job in come:
        wait_until(lambda job=job: firings(hosts[0], job), PATIENT, "the tick that has come")
    assert [[(tick["result"], tick["tick"]) for tick in firings(hosts[0], job)] for job in come] == [
        [("fired", began)] for _ in hosts
    ]
    early = [firings(hosts[0], job) for job in coming]
    assert early == [[], []] or time.time() >= began + 60


def new_job(host: HostProcess, next_at: int, database: str) -> str:
    """A job of every minute, with that tick to come; its host and the other look what is due."""
    starts = datetime.fromtimestamp(next_at - 3600, UTC).isoformat()
    given = {"name": "every minute", "prompt": "hello", "cron": "* * * * *", "timeZone": "UTC", "startsAt": starts}
    with host.client() as client:
        answer = client.post("/api/v1/automations", json=given)
        assert answer.status_code == 201, answer.text
        job = answer.json()["jobId"]
        sql = f"update automations set next_at = {next_at}, claimed_until = 0 where job_id = '{job}'"
        the_server().sql(sql, database_of(database))
        client.patch(f"/api/v1/automations/{job}", json={"name": "each minute"})
    return job


def firings(host: HostProcess, job: str) -> list[dict[str, Any]]:
    with host.client() as client:
        return client.get(f"/api/v1/automations/{job}/firings").json()["firings"]


@pytest.mark.spec("http/one-clock")
def test_an_action_that_another_host_is_doing_is_not_taken_for_lost(
    hosts: tuple[HostProcess, HostProcess], database: str
) -> None:
    asyncio.run(actions_of_a_moment_ago_go_on(database))


async def actions_of_a_moment_ago_go_on(database: str) -> None:
    """Those of more than a minute ago do not, which tells that a host has looked."""
    store = PostgresStore(database)
    await store.open()
    try:
        now, run = time.time(), uuid.uuid4().hex
        for name, decided in (("old", now - 61), ("new", now)):
            asked = ApprovalRow(
                name, "w", "ann", "s", run, "a", "message.edit", b"{}", b"{}", decided - 1, decided + 900
            )
            await store.write([asked, ApprovalStepRow(name, DECIDED, "granted", "user:ann", decided, "token", "")])
        end = time.monotonic() + PATIENT
        while await outcome(store, "old") != "unknown":
            assert time.monotonic() < end, "nobody looked for actions that were lost"
            await asyncio.sleep(0.05)
        assert await outcome(store, "new") == "doing"
    finally:
        await store.close()


async def outcome(store: PostgresStore, approval_id: str) -> str:
    found = await store.approval(approval_id)
    assert found is not None
    return found.outcome(time.time())


@pytest.mark.spec("http/one-clock")
def test_what_is_on_record_has_the_databases_time(hosts: tuple[HostProcess, HostProcess], database: str) -> None:
    for host in hosts:
        before = time.time()
        task = host.post("hello").json()["taskId"]
        run = host.finished(task)
        after = time.time()
        moments = [datetime.fromisoformat(run[name]).timestamp() for name in ("createdAt", "endedAt")]
        assert before - 1 <= moments[0] <= moments[1] <= after + 1, (before, moments, after)
