"""Write the fixtures of `test_upgrade.py`: data of the version that runs this, and what it shows of them.

Run it with the Python of the version whose data are to be kept, before its schema changes:

    .venv/bin/python tests/keeping/make_upgrade_fixtures.py

It writes `fixtures/NNNN-sqlite.tar.xz` and `fixtures/NNNN-postgres.tar.xz`, and a picture beside each (`.json.xz`:
everything that the version showed over its API, and the facts of its logs). NNNN is the newest step of the schema.
The data are two months old when they are made, so that whatever expires has expired for the version that looks first
and for every later one.
"""

import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from keeping.upgrading import (
    AGENTS,
    API,
    DATABASE,
    ENVIRONMENT,
    FIXTURES,
    FOR_EVER,
    PLUGINS,
    SETTINGS,
    Talk,
    facts_of,
    got,
    native_body,
    shown,
)
from postgres_server import Server, new_server

DAY = 86400.0
LONG_AGO, SOME_TIME_AGO, TODAY = -440 * DAY, -60 * DAY, 0.0
READY = re.compile(r"ready at (http://\S+)")
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
LEFT_OUT = {"lock", "serve.json", "local-token", "run", "homes"}
"""Of the host that runs, not of its data."""
THREADS = {name: f"0197a000-0000-7000-8000-0000000000{number:02d}" for number, name in enumerate(
    ("plain", "erased", "deleted", "trimmed", "files", "tools", "archived", "stopped", "branched")
)}  # fmt: skip


class Host:
    """The program of this Python's version, with another clock."""

    def __init__(self, home: Path, store: str | None) -> None:
        self.home = home
        self.data = home / "data"
        self.env = {**_plain_environment(), **ENVIRONMENT, **({"PADDOCK_STORE": store} if store else {})}
        self.process: subprocess.Popen[str] | None = None

    def command(self, shift: float, *words: str, **env: str) -> subprocess.Popen[str]:
        driver = [sys.executable, str(Path(__file__).resolve()), "host", str(shift)]
        return subprocess.Popen(
            [*driver, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env | env
        )

    def key(self, user: str, workspace: str) -> str:
        who = ["--user", user, "--workspace", workspace, "--role", "admin", "--data", str(self.data)]
        said = self.command(SOME_TIME_AGO, "keys", "create", *who).communicate(timeout=60)[0]
        return next(word for word in said.split() if word.startswith("pdk_"))

    def start(self, shift: float, **env: str) -> str:
        (self.home / "agents.yaml").write_text(AGENTS)
        places = ["--data", str(self.data), "--agents", str(self.home / "agents.yaml"), "--plugins", str(PLUGINS)]
        self.process = self.command(shift, "serve", "--port", "0", *places, **env)
        assert self.process.stdout is not None
        lines = iter(self.process.stdout)
        said = ""
        for line in lines:
            said += line
            if found := READY.search(line):
                threading.Thread(target=lambda: [*lines], daemon=True).start()
                return found[1]
        raise AssertionError(said)

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(60)


def _plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}


