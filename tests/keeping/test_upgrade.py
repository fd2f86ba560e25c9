"""Data that earlier versions wrote are opened with nothing lost: what they showed is shown, and all of it goes on.

Each fixture is named by the newest schema step of the version that wrote it, see `make_upgrade_fixtures.py`.
"""

import asyncio
import json
import lzma
import os
import shutil
import sqlite3
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

import warm
from keeping.upgrading import (
    AGENTS,
    API,
    CAREFULLY,
    DATABASE,
    ENVIRONMENT,
    FIXTURES,
    FOR_EVER,
    PLUGINS,
    Talk,
    facts_of,
    got,
    lost,
    native_body,
    shown,
    steady,
)
from paddock.rules.log.chain import word_bytes
from paddock.rules.people import day_of
from paddock.storage.postgres import PostgresStore
from paddock.storage.sqlite import SqliteStore
from postgres_server import database_of, the_server
from walk.hosts import HostProcess, wait_until

NAMES = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
"""What schema 24 made ids of names with."""
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in FIXTURES.glob("*.tar.xz"))
OURS = (b"/work/", b"/tmp/", b"/root/", b"/home/", b"site-packages", b"index-url")


@dataclass(frozen=True)
class Upgraded:
    """Data of an earlier version, and a host of today on them."""

    host: HostProcess
    talk: Talk
    picture: dict[str, Any]
    store: str | None

    @property
    def noted(self) -> dict[str, Any]:
        return self.picture["noted"]

    @property
    def places(self) -> list[object]:
        return ["--data", self.host.data, *(["--store", self.store] if self.store else [])]


def unpacked(name: str, place: Path) -> dict[str, Any]:
    """Unpack a fixture; return its picture."""
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as archive:
        archive.extractall(place, **CAREFULLY)
    (place / "data").chmod(0o700)
    return json.loads(lzma.decompress((FIXTURES / f"{name}.json.xz").read_bytes()))


def restored(dump: Path) -> str:
    """Make a database of a dump; return its address."""
    server = the_server()
    name = f"{DATABASE}_{os.getpid()}"
    server.sql(f"drop database if exists {name} with (force)")
    server.sql(f"create database {name}")
    copy = server.home / f"{name}.sql"
    shutil.copyfile(dump, copy)
    copy.chmod(0o644)
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copy), server.url(name))
    copy.unlink()
    return server.url(name)


async def words_differ(store: PostgresStore | SqliteStore, threads: Iterable[str]) -> list[str]:
    """Whose words are counted otherwise than their logs hold them. The store is nobody's, and closed again."""
    await store.open()
    try:
        held: Counter[tuple[str, str]] = Counter()
        for thread in threads:
            if (session := await store.session(thread)) is not None:
                facts = await store.read(thread, limit=100_000)
                held[session.workspace_id, session.user_id] += word_bytes(facts)
        assert held.total() > 0
        return [str(who) for who, size in held.items() if await store.words_of(*who) < size]
    finally:
        await store.close()


OPENED = '\n[api_agents]\nurls = ["https://shelves.example"]\n'
"""What an upgrade asks of whoever runs the host: agents made over the API named addresses freely before."""


@pytest.fixture(params=VERSIONS)
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upgraded]:
    picture = unpacked(request.param, tmp_path)
    dump = tmp_path / "dump.sql"
    store = restored(dump) if dump.exists() else None
    with (tmp_path / "data" / "paddock.toml").open("a") as settings:
        settings.write(OPENED)
    env = ENVIRONMENT | FOR_EVER | ({"PADDOCK_STORE": store} if store else {})
    host = HostProcess(tmp_path / "data", agents=AGENTS, plugins=(PLUGINS,), env=env).start()
    talk = Talk(host.url, picture["noted"]["keys"])
    wait_until(lambda: everything_has_ended(talk), what="the answer to what waited in line")
    yield Upgraded(host, talk, picture, store)
    host.end()


def everything_has_ended(talk: Talk) -> bool:
    runs = (run for who in talk.keys for run in talk.get(who, "agent/runs?limit=200")["runs"])
    return all(run["status"] in {"completed", "failed", "cancelled"} for run in runs)


def test_data_of_an_earlier_version_is_all_there_and_goes_on(upgraded: Upgraded) -> None:
    picture, noted = upgraded.picture, upgraded.noted
    assert lost(steady(picture["shown"], noted["moment"]), shown(upgraded.talk, noted)) == []
    found_by_the_same_names(upgraded)
    every_thread_goes_on(upgraded)
    what_was_kept_is_found(upgraded.talk, noted)
    what_was_accepted_once_stays_so(upgraded.talk, noted)
    upgraded.talk.close()
    assert upgraded.host.stop() == 0, upgraded.host.output
    store = SqliteStore(upgraded.host.data) if upgraded.store is None else PostgresStore(upgraded.store)
    assert lost(without_digests(picture["facts"]), facts_of(store, picture["facts"], noted["moment"])) == []
    assert asyncio.run(words_differ(store, picture["facts"])) == []
    for command in (["verify"], ["rebuild", "--check"]):
        done = warm.run(["admin", *command, *upgraded.places], env=upgraded.host.env | dict(os.environ))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_used_of_the_models_is_added_up_by_the_upgrade(version: str, tmp_path: Path) -> None:
    unpacked(version, tmp_path)
    dump, newest = tmp_path / "dump.sql", "select workspace_id, max(started_at) from model_usage group by 1"
    if dump.exists():
        address = restored(dump)
        lines = the_server().sql(newest, database_of(address)).split()
        used = [(workspace, float(moment)) for workspace, moment in (line.split("|") for line in lines)]
        store = PostgresStore(address)
    else:
        with closing(sqlite3.connect(tmp_path / "data" / "paddock.db")) as database:
            used = database.execute(newest).fetchall()
        store = SqliteStore(tmp_path / "data")
    assert used
    assert asyncio.run(spent_differs(store, used)) == []


