"""What a runner says, as raw frames: each result type in every way it can be wrong, and what becomes of the run."""

import asyncio
import json
import uuid
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from host.scripted import ANN, ScriptedGateway, SmallHouse, small_house
from paddock.ports import ANYWHERE, Caller, Placement, RunListener
from paddock.rules.access.limits import MAX_ARTIFACT_INLINE_BYTES
from paddock.rules.rows.rows import AuditRow
from paddock.runners.wire.connection import RunnerConnection, RunnerPeer
from paddock_sdk.protocol.frames import longest_result
from paddock_sdk.protocol.results import KNOWN_RESULTS, TERMINAL_TYPES

pytestmark = pytest.mark.anyio

WORD = {"role": "assistant", "content": "hi"}
SAID: Mapping[str, Mapping[str, Any]] = {
    "message.delta": {"chunk": WORD},
    "message.completed": {"message": WORD},
    "tool.call.started": {"tool_call_id": "1", "tool_name": "t"},
    "tool.call.completed": {"tool_call_id": "1", "tool_name": "t", "result": 1},
    "artifact.created": {"artifact_type": "file", "name": "a.txt", "content_base64": "aGk="},
    "state.updated": {"scope": "conversation", "key": "k", "value": 1},
    "action.requested": {"action": "message.edit", "target": {}, "payload": {}},
    "step.started": {"step_name": "plan"},
    "step.finished": {"step_name": "plan"},
    "run.completed": {},
    "run.failed": {"code": "runner.error", "message": "no"},
}
BROKEN: Mapping[str, Mapping[str, Any]] = {
    "message.delta": {"chunk": 7},
    "message.completed": {"message": "hi"},
    "tool.call.started": {"tool_call_id": "1"},
    "tool.call.completed": {"tool_call_id": 1, "tool_name": "t"},
    "artifact.created": {"name": "a.txt"},
    "state.updated": {"scope": "conversation", "key": "k"},
    "action.requested": {"action": {}},
    "step.started": {"step_name": 7},
    "step.finished": {},
    "run.completed": {"usage": "much"},
    "run.failed": {"code": 7},
}
WENT_ON = sorted(set(KNOWN_RESULTS) - TERMINAL_TYPES)