def run_as_host(shift: float, words: list[str]) -> None:
    """Be the program, with a clock that is `shift` seconds off; it sweeps old data only when `SWEEP_AFTER` is set."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + shift
    time.time_ns = lambda: real_ns() + int(shift * 1e9)
    from paddock.cli.main import main
    from paddock.host.keeping import retention

    retention.FIRST_SWEEP_SECONDS = float(os.environ.get("SWEEP_AFTER", "3600"))
    sys.argv = ["paddock", *words]
    main()


# --- what the data tell ----------------------------------------------------------------------------------------------


def long_ago(talk: Talk) -> None:
    """The beginning of a conversation, which will be trimmed."""
    for number in range(3):
        talk.ended("ann", talk.say("ann", f"long ago {number}", THREADS["trimmed"]))


def some_time_ago(talk: Talk, noted: dict[str, Any]) -> None:
    talk.ended("ann", talk.say("ann", "and still here", THREADS["trimmed"]))
    _conversations(talk, noted)
    _agents_and_files(talk, noted)
    _tools_and_knowledge(talk)
    _erased_and_deleted(talk, noted)
    _platform(talk, noted)
    assert talk.get("ann", "agent/sessions?query=archive")["sessions"]  # so that the words of conversations are indexed


def _conversations(talk: Talk, noted: dict[str, Any]) -> None:
    for who in ("ann", "bob"):
        talk.say_by_ag_ui(who, f"I am {who}", "my first chat", run=f"{who}-1")
        talk.say_by_ag_ui(who, "and again", "my first chat", run=f"{who}-2")
    noted["ag_ui_thread"] = "5f0a1c52-1f3e-4f62-8d7e-0242ac130003"
    talk.say_by_ag_ui("ann", "by its own id", noted["ag_ui_thread"], run="ann-3")
    talk.ended("ann", talk.say("ann", "hello, archive", THREADS["plain"], run="first-run"))
    talk.ended("ann", talk.say("ann", "put me away", THREADS["archived"]))
    session = f"{API}/agent/sessions/{THREADS['archived']}"
    assert talk.to("ann").patch(session, json={"title": "Away", "archived": True}).is_success
    _branch(talk)
    got(talk.to("ann").patch(f"{API}/users/me", json={"profile": {"settings": {"timezone": "Europe/Oslo"}}}))


def _branch(talk: Talk) -> None:
    thread = THREADS["branched"]
    run = talk.say("ann", "a question", thread)
    talk.ended("ann", run)
    session = f"{API}/agent/sessions/{thread}"
    other = got(talk.to("ann").post(f"{session}/edit", json={"itemId": f"{run}.0", "content": "a better question"}))
    talk.ended("ann", other["taskId"])
    item = talk.get("ann", f"agent/history?threadId={thread}")["messages"][-1]["id"]
    opinion = {"rating": "up", "comment": "as it should be"}
    got(talk.to("ann").put(f"{session}/messages/{item}/feedback", json=opinion))


def _agents_and_files(talk: Talk, noted: dict[str, Any]) -> None:
    server = {
        "name": "shelves",
        "url": "https://shelves.example/mcp",
        "headers": {"Authorization": "Bearer of-shelves"},
    }
    for who in ("ann", "bob"):
        body = {"runner": "plugin:test/archivist/default", "config": {"api_key": f"key-of-{who}"}, "mcp": [server]}
        got(talk.to(who).put(f"{API}/agents/librarian", json=body))
    noted["agents"] = ["librarian"]
    talk.ended("ann", talk.say("ann", "keep", THREADS["files"], agent="librarian"))
    noted["found"] = talk.said("ann", _ended(talk, talk.say("ann", "look", THREADS["files"], agent="librarian")))
    assert "key-of-ann" in noted["found"], noted["found"]
    form = {"file": ("dot.png", b64decode(DOT), "image/png")}
    upload = got(talk.to("ann").post(f"{API}/agent/attachments", files=form))
    noted["attachments"] = [upload["attachmentId"]]
    body = native_body("", THREADS["files"], "with-a-picture")
    body["messages"][0]["content"] = [
        {"type": "text", "text": "what is this?"},
        {"type": "binary", "mimeType": "image/png", "url": upload["url"]},
    ]
    _ended(talk, got(talk.to("ann").post(f"{API}/agent/runs", json=body))["taskId"])


def _ended(talk: Talk, run: str) -> str:
    talk.ended("ann", run)
    return run


def _tools_and_knowledge(talk: Talk) -> None:
    event = {"action": "create", "title": "Reading", "start": "2026-01-02T10:00", "event_timezone": "Europe/Oslo"}
    for words in ('call calculate {"expression": "6*7"}', f"call calendar_write {json.dumps(event)}"):
        _ended(talk, talk.say("ann", words, THREADS["tools"], agent="helper"))
    got(talk.to("ann").post(f"{API}/knowledge", json={"kbId": "notes", "name": "Notes"}))
    document = {"name": "shelves.md", "text": "# Shelves\n\nThe fourth shelf holds the maps of Oslo.\n"}
    got(talk.to("ann").post(f"{API}/knowledge/notes/documents", json=document))
    _until(lambda: talk.get("ann", "knowledge/notes/documents")["documents"])
    job = {"name": "Morning", "prompt": "what is new?", "cron": "0 9 * * 1-5", "enabled": False}
    made = got(talk.to("ann").post(f"{API}/automations", json=job))
    _ended(talk, got(talk.to("ann").post(f"{API}/automations/{made['jobId']}/run"))["taskId"])


def _erased_and_deleted(talk: Talk, noted: dict[str, Any]) -> None:
    thread = THREADS["erased"]
    said = _ended(talk, talk.say("ann", "my PIN is 4711", thread, run="with-a-pin"))
    revised = _ended(talk, talk.say("ann", "revise", thread))
    for item in (f"{said}.0", f"{said}.1", f"{revised}.1"):
        got(talk.to("ann").post(f"{API}/agent/sessions/{thread}/items/{item}/erase", json={"artifacts": True}))
    noted["erased_words"] = ["4711", "marzipan", "nougat"]
    _ended(talk, talk.say("ann", "goodbye to this", THREADS["deleted"]))
    assert talk.to("ann").delete(f"{API}/agent/sessions/{THREADS['deleted']}").status_code == 204


def _platform(talk: Talk, noted: dict[str, Any]) -> None:
    told = [
        talk.event("hello from the room", "room-7", "evt-1"),
        talk.event("hello from a side room", "room-7", "evt-2", sub_thread="side"),
        talk.event("edit", "room-8", "evt-3"),
        talk.event("edit", "room-9", "evt-4"),
    ]
    for one in told:
        talk.ended("chat", one["taskId"])
    noted["rooms"] = [one["threadId"] for one in told]
    denied, _pending = talk.get("chat", "approvals")["approvals"]
    got(talk.to("chat").post(f"{API}/approvals/{denied['approvalId']}", json={"decision": "deny"}))


def unfinished(talk: Talk) -> None:
    """A run in the middle of its answer, and one that waits behind it."""
    run = talk.say("ann", "stay", THREADS["stopped"], run="unfinished")
    _until(lambda: talk.get("ann", f"agent/runs/{run}")["status"] == "running")
    talk.say("ann", "I wait", THREADS["stopped"], run="queued")
    with talk.to("ann").stream("GET", f"{API}/agent/runs/{run}/events") as stream:
        assert any("half an ans" in line for line in stream.iter_lines())


def _until(true: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


# --- writing them down -----------------------------------------------------------------------------------------------


def make(host: Host, server: Server | None) -> None:
    address = None if server is None else server.url(DATABASE)
    host.data.mkdir(parents=True)
    (host.data / "paddock.toml").write_text(SETTINGS)
    people = {"ann": "acme", "chat": "acme", "bob": "other"}
    keys = {user: host.key(user, workspace) for user, workspace in people.items()}
    noted: dict[str, Any] = {"keys": keys, "threads": THREADS}
    url = host.start(LONG_AGO, PADDOCK_ARTIFACT_DAYS="0")
    long_ago(Talk(url, keys, LONG_AGO))
    host.end()
    talk = Talk(host.start(SOME_TIME_AGO, PADDOCK_ARTIFACT_DAYS="0"), keys, SOME_TIME_AGO)
    some_time_ago(talk, noted)
    host.end()
    talk = Talk(host.start(SOME_TIME_AGO, PADDOCK_ARTIFACT_DAYS="0", SWEEP_AFTER="0.1"), keys, SOME_TIME_AGO)
    _until(lambda: any(row["action"] == "retention.sweep" for row in _swept(host, address)))
    unfinished(talk)
    host.end(signal.SIGKILL)
    noted["moment"] = time.time() + SOME_TIME_AGO
    _write(host, server, noted)


def _swept(host: Host, address: str | None) -> list[dict[str, Any]]:
    import asyncio

    if address is not None:
        import asyncpg

        async def rows() -> list[Any]:
            connection = await asyncpg.connect(address)
            try:
                return await connection.fetch("select action from audit where resource = 'trimmed'")
            finally:
                await connection.close()

        return [dict(row) for row in asyncio.run(rows())]
    import sqlite3

    with sqlite3.connect(f"file:{host.data}/paddock.db?mode=ro", uri=True) as connection:
        return [{"action": one} for (one,) in connection.execute("select action from audit where resource = 'trimmed'")]


def _write(host: Host, server: Server | None, noted: dict[str, Any]) -> None:
    """Pack the data as the killed host left them; then look at them with this version, and write what it shows."""
    kind = "sqlite" if server is None else "postgres"
    name = f"{_schema(kind):04d}-{kind}"
    FIXTURES.mkdir(exist_ok=True)
    for left in LEFT_OUT:
        with suppress(NotADirectoryError):
            shutil.rmtree(host.data / left, ignore_errors=True)
        with suppress(OSError):
            (host.data / left).unlink()
    dump = host.home / "dump.sql"
    if server is not None:
        dump.write_text(server.run("pg_dump", "--no-owner", server.url(DATABASE)))
    with tarfile.open(FIXTURES / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        archive.add(host.data, "data", filter=_nobodys)
        if server is not None:
            archive.add(dump, "dump.sql", filter=_nobodys)
    talk = Talk(host.start(TODAY, **FOR_EVER), noted["keys"])
    picture = {"noted": noted, "shown": shown(talk, noted)}
    host.end()
    threads = [*THREADS.values(), *noted["rooms"], noted["ag_ui_thread"]]
    picture["facts"] = facts_of(_store(host, server), threads, noted["moment"])
    text = json.dumps(picture, ensure_ascii=False, indent=1, sort_keys=True)
    (FIXTURES / f"{name}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _store(host: Host, server: Server | None) -> Any:
    from paddock.storage.postgres import PostgresStore
    from paddock.storage.sqlite import SqliteStore

    return SqliteStore(host.data) if server is None else PostgresStore(server.url(DATABASE))


def _schema(kind: str) -> int:
    from paddock.storage.tables.schema import shipped_migrations

    return max(step.number for step in shipped_migrations(kind))


def make_all() -> None:
    _make_in_new_place(None)
    server = new_server()
    try:
        server.sql(f"create database {DATABASE}")
        _make_in_new_place(server)
    finally:
        server.let_go()


def _make_in_new_place(server: Server | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        host = Host(Path(place), None if server is None else server.url(DATABASE))
        try:
            make(host, server)
        finally:
            if host.process is not None and host.process.poll() is None:
                host.process.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["host"]:
        run_as_host(float(sys.argv[2]), sys.argv[3:])
    else:
        make_all()