async def spent_differs(store: PostgresStore | SqliteStore, used: list[tuple[str, float]]) -> list[str]:
    """Workspaces for whose last days other sums are kept than their calls add up to."""
    await store.open()
    try:
        newest = day_of(max(moment for _, moment in used))
        wrong: list[str] = []
        for workspace, _ in used:
            calls = await store.spent(workspace_id=workspace, since=newest)
            if await store.spent_on(newest, workspace) != (calls.total_tokens, pytest.approx(calls.cost)):
                wrong.append(workspace)
        return wrong
    finally:
        await store.close()


def without_digests(logs: dict[str, Any]) -> dict[str, Any]:
    """A log whose beginning was trimmed goes on from a digest, and a chain that is made anew from another one."""
    for facts in logs.values():
        for *header, payload, _ in facts:
            if header[2] == "EVENT:LOG_TRIMMED":
                payload.pop("digest", None)
    return logs


def found_by_the_same_names(upgraded: Upgraded) -> None:
    """A name, and a room of a platform, lead to the conversation they led to."""
    talk, noted = upgraded.talk, upgraded.noted
    for who in ("ann", "bob"):
        before = {one["threadId"] for one in talk.get(who, "agent/sessions?limit=100")["sessions"]}
        assert f"I am {who} again" in talk.say_by_ag_ui(who, f"I am {who} again", "my first chat", run=f"{who}-new")
        sessions = talk.get(who, "agent/sessions?limit=100")["sessions"]
        assert {one["threadId"] for one in sessions} == before
        [named] = [one["threadId"] for one in sessions if f"I am {who} again" in said_in(talk, who, one["threadId"])]
        assert f"I am {who}" in said_in(talk, who, named)
        me = talk.get(who, "users/me")
        assert named == str(uuid5(NAMES, f"{me['workspaceId']}\0{me['userId']}\0my first chat"))
    rooms = [("room-7", None), ("room-7", "side"), ("room-8", None), ("room-9", None)]
    for number, ((room, side), thread) in enumerate(zip(rooms, noted["rooms"], strict=True)):
        told = talk.event("back again", room, f"evt-new-{number}", sub_thread=side)
        assert told["threadId"] == thread
        assert talk.ended("chat", told["taskId"])["status"] == "completed"


def said_in(talk: Talk, who: str, thread: str) -> list[str]:
    messages = talk.get(who, f"agent/sessions/{thread}/export?format=json")["messages"]
    return [one["content"] for one in messages if one["role"] == "user"]


def every_thread_goes_on(upgraded: Upgraded) -> None:
    talk, noted = upgraded.talk, upgraded.noted
    threads = dict(noted["threads"])
    gone = talk.to("ann").post(f"{API}/agent/runs", json=native_body("hello", threads.pop("deleted"), "too-late"))
    assert gone.status_code == 404
    runs = [talk.say("ann", f"new in {name}", thread) for name, thread in threads.items()]
    runs.append(talk.say("ann", "new by its own id", noted["ag_ui_thread"]))
    for run in runs:
        assert talk.ended("ann", run)["status"] == "completed"


def what_was_kept_is_found(talk: Talk, noted: dict[str, Any]) -> None:
    """State, storage, files, and the secret of an agent that was made over the API."""
    run = talk.say("ann", "look", noted["threads"]["files"], agent="librarian")
    talk.ended("ann", run)
    assert json.loads(talk.said("ann", run)) == json.loads(noted["found"])
    found = got(talk.to("ann").post(f"{API}/knowledge/notes/search", json={"query": "maps of Oslo"}))
    assert "fourth shelf" in json.dumps(found)
    assert talk.get("ann", "agent/sessions?query=archive")["sessions"]


def what_was_accepted_once_stays_so(talk: Talk, noted: dict[str, Any]) -> None:
    """The same request again has the same answer, another one under its name is refused."""
    thread = noted["threads"]["plain"]
    again = talk.to("ann").post(f"{API}/agent/runs", json=native_body("hello, archive", thread, "first-run"))
    assert talk.get("ann", f"agent/runs/{again.json()['taskId']}")["runId"] == "first-run"
    other = talk.to("ann").post(f"{API}/agent/runs", json=native_body("something else", thread, "first-run"))
    assert other.status_code == 409
    told = talk.event("hello from the room", "room-7", "evt-1")
    assert told["threadId"] == noted["rooms"][0]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_fixture_says_nothing_of_the_machine_it_was_made_on(name: str, tmp_path: Path) -> None:
    picture = unpacked(name, tmp_path)
    (tmp_path / "picture.json").write_text(json.dumps(picture))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [(path.name, word) for path in files for word in OURS if word in path.read_bytes()] == []
    assert sum((FIXTURES / f"{name}{ending}").stat().st_size for ending in (".tar.xz", ".json.xz")) < 130_000