@dataclass
class WireRunner:
    """A runner that is nothing but a connection: the test writes its lines."""

    house: SmallHouse | None = None
    sent: list[dict[str, Any]] = field(default_factory=list)
    killed: bool = False

    def connect(self, house: SmallHouse) -> None:
        self.house = house
        caller = Caller("test/one", "c1")
        peer = RunnerPeer(self, caller, house.calls.on_wire, self.kill, on_foreign=house.calls.foreign)
        self.connection = RunnerConnection(peer)

    def send(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    def close(self) -> None:
        """Nothing to close."""

    async def kill(self) -> None:
        self.killed = True

    def says(self, run_id: str, kind: str, sequence: int | None, data: Mapping[str, Any], **more: Any) -> None:
        params = {"run_id": run_id, "type": kind, "data": data, "sequence": sequence, **more}
        line = json.dumps({"jsonrpc": "2.0", "method": "run_result", "params": params})
        self.connection.feed(line.encode() + b"\n")


class WireGateway(ScriptedGateway):
    """Starts every run on one connection."""

    def __init__(self, runner: WireRunner) -> None:
        super().__init__({"storage": ["plugin"]})
        self._runner = runner

    async def start_run(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> Any:
        run: Any = self._runner.connection.begin_run(runner_id, "default", run_id, context, listener)
        self.started.put_nowait(run)
        return run


@dataclass
class Scene:
    house: SmallHouse
    runner: WireRunner

    async def a_run(self) -> str:
        accepted = await self.house.say(thread=str(uuid.uuid4()))
        await self.house.gateway.started.get()
        return accepted.run_id

    async def ended(self, run_id: str) -> tuple[str, str | None]:
        """How a run ended, once it has."""
        await self.house.story(await self.house.view.find(ANN, run_id))
        row = await self.house.view.find(ANN, run_id)
        return row.status, row.code

    async def log(self, run_id: str) -> Sequence[Any]:
        row = await self.house.view.find(ANN, run_id)
        return await self.house.store.read(row.session_id, run_id=run_id)

    async def heard(self, run_id: str, kind: str) -> int:
        """How many facts of a run say this."""
        facts = [fact for fact in await self.log(run_id) if fact.kind.startswith("AGENT_OUTPUT")]
        return sum(fact.read_payload()["type"] == kind for fact in facts)

    async def dropped(self) -> list[AuditRow]:
        await self.house.audit.flush()
        return [row for row in await self.house.store.audit(limit=1000) if row.action == "output.dropped"]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with a_scene() as scene:
        yield scene


@asynccontextmanager
async def a_scene() -> AsyncGenerator[Scene]:
    runner = WireRunner()
    async with small_house(gateway=WireGateway(runner)) as house:
        runner.connect(house)
        yield Scene(house, runner)


def test_every_type_is_here() -> None:
    assert set(SAID) == set(BROKEN) == set(KNOWN_RESULTS)


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize("kind", KNOWN_RESULTS)
async def test_a_result_for_a_foreign_run_is_dropped_and_on_record(scene: Scene, kind: str) -> None:
    """The other run is live, and of this very plugin, but was started on another connection."""
    async with a_scene() as elsewhere:
        theirs = await elsewhere.a_run()
        mine = await scene.a_run()
        before = len(await elsewhere.log(theirs))
        scene.runner.says(theirs, kind, 1, SAID[kind])
        (row,) = await scene.dropped()
        assert (row.resource, row.run_id, row.result, row.actor) == (theirs, theirs, "unauthorized", "plugin:test/one")
        scene.runner.says(mine, "run.completed", 1, {})
        assert await scene.ended(mine) == ("completed", None)
        assert len(await elsewhere.log(theirs)) == before


@pytest.mark.parametrize("kind", KNOWN_RESULTS)
async def test_a_result_after_the_end_is_dropped_and_on_record(scene: Scene, kind: str) -> None:
    run = await scene.a_run()
    scene.runner.says(run, "run.completed", 1, {})
    assert await scene.ended(run) == ("completed", None)
    before = await scene.log(run)
    scene.runner.says(run, kind, 2, SAID[kind])
    assert [row.resource for row in await scene.dropped()] == [run]
    assert await scene.log(run) == before
    assert (await scene.house.view.find(ANN, run)).status == "completed"


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize("kind", KNOWN_RESULTS)
async def test_a_result_of_the_wrong_shape_fails_its_run_and_says_why(scene: Scene, kind: str) -> None:
    run, other = await scene.a_run(), await scene.a_run()
    scene.runner.says(run, kind, 1, BROKEN[kind])
    assert await scene.ended(run) == ("failed", "runner.protocol_error")
    row = await scene.house.view.find(ANN, run)
    assert row.message is not None
    assert row.message.startswith(f"{kind}: data.")
    scene.runner.says(other, "run.completed", 1, {})
    assert await scene.ended(other) == ("completed", None)


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize("kind", KNOWN_RESULTS)
async def test_a_result_over_the_cap_fails_its_run_and_nothing_of_it_is_kept(scene: Scene, kind: str) -> None:
    run = await scene.a_run()
    scene.runner.says(run, kind, 1, SAID[kind], padding="x" * longest_result(kind))
    assert await scene.ended(run) == ("failed", "payload_too_large")
    row = await scene.house.view.find(ANN, run)
    assert str(longest_result(kind)) in (row.message or "")
    assert await scene.heard(run, kind) == 0


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize("kind", WENT_ON)
async def test_a_repeated_result_is_heard_once_and_warned_of(scene: Scene, kind: str) -> None:
    run = await scene.a_run()
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            scene.runner.says(run, kind, 1, SAID[kind])
    assert [line["action"] for line in said].count("runner.sequence_repeated") == 2
    scene.runner.says(run, "run.completed", 2, {})
    assert await scene.ended(run) == ("completed", None)
    if kind.startswith("message"):
        texts = [
            fact.read_payload()["data"]["message"]["content"]
            for fact in await scene.log(run)
            if fact.kind == "AGENT_OUTPUT:MESSAGE"
        ]
        assert texts == ["hi"]
    else:
        heard = 0 if kind == "step.finished" else 1  # a step that did not begin has no end to hear of
        assert await scene.heard(run, kind) == heard


@pytest.mark.parametrize("kind", sorted(TERMINAL_TYPES))
async def test_a_repeated_end_is_heard_once_and_the_rest_is_dropped(scene: Scene, kind: str) -> None:
    run = await scene.a_run()
    for _ in range(2):
        scene.runner.says(run, kind, 1, SAID[kind])
    status, _ = await scene.ended(run)
    assert status == ("completed" if kind == "run.completed" else "failed")
    ends = [fact.kind for fact in await scene.log(run) if fact.kind in {"AGENT_OUTPUT:FINAL", "ERROR:RUN_FAILED"}]
    assert len(ends) == 1
    assert [row.resource for row in await scene.dropped()] == [run]


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize("kind", KNOWN_RESULTS)
async def test_a_gap_is_warned_of_and_the_result_is_heard(scene: Scene, kind: str) -> None:
    run = await scene.a_run()
    scene.runner.says(run, "message.completed", 1, SAID["message.completed"])
    with structlog.testing.capture_logs() as said:
        scene.runner.says(run, kind, 5, SAID[kind])
        if kind not in TERMINAL_TYPES:
            scene.runner.says(run, "run.completed", 6, {})
    assert [line["action"] for line in said].count("runner.sequence_gap") == 1
    status, _ = await scene.ended(run)
    assert status == ("failed" if kind == "run.failed" else "completed")
    if kind in {"tool.call.started", "tool.call.completed", "state.updated", "action.requested"}:
        assert await scene.heard(run, kind) == 1


@pytest.mark.spec("gate/results")
async def test_a_type_nobody_knows_is_ignored_warned_of_and_on_record(scene: Scene) -> None:
    run = await scene.a_run()
    with structlog.testing.capture_logs() as said:
        scene.runner.says(run, "dance.started", 1, {"steps": 3})
    scene.runner.says(run, "run.completed", 2, {})
    assert await scene.ended(run) == ("completed", None)
    assert [line["type"] for line in said if line["action"] == "runner.unknown_result"] == ["dance.started"]
    ignored = [row for row in await scene.house.store.audit(run_id=run) if row.action == "result.ignored"]
    assert [row.reason for row in ignored] == ["unknown type 'dance.started'"]
    assert await scene.heard(run, "dance.started") == 0


@pytest.mark.spec("gate/results")
@pytest.mark.parametrize(
    ("data", "status"),
    [
        ({"scope": "conversation", "key": "k", "value": {"a": [1, "ä", None]}}, "allowed"),
        ({"scope": "conversation", "key": "k", "value": None}, "allowed"),
        ({"scope": "subject", "key": "k", "value": 1}, "unauthorized"),
        ({"scope": "galaxy", "key": "k", "value": 1}, "unauthorized"),
        ({"scope": "conversation", "key": "k" * 257, "value": 1}, "payload_too_large"),
        ({"scope": "conversation", "key": "k", "value": "x" * 262_145}, "payload_too_large"),
    ],
)
async def test_a_state_update_outside_the_grant_or_its_caps_is_refused_and_the_run_goes_on(
    scene: Scene, data: dict[str, Any], status: str
) -> None:
    run = await scene.a_run()
    scene.runner.says(run, "state.updated", 1, data)
    scene.runner.says(run, "run.completed", 2, {})
    assert await scene.ended(run) == ("completed", None)
    rows = [row for row in await scene.house.store.audit(run_id=run) if row.action == "state.updated"]
    assert [row.result for row in rows] == [status]


async def test_an_announced_file_may_have_all_of_its_documented_bytes(scene: Scene) -> None:
    run = await scene.a_run()
    content = b64encode(b"x" * MAX_ARTIFACT_INLINE_BYTES).decode()
    scene.runner.says(run, "artifact.created", 1, {"artifact_type": "file", "content_base64": content})
    scene.runner.says(run, "run.completed", 2, {})
    assert await scene.ended(run) == ("completed", None)
    assert await scene.heard(run, "artifact.created") == 1


@pytest.mark.parametrize("data", [None, [], [1], "three", 3, {"steps": 3}])
async def test_a_type_from_the_future_is_ignored_whatever_its_data_are(scene: Scene, data: Any) -> None:
    run = await scene.a_run()
    scene.runner.says(run, "dance.started", 1, data)
    scene.runner.says(run, "message.completed", 2, SAID["message.completed"])
    scene.runner.says(run, "run.completed", 3, None)  # pyright: ignore[reportArgumentType] - null data are none
    assert await scene.ended(run) == ("completed", None)
    assert await scene.heard(run, "message.completed") == 1


HOST_CALL = b'{"jsonrpc":"2.0","id":"q7","method":"state.get","params":%s}'
UNREADABLE = {
    "not a number": HOST_CALL % b'{"run_id":"RUN","scope":"conversation","key":NaN}',
    "beyond every number": HOST_CALL % b'{"run_id":"RUN","scope":"conversation","key":1e999}',
    "no UTF-8": HOST_CALL % b'{"run_id":"RUN","scope":"conversation","key":"\xff\xfe"}',
    "nested without end": HOST_CALL % (b'{"run_id":"RUN","a":' + b"[" * 100_000 + b"}"),
    "cut off": HOST_CALL[:-1] % b'{"run_id":"RUN"',
    "params first": b'{"params":{"id":4,"method":"x","k":NaN},"id":"q7","method":"state.get","jsonrpc":"2.0"}',
    "a word of another frame inside": HOST_CALL % b'{"run_id":"RUN","value":{"method":"run_result","n":NaN}}',
}
ODD_IDS = [b"1.5", b"true", b"null", b"{}", b"[1]", b"1e999", b'"%s"' % (b"x" * 129)]


async def answered(scene: Scene, run: str, line: bytes) -> dict[str, Any]:
    """The error frame that a line is answered with."""
    before = len(scene.runner.sent)
    scene.runner.connection.feed(line.replace(b"RUN", run.encode()) + b"\n")
    async with asyncio.timeout(20):
        while len(scene.runner.sent) == before:
            await asyncio.sleep(0)
    return scene.runner.sent[-1]


@pytest.mark.spec("wire/bad-frames")
@pytest.mark.parametrize("how", UNREADABLE)
async def test_a_host_call_that_cannot_be_read_is_answered_at_once_and_on_record(scene: Scene, how: str) -> None:
    run = await scene.a_run()
    answer = await answered(scene, run, UNREADABLE[how])
    assert (answer["id"], answer["error"]["code"]) == ("q7", -32600 if how == "beyond every number" else -32700)
    assert answer["error"]["data"]["code"] == "invalid_argument"
    assert answer["error"]["message"].startswith("state.get cannot be read: ")
    rows = [row for row in await scene.house.store.audit(limit=1000) if row.action == "state.get"]
    assert [row.result for row in rows] == ["invalid_argument"]
    scene.runner.says(run, "run.completed", 1, {})
    assert await scene.ended(run) == ("completed", None)


@pytest.mark.spec("wire/bad-frames")
@pytest.mark.parametrize("number", ODD_IDS)
async def test_a_host_call_with_an_odd_id_is_refused_under_no_id(scene: Scene, number: bytes) -> None:
    run = await scene.a_run()
    line = b'{"jsonrpc":"2.0","id":%s,"method":"state.get","params":{"run_id":"RUN","scope":"conversation","key":"k"}}'
    answer = await answered(scene, run, line % number)
    assert answer["id"] is None
    assert answer["error"]["code"] in (-32600, -32700)


@pytest.mark.spec("wire/bad-frames")
async def test_a_host_call_without_an_id_is_told_that_it_needs_one(scene: Scene) -> None:
    run = await scene.a_run()
    answer = await answered(scene, run, b'{"jsonrpc":"2.0","method":"state.get","params":{"run_id":"RUN"}}')
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "needs an id" in answer["error"]["message"]


@pytest.mark.spec("wire/bad-frames")
@pytest.mark.parametrize(
    "params",
    [b"[]", b"7", b'{"run_id":7}', b'{"run_id":"RUN","scope":"conversation","key":7}', b'{"run_id":"RUN","key":"k"}'],
)
async def test_params_of_the_wrong_shape_are_refused_as_such(scene: Scene, params: bytes) -> None:
    run = await scene.a_run()
    answer = await answered(scene, run, HOST_CALL % params)
    assert (answer["id"], answer["error"]["code"]) == ("q7", -32602)
    assert answer["error"]["data"]["code"] == "invalid_argument"


async def test_a_broken_answer_to_run_agent_fails_the_run_at_once(scene: Scene) -> None:
    run = await scene.a_run()
    number = next(sent["id"] for sent in scene.runner.sent if sent.get("method") == "run_agent")
    line = b'{"jsonrpc":"2.0","id":%d,"result":{"run_id":"%s","accepted":NaN}}\n'
    scene.runner.connection.feed(line % (number, run.encode()))
    status, _ = await scene.ended(run)
    assert status == "failed"


async def test_a_run_that_is_over_at_the_host_but_not_at_its_runner_says_nothing_more(scene: Scene) -> None:
    run = await scene.a_run()
    await scene.house.inbox.cancel(await scene.house.view.find(ANN, run), ANN)
    async with asyncio.timeout(20):
        while not any(sent.get("method") == "cancel_run" for sent in scene.runner.sent):
            await asyncio.sleep(0)
    number = next(sent["id"] for sent in scene.runner.sent if sent.get("method") == "cancel_run")
    scene.runner.connection.feed(
        json.dumps({"jsonrpc": "2.0", "id": number, "result": {"run_id": run, "ended": True}}).encode() + b"\n"
    )
    assert await scene.ended(run) == ("cancelled", "cancelled")
    before = await scene.log(run)
    scene.runner.says(run, "message.completed", 1, SAID["message.completed"])
    assert [row.resource for row in await scene.dropped()] == [run]
    assert await scene.log(run) == before
