"""The gate at work: what it does while the work goes on, when that fails, and when somebody floods it."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gate.house import ELSEWHERE, HERE, GateHouse, Wire, an_answer, gate_house
from host.scripted import BOB
from paddock.host.calls import host_calls
from paddock.host.calls.host_calls import HostCalls
from paddock.host.calls.work import CallHandler
from paddock.host.runs.live_runs import LiveRuns
from paddock.ports import Caller
from paddock.rules.access.limits import MAX_CALL_BYTES, Rates
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, SessionRow
from paddock.rules.values import replace
from paddock.runners.wire import calls as runner_calls
from paddock_sdk.protocol.host_calls import StateGetResult
from runners.house import eventually
from stores import QuickStore

pytestmark = pytest.mark.anyio

GET = {"scope": "conversation", "key": "k"}


@pytest.fixture
async def gate(store: QuickStore, tmp_path: Path) -> AsyncIterator[GateHouse]:
    async with gate_house(store, "direct", tmp_path) as house:
        yield house


class Doing:
    """Another gate over the same runs, whose `state.get`, `state.set` and `models.stream` the test writes."""

    def __init__(self, gate: GateHouse, **options: Any) -> None:
        self.house = gate.house
        self.read: Any = lambda: StateGetResult(value=1, found=True)
        self.pieces: list[Any] = []
        self.closed = 0
        work = {
            "state.get": CallHandler(read=self._read),
            "state.set": CallHandler(write=self._write),
            "models.stream": CallHandler(stream=lambda _grant, _asked: Told(self)),
        }
        clock = options.pop("clock", self.house.approvals.clock)
        live, outage = gate.house.runs.live, gate.house.sessions.outage
        options = {"live": live, "outage": outage, **options}
        self.calls = HostCalls(work=work, records=gate.house.store, audit=gate.house.audit, clock=clock, **options)

    async def _read(self, _grant: Grant, _asked: Any) -> Any:
        answer = self.read()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def _write(self, _grant: Grant, _asked: Any, audit: AuditRow) -> Any:
        answer = await self._read(_grant, _asked)
        await self.house.store.write([audit])
        return answer

    async def rows(self, action: str = "state.get") -> list[tuple[str, str]]:
        await self.house.audit.flush()
        found = await self.house.store.audit(limit=10_000)
        return [(row.result, row.reason) for row in reversed(found) if row.action == action]


class Told:
    """A stream that says what the test told it to: pieces, problems, or a wait without end."""

    result: Mapping[str, Any] = {"usage": {}}

    def __init__(self, doing: Doing) -> None:
        self._doing = doing

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        for piece in self._doing.pieces:
            if isinstance(piece, Exception):
                raise piece
            if piece is None:
                await asyncio.Event().wait()
            else:
                yield piece

    async def aclose(self) -> None:
        self._doing.closed += 1


async def ask(doing: Doing, run_id: str, method: str = "state.get", **more: Any) -> Any:
    return await doing.calls(HERE, method, {"run_id": run_id, **GET, **more}, 100)


async def refusal(doing: Doing, run_id: str, method: str = "state.get", **more: Any) -> HostError:
    with pytest.raises(HostError) as error:
        await ask(doing, run_id, method, **more)
    return error.value


def raising(problem: Exception) -> Any:
    def read() -> Any:
        raise problem

    return read


# --- the work fails, or takes too long -------------------------------------------------------------------------------


async def test_a_mistake_of_ours_is_told_in_general_and_recorded_as_ours(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.read = raising(ZeroDivisionError("secret"))
    error = await refusal(doing, live.run_id)
    assert (error.code, error.message, error.retryable) == (ErrorCode.RUNTIME_ERROR, "the host failed to answer", False)
    assert await doing.rows() == [("runtime_error", "a mistake of the host")]


async def test_what_the_work_refuses_is_told_and_recorded_as_it_said_it(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.read = raising(HostError(ErrorCode.NOT_FOUND, "no such thing", retryable=True, details={"a": 1}))
    error = await refusal(doing, live.run_id)
    assert (error.code, error.message, error.retryable, error.details) == (
        ErrorCode.NOT_FOUND,
        "no such thing",
        True,
        {"a": 1},
    )
    assert await doing.rows() == [("not_found", "no such thing")]


async def test_a_store_that_is_away_is_an_error_with_a_row_that_waits_for_it(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.read = raising(StorageUnavailableError("disk"))
    with pytest.raises(StorageUnavailableError):
        await ask(doing, live.run_id)
    assert await doing.rows() == [("runtime_error", "the store is away")]


@pytest.mark.spec("gate/deadline")
@pytest.mark.parametrize("method", ["state.get", "state.set"])
async def test_work_ends_by_the_deadline_of_its_run(gate: GateHouse, method: str) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=doing.house.approvals.clock() + 0.5)
    doing.read = lambda: asyncio.Event().wait()
    async with asyncio.timeout(20):
        error = await refusal(doing, live.run_id, method)
    assert error.code is ErrorCode.DEADLINE_EXCEEDED
    assert "not known" in error.message
    assert await doing.rows(method) == [("deadline_exceeded", error.message)]


async def test_a_deadline_is_met_on_the_second_and_missed_after_it(gate: GateHouse) -> None:
    now = [100.0]
    doing = Doing(gate, clock=lambda: now[0])
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=100.001)
    assert await ask(doing, live.run_id) == {"value": 1, "found": True}
    now[0] = 100.002
    error = await refusal(doing, live.run_id)
    assert (error.code, error.message) == (ErrorCode.DEADLINE_EXCEEDED, "the run is past its deadline")


async def test_a_read_whose_runner_is_gone_is_still_on_record(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    begun = asyncio.Event()

    async def wait() -> Any:
        begun.set()
        await asyncio.Event().wait()

    doing.read = wait
    for method in ("state.get", "state.set"):
        begun.clear()
        call = asyncio.ensure_future(ask(doing, live.run_id, method))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert await doing.rows() == [("allowed", "in the grant of the run; its runner was gone before the answer")]
    assert await doing.rows("state.set") == []


@pytest.mark.spec("gate/deadline")
async def test_an_answer_that_does_not_fit_a_frame_is_refused_and_not_cut(gate: GateHouse) -> None:
    doing = Doing(gate, max_answer_bytes=100)
    live, _ = await gate.a_run()
    overhead = len(b'{"value":"","found":true}')
    doing.read = lambda: StateGetResult(value="x" * (100 - overhead), found=True)
    assert len((await ask(doing, live.run_id))["value"]) == 100 - overhead
    doing.read = lambda: StateGetResult(value="x" * (101 - overhead), found=True)
    error = await refusal(doing, live.run_id)
    assert error.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert error.message == "the answer would have 101 bytes, more than 100; ask for less at once"
    assert sorted(result for result, _ in await doing.rows()) == ["allowed", "payload_too_large"]


async def test_an_answer_leaves_out_what_is_null(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.read = lambda: StateGetResult(value=None, found=False)
    assert await ask(doing, live.run_id) == {"found": False}


# --- streams ---------------------------------------------------------------------------------------------------------

STREAM = {"model_id": "demo", "messages": []}


async def streamed(doing: Doing, run_id: str) -> tuple[list[Any], HostError | None]:
    chunks = await doing.calls(HERE, "models.stream", {"run_id": run_id, **STREAM}, 100)
    found: list[Any] = []
    try:
        async for piece in chunks:  # pyright: ignore[reportGeneralTypeIssues]
            found.append(piece)  # noqa: PERF401 - what came before a break counts
        assert chunks.result == {"usage": {}}  # pyright: ignore[reportAttributeAccessIssue]
    except HostError as error:
        return found, error
    finally:
        await chunks.aclose()  # pyright: ignore[reportAttributeAccessIssue]
    return found, None


@pytest.mark.spec("gate/audit")
@pytest.mark.parametrize(
    ("pieces", "result"),
    [
        ([{"n": 1}, {"n": 2}], "allowed"),
        ([], "allowed"),
        ([HostError(ErrorCode.NOT_FOUND, "none such")], "not_found"),
        ([{"n": 1}, HostError(ErrorCode.RUNTIME_ERROR, "broke later")], "allowed"),
    ],
)
async def test_a_stream_has_one_row_for_how_it_began(gate: GateHouse, pieces: list[Any], result: str) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.pieces = pieces
    found, error = await streamed(doing, live.run_id)
    assert found == [piece for piece in pieces if isinstance(piece, dict)]
    assert (error is None) == all(isinstance(piece, dict) for piece in pieces)
    assert [row for row, _ in await doing.rows("models.stream")] == [result]
    assert doing.closed == 1


async def test_a_stream_that_breaks_by_our_mistake_is_on_record(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.pieces = [ZeroDivisionError("x")]
    with pytest.raises(ZeroDivisionError):
        await streamed(doing, live.run_id)
    assert await doing.rows("models.stream") == [("runtime_error", "the work failed")]


async def test_a_stream_without_a_piece_is_on_record_when_it_ends_and_not_when_it_is_closed(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    doing.pieces = []
    chunks: Any = await doing.calls(HERE, "models.stream", {"run_id": live.run_id, **STREAM}, 100)
    assert [piece async for piece in chunks] == []
    assert [row for row, _ in await doing.rows("models.stream")] == ["allowed"]


@pytest.mark.spec("gate/deadline")
@pytest.mark.parametrize(("pieces", "result"), [([None], "deadline_exceeded"), ([{"n": 1}, None], "allowed")])
async def test_a_stream_ends_by_the_deadline_of_its_run(gate: GateHouse, pieces: list[Any], result: str) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=doing.house.approvals.clock() + 0.5)
    doing.pieces = pieces
    async with asyncio.timeout(20):
        _, error = await streamed(doing, live.run_id)
    assert error is not None
    assert error.code is ErrorCode.DEADLINE_EXCEEDED
    assert error.message == "the run's deadline passed while this was being answered"
    assert [row for row, _ in await doing.rows("models.stream")] == [result]


async def test_a_stream_that_nobody_read_is_on_record(gate: GateHouse) -> None:
    doing = Doing(gate)
    live, _ = await gate.a_run()
    chunks: Any = await doing.calls(HERE, "models.stream", {"run_id": live.run_id, **STREAM}, 100)
    await chunks.aclose()
    assert [row for row, _ in await doing.rows("models.stream")] == ["allowed"]
    assert doing.closed == 1


# --- what is no call at all ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "sentence"),
    [
        ("host.destroy", {}, "there is no host call 'host.destroy'"),
        ("x" * 500, {}, f"there is no host call {'x' * 128!r}"),
        ("state.get", [1], "state.get: params must be an object"),
        ("state.get", None, "state.get: params must be an object"),
        ("state.get", {"run_id": "r", "scope": "s"}, "state.get: key: Field required"),
        (
            "models.invoke",
            {"run_id": "r", "model_id": "m", "messages": [{"role": "king"}]},
            "models.invoke: messages.0.role",
        ),
    ],
)
async def test_what_cannot_be_read_is_said_and_recorded(
    gate: GateHouse, method: str, params: Any, sentence: str
) -> None:
    with pytest.raises(HostError) as error:
        await gate.house.calls(HERE, method, params, 10)
    assert error.value.code is ErrorCode.INVALID_ARGUMENT
    assert error.value.message.startswith(sentence)
    row = (await gate.house.store.audit(limit=1))[0]
    assert (row.action, row.result, row.reason) == (method[:128], "invalid_argument", error.value.message)
    assert (row.actor, row.workspace_id, row.runner_id, row.session_id) == ("plugin:test/one", "", None, None)


async def test_a_frame_above_the_cap_is_refused_before_anything_is_read(gate: GateHouse) -> None:
    with pytest.raises(HostError) as error:
        await gate.house.calls(HERE, "host.destroy", None, MAX_CALL_BYTES + 1)
    assert error.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    assert error.value.message == f"a host call may have at most {MAX_CALL_BYTES} bytes"
    with pytest.raises(HostError) as other:
        await gate.house.calls(HERE, "host.destroy", None, MAX_CALL_BYTES)
    assert other.value.code is ErrorCode.INVALID_ARGUMENT


async def test_before_any_run_could_be_known_every_call_is_refused(gate: GateHouse) -> None:
    store, outage = gate.house.store, gate.house.sessions.outage
    alone = HostCalls(work={}, live=LiveRuns(), outage=outage, records=store, audit=gate.house.audit, clock=lambda: 5.0)
    with pytest.raises(HostError) as error:
        await alone(HERE, "state.get", {"run_id": "r" * 100, **GET}, 10)
    assert (error.value.code, error.value.message) == (ErrorCode.UNAUTHORIZED, "this run may not do that")
    row = (await gate.house.store.audit(limit=1))[0]
    assert (row.time, row.run_id, row.resource, row.scope) == (5.0, "r" * 64, "k", "conversation")
    assert alone.offered == frozenset()


async def test_the_audit_knows_why_a_run_was_not_the_callers_to_speak_for(gate: GateHouse) -> None:
    live, _ = await gate.a_run()
    for caller, run_id, reason in (
        (ELSEWHERE, live.run_id, "the run was started on another connection"),
        (HERE, "unknown", "no such run is active"),
    ):
        with pytest.raises(HostError):
            await gate.house.calls(caller, "state.get", {"run_id": run_id, **GET}, 10)
        assert (await gate.house.store.audit(limit=1))[0].reason == reason


async def test_a_run_that_said_its_last_word_gets_nothing_more_even_before_that_is_on_record(gate: GateHouse) -> None:
    live, at_runner = await gate.a_run()
    at_runner.say("run.completed")
    assert live.settled
    assert not live.over
    with pytest.raises(HostError) as error:
        await gate.house.calls(HERE, "state.get", {"run_id": live.run_id, **GET}, 10)
    assert error.value.code is ErrorCode.UNAUTHORIZED


# --- other conversations ---------------------------------------------------------------------------------------------


@pytest.mark.spec("gate/other-conversations")
async def test_other_conversations_of_the_workspace_are_read_only_when_granted_and_each_is_recorded(
    gate: GateHouse,
) -> None:
    live, _ = await gate.a_run()
    theirs = str(uuid.uuid4())
    await gate.house.say("hello", thread=theirs, who=BOB)
    await gate.house.gateway.next()
    params = {"run_id": live.run_id, "conversation_id": theirs}
    with pytest.raises(HostError) as error:
        await gate.house.calls(HERE, "history.page", params, 100)
    assert error.value.code is ErrorCode.UNAUTHORIZED
    live.grant = replace(live.grant, history_scope="workspace")
    await gate.house.calls(HERE, "history.page", params, 100)
    await gate.house.audit.flush()
    row = (await gate.house.store.audit(limit=1))[0]
    assert (row.result, row.resource, row.scope) == ("allowed", theirs, theirs)


@pytest.mark.spec("gate/other-conversations")
@pytest.mark.parametrize("known", [True, False])
async def test_a_conversation_of_another_workspace_looks_like_none(
    gate: GateHouse, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, history_scope="workspace")

    async def session(session_id: str) -> SessionRow | None:
        return SessionRow(session_id, "another", "eve", 0.0) if known else None

    monkeypatch.setattr(gate.house.store, "session", session)
    with pytest.raises(HostError) as error:
        await gate.house.calls(HERE, "history.page", {"run_id": live.run_id, "conversation_id": "x"}, 100)
    assert (error.value.code, error.value.message) == (
        ErrorCode.UNAUTHORIZED,
        "this run may not read that conversation",
    )
    assert (await gate.house.store.audit(limit=1))[0].reason == "no conversation of the run's workspace"


# --- rates -----------------------------------------------------------------------------------------------------------


@pytest.mark.spec("gate/rates")
async def test_the_runs_of_a_plugin_share_a_rate_and_one_that_is_over_its_own_takes_none_of_it(gate: GateHouse) -> None:
    doing = Doing(gate, clock=lambda: 100.0, rates=Rates((1.0, 2.0), (1.0, 3.0)))
    first, second = (await gate.a_run())[0], (await gate.a_run())[0]
    for run in (first, second):
        run.grant = replace(run.grant, deadline_at=1000.0)
    for _ in range(2):
        await ask(doing, first.run_id)
    for _ in range(3):
        error = await refusal(doing, first.run_id)
        assert (error.code, error.retryable) == (ErrorCode.RATE_LIMITED, True)
        assert (error.details, error.message) == ({"retry_after": 1.0}, "too many host calls; try again in 1.00 s")
    await ask(doing, second.run_id)
    assert (await refusal(doing, second.run_id)).code is ErrorCode.RATE_LIMITED
    third = (await gate.a_run())[0]
    third.grant = replace(third.grant, deadline_at=1000.0)
    answer = await doing.calls(Caller("test/other", "c1"), "state.get", {"run_id": third.run_id, **GET}, 10)
    assert answer["found"]


@pytest.mark.spec("gate/rates")
async def test_refused_calls_cost_a_token_too(gate: GateHouse) -> None:
    doing = Doing(gate, clock=lambda: 100.0, rates=Rates((1.0, 2.0), None))
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=1000.0)
    for _ in range(2):
        assert (await refusal(doing, live.run_id, scope="subject")).code is ErrorCode.UNAUTHORIZED
    assert (await refusal(doing, live.run_id)).code is ErrorCode.RATE_LIMITED


async def test_a_call_pays_once_also_when_its_work_refuses_it(gate: GateHouse) -> None:
    doing = Doing(gate, clock=lambda: 100.0, rates=Rates((1.0, 2.0), None))
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=1000.0)
    doing.read = raising(HostError(ErrorCode.NOT_FOUND, "none"))
    assert (await refusal(doing, live.run_id)).code is ErrorCode.NOT_FOUND
    doing.read = lambda: StateGetResult(found=True)
    assert await ask(doing, live.run_id) == {"found": True}


async def test_lifted_rates_refuse_nobody(gate: GateHouse) -> None:
    doing = Doing(gate, clock=lambda: 100.0, rates=Rates.of_a_run(0))
    live, _ = await gate.a_run()
    live.grant = replace(live.grant, deadline_at=1000.0)
    for _ in range(1100):
        await ask(doing, live.run_id)
    assert (await refusal(doing, live.run_id, scope="subject")).code is ErrorCode.UNAUTHORIZED


@pytest.mark.spec("gate/rates")
async def test_a_flood_of_refusals_waits_its_turn(gate: GateHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_calls, "REFUSALS_BURST", 3.0)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(host_calls.asyncio, "sleep", sleep)
    doing = Doing(gate, clock=lambda: 100.0)
    for _ in range(5):
        await refusal(doing, "unknown")
    assert slept == [0.01, 0.02]
    with pytest.raises(HostError):
        await doing.calls(Caller("test/other", "c9"), "state.get", {"run_id": "unknown", **GET}, 10)
    assert len(slept) == 2


# --- over the wire ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("gate/audit")
async def test_calls_that_never_reach_the_gate_are_on_record_too(
    gate: GateHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_calls, "MAX_WAITING", 0)
    live, _ = await gate.a_run()
    wire = Wire(gate.house, HERE)
    wire.run(live.run_id)
    live.grant = replace(live.grant, actions=frozenset())
    for number in range(runner_calls.MAX_RUNNING + 3):
        frame = {"jsonrpc": "2.0", "id": number, "method": "state.get", "params": {"run_id": live.run_id, **GET}}
        wire.connection.feed(json.dumps(frame).encode() + b"\n")
    await eventually(lambda: len(wire.sent) == runner_calls.MAX_RUNNING + 3 + 1)
    await gate.house.audit.flush()
    rows = await gate.house.store.audit(limit=10_000, run_id=live.run_id)
    over = [row for row in rows if row.result == "rate_limited"]
    assert len(over) == 3
    assert {(row.action, row.resource, row.reason) for row in over} == {("state.get", "k", "too many calls wait")}
    refused = [row for row in rows if row.result == "unauthorized" and row.action == "state.get"]
    assert len(refused) == runner_calls.MAX_RUNNING


@pytest.mark.spec("gate/audit")
async def test_how_many_more_there_were_is_said_in_the_row(gate: GateHouse) -> None:
    gate.house.calls.overloaded(HERE, "state.get", {"run_id": "r", **GET}, 7)
    await gate.house.audit.flush()
    row = (await gate.house.store.audit(limit=1))[0]
    assert (row.reason, row.result) == ("too many calls wait, and 7 more like it", "rate_limited")


@pytest.mark.parametrize(("method", "params", "code"), [("host.destroy", {}, -32601), ("state.get", [1], -32602)])
async def test_a_frame_that_is_no_call_has_its_own_json_rpc_code_and_a_row(
    gate: GateHouse, method: str, params: Any, code: int
) -> None:
    wire = Wire(gate.house, HERE)
    answer = await wire.call(method, params)
    assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (code, "invalid_argument")
    row = (await gate.house.store.audit(limit=1))[0]
    assert (row.action, row.result) == (method, "invalid_argument")


async def test_what_the_wire_carries_is_what_was_answered(gate: GateHouse) -> None:
    live, _ = await gate.a_run()
    wire = Wire(gate.house, HERE)
    wire.run(live.run_id)
    await wire.call("state.set", {"run_id": live.run_id, **GET, "value": {"a": [1, None, "ä"]}})
    answer = await wire.call("state.get", {"run_id": live.run_id, **GET})
    assert answer["result"]["value"] == {"a": [1, None, "ä"]}
    assert an_answer("state.get").found is True


@pytest.mark.spec("gate/rates")
async def test_a_workspace_over_the_rate_of_a_plugin_takes_none_of_anothers(gate: GateHouse) -> None:
    doing = Doing(gate, clock=lambda: 100.0, rates=Rates((1.0, 9.0), (1.0, 2.0)))
    loud, quiet = (await gate.a_run())[0], (await gate.a_run())[0]
    loud.grant = replace(loud.grant, deadline_at=1000.0)
    scope = replace(quiet.grant.scope, workspace_id="another")
    quiet.grant = replace(quiet.grant, deadline_at=1000.0, scope=scope)
    for _ in range(2):
        await ask(doing, loud.run_id)
    for _ in range(5):
        assert (await refusal(doing, loud.run_id)).code is ErrorCode.RATE_LIMITED
    await ask(doing, quiet.run_id)
