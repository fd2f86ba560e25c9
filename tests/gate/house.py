"""A house for the matrix: one run with everything granted, asked directly or by raw frames, and its store looked at."""

import asyncio
import json
import uuid
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from gate.matrix import RANDOM_ID, VALID
from host.platforms import MemoryPlatform
from host.scripted import ANN, AtRunner, SmallHouse, small_house
from paddock.host.calls.work import CallHandler
from paddock.host.runs.live_run import LiveRun
from paddock.ports import Caller, Store
from paddock.rules.access.artifacts import of_run
from paddock.rules.access.gate import LOOKED_AT, NO_BOUND, Cap
from paddock.rules.access.limits import TokenBucket
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import replace
from paddock.runners.wire.connection import RunnerConnection, RunnerPeer
from paddock.storage.postgres import PostgresStore
from paddock_sdk.protocol.host_calls import HOST_CALLS
from runners.house import News

HERE = Caller("test/one", "c1")
ELSEWHERE = Caller("test/one", "c2")
ANOTHER_PLUGIN = Caller("test/two", "c3")


def granted(grant: Grant) -> Grant:
    """The same run with everything a host can grant, one of each kind."""
    return replace(
        grant,
        actions=frozenset(HOST_CALLS),
        models={"demo": frozenset({"invoke", "stream", "rerank"})},
        tools={"current_time": frozenset({"detail", "call"})},
        knowledge_bases={"kb-1": frozenset({"retrieve"})},
        state_scopes=frozenset({"conversation"}),
        storage_areas=frozenset({"plugin"}),
        platform_actions=frozenset({"message.edit"}),
    )


class Answers:
    """The work of calls that no room of this house answers: says something of the right shape, remembers effects."""

    def __init__(self) -> None:
        self.effects: list[str] = []

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {method: self._of(method) for method in HOST_CALLS}

    def _of(self, method: str) -> CallHandler:
        if HOST_CALLS[method].streams:
            return CallHandler(stream=lambda _grant, asked: Pieces(method, asked))

        async def read(_grant: Grant, asked: Any) -> Any:
            _must_exist(method, asked)
            return an_answer(method)

        async def write(_grant: Grant, asked: Any, audit: AuditRow) -> Any:
            self.effects.append(method)
            await self.store.write([audit])
            return an_answer(method)

        return (
            CallHandler(write=write)
            if method.endswith((".set", ".delete", ".create", ".call"))
            else CallHandler(read=read)
        )

    store: Store


class Pieces:
    result: Mapping[str, Any] = {}

    def __init__(self, method: str, asked: Any) -> None:
        self._method, self._asked = method, asked

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        _must_exist(self._method, self._asked)
        yield {"content_base64": "aGk="}


def _must_exist(method: str, asked: Any) -> None:
    if str(getattr(asked, RANDOM_ID.get(method, ""), "")).startswith("random"):
        raise HostError(ErrorCode.NOT_FOUND, "there is no such thing")


def an_answer(method: str) -> Any:
    """An answer of the call's own shape, made from its schema."""
    shape = HOST_CALLS[method].result
    samples = {"string": "x", "integer": 1, "array": [], "object": {}, "number": 1.0, "boolean": True}
    schema = shape.model_json_schema()
    given = {}
    for name in schema.get("required", []):
        kind = schema["properties"][name]
        given[name] = {"role": "assistant"} if "$ref" in kind else kind.get("enum", [samples.get(kind.get("type"))])[0]
    return shape.model_validate(given)


@dataclass
class Wire:
    """A connection without a process: lines go in, and what the host writes is kept."""

    house: SmallHouse
    caller: Caller
    sent: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        peer = RunnerPeer(
            self, self.caller, self.house.calls.on_wire, self.kill, on_overload=self.house.calls.overloaded
        )
        self.connection = RunnerConnection(peer)

    def send(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    def close(self) -> None:
        """Nothing to close."""

    async def kill(self) -> None:
        """Nothing to kill."""

    def run(self, run_id: str) -> None:
        """Let the connection know of a run that the house started on it."""
        self.connection.begin_run("plugin:test/one/default", "default", run_id, {}, News())

    async def call(self, method: str, params: Any) -> dict[str, Any]:
        """One raw frame; the response to it."""
        self.count += 1
        frame = {"jsonrpc": "2.0", "id": f"call-{self.count}", "method": method, "params": params}
        self.connection.feed(json.dumps(frame).encode() + b"\n")
        async with asyncio.timeout(30):
            while True:
                for sent in self.sent:
                    if sent.get("id") == f"call-{self.count}" and ("result" in sent or "error" in sent):
                        return sent
                await asyncio.sleep(0)


@dataclass
class Situation:
    """One call about to be made, and the run it is made for."""

    params: dict[str, Any]
    caller: Caller
    live: LiveRun
    at_runner: AtRunner


@dataclass
class GateHouse:
    house: SmallHouse
    answers: Answers
    way: str
    directory: Path
    file: str = ""
    """A file that the newest run may read."""

    async def a_run(self) -> tuple[LiveRun, AtRunner]:
        await self.house.say(thread=str(uuid.uuid4()))
        at_runner = await self.house.gateway.next()
        live = self.house.runs.live.find(at_runner.run_id)
        assert live is not None
        live.grant = granted(live.grant)
        await self._acknowledged(live)
        self.file = (await self.house.artifacts.keep(of_run(live.grant, "runner"), b"hi")).artifact_id
        return live, at_runner

    async def _acknowledged(self, live: LiveRun) -> None:
        """Wait until the run's acknowledgement is on record, so that nothing of ours is still on its way."""
        follower = self.house.tails.follow(live.session.session_id, live.run_id, 0)
        async with asyncio.timeout(20):
            while not any(entry.fact.kind == "CONTROL:INPUT_ACK" for entry in await follower.next(1)):
                pass
        follower.close()

    def situation(self, action: str, live: LiveRun, at_runner: AtRunner) -> Situation:
        real = {"artifact_id": self.file, "event_id": at_runner.context["event"]["event_id"]}
        params = {**VALID[action], **{name: value for name, value in real.items() if name in VALID[action]}}
        return Situation({"run_id": live.run_id, **params}, HERE, live, at_runner)

    async def bring_about(self, condition: str, action: str, at: Situation) -> None:
        """Make a condition true of a call, and leave everything else as it is."""
        looked = LOOKED_AT[action]
        match condition:
            case "run_id missing":
                at.params.pop("run_id", None)
            case "bad types":
                name = next((n for n in HOST_CALLS[action].params.model_fields if n != "run_id"), "run_id")
                at.params[name] = {"not": ["this"]}
            case "unknown run":
                at.params["run_id"] = str(uuid.uuid4())
            case "ended run":
                at.at_runner.say("run.completed")
                await self.house.story(await self.house.view.find(ANN, at.live.run_id))
            case "another plugin's run":
                at.caller = ANOTHER_PLUGIN
            case "wrong connection":
                at.caller = ELSEWHERE
            case "past deadline":
                at.live.grant = replace(at.live.grant, deadline_at=self.house.approvals.clock() - 1)
            case "permission absent":
                at.live.grant = replace(at.live.grant, actions=at.live.grant.actions - {action})
            case "resource not granted":
                at.params[looked.resource] = "not-granted"
            case "other conversation":
                first, _, inner = looked.conversation.partition(".")
                at.params[first] = {inner: str(uuid.uuid4())} if inner else str(uuid.uuid4())
            case "scope or consent":
                at.params[looked.scope] = "subject"
            case "over cap":
                at.params |= too_much(action)
            case "over rate":
                at.live.rate = TokenBucket(0.001, 100.0, 0.0, self.house.approvals.clock())
            case "foreign or random id":
                at.params[RANDOM_ID[action]] = f"random-{uuid.uuid4()}"
            case _:
                raise AssertionError(condition)

    async def ask(self, action: str, at: Situation) -> tuple[str, str]:
        """The code of the answer, `ok` for an answer, and its sentence."""
        if self.way == "frames":
            wire = Wire(self.house, at.caller)
            wire.run(at.live.run_id)
            answer = await wire.call(action, at.params)
            error = answer.get("error", {}).get("data")
            return (error["code"], error["message"]) if error else ("ok", "")
        try:
            answer = await self.house.calls(at.caller, action, at.params, len(json.dumps(at.params)))
            if HOST_CALLS[action].streams:
                [piece async for piece in answer]  # pyright: ignore[reportGeneralTypeIssues]
        except HostError as error:
            return str(error.code), error.message
        return "ok", ""

    async def audited(self) -> int:
        await self.house.audit.flush()
        return len(await self.house.store.audit(limit=100_000))

    async def effects(self) -> object:
        """Everything that is stored, but for the audit: what a refusal must leave as it was."""
        store = self.house.store
        kept = await _database(store) if isinstance(store, PostgresStore) else _tables(self.directory)
        return kept, list(self.answers.effects)


def too_much(action: str) -> dict[str, Any]:
    """What puts a call over its cap: the whole call where that has one, else its largest field."""
    looked = LOOKED_AT[action]
    if looked.call_bytes != NO_BOUND:
        return {"padding": "x" * looked.call_bytes}
    return {looked.caps[-1].field: over(looked.caps[-1])}


def over(cap: Cap) -> Any:
    """A value that is over a cap by one."""
    match cap.measure:
        case "characters":
            return "x" * (cap.most + 1)
        case "bytes of JSON":
            return "x" * (cap.most - 1)
        case "bytes":
            return b64encode(b"x" * (cap.most + 1)).decode()
        case "documents":
            return ["x"] * (cap.most + 1)
        case "bytes at once":
            return cap.most + 1


def _tables(directory: Path) -> dict[str, list[Any]]:
    file = next(directory.rglob("*.db"))
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    return {str(name): list(connection.execute(f"select * from {name}")) for name in names if name != "audit"}


async def _database(store: PostgresStore) -> dict[str, Any]:
    names = await store.reader.all(
        "select tablename from pg_tables where schemaname = 'public' and tablename <> 'audit'"
    )
    each = "select '{0}', md5(string_agg(t::text, chr(10) order by t::text)) from {0} t"
    return dict(await store.reader.all(" union all ".join(each.format(name) for (name,) in names)))


@asynccontextmanager
async def gate_house(store: Store, way: str, directory: Path, **options: Any) -> AsyncGenerator[GateHouse]:
    answers = Answers()
    answers.store = store
    async with small_house(store, work=answers.work, platform=MemoryPlatform(), **options) as house:
        yield GateHouse(house, answers, way, directory)
