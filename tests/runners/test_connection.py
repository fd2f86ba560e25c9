"""The connection by itself, over a transport that only remembers what was sent."""

import json
import tracemalloc
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
import structlog

from paddock.ports import Caller
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.runners.wire import calls
from paddock.runners.wire.calls import WireLimits
from paddock.runners.wire.connection import RunnerConnection, RunnerPeer
from runners.house import News, eventually

pytestmark = pytest.mark.anyio


class Wire:
    """A transport, a handler and a kill switch that remember."""

    def __init__(self, **limits: int) -> None:
        self.sent: list[dict[str, Any]] = []
        self.killed = 0
        self.open = anyio.Event()
        self.problem: Exception | None = None
        self.answer: Mapping[str, Any] = {"value": 1}
        peer = RunnerPeer(self, Caller("test/wire", "wire#1"), self.handle, self.kill, limits=WireLimits(**limits))
        self.connection = RunnerConnection(peer)

    def send(self, line: bytes) -> None:
        self.sent.append(json.loads(line))

    def close(self) -> None:
        """Nothing to close."""

    async def kill(self) -> None:
        self.killed += 1

    async def handle(self, caller: Caller, method: str, params: Mapping[str, Any], size: int) -> Mapping[str, Any]:
        await self.open.wait()
        if self.problem is not None:
            raise self.problem
        return self.answer

    def says(self, **fields: Any) -> None:
        self.connection.feed(json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")

    def result(self, run_id: str, number: int, kind: str = "message.delta") -> None:
        self.says(method="run_result", params={"run_id": run_id, "type": kind, "data": {}, "sequence": number})

    async def run(self, run_id: str = "r1", context: Mapping[str, Any] | None = None) -> tuple[News, Any]:
        news = News()
        return news, self.connection.begin_run("plugin:test/wire/a", "a", run_id, context or {}, news)


async def test_a_run_is_asked_for_with_its_context_and_acknowledged_by_the_answer() -> None:
    wire = Wire()
    news, _ = await wire.run(context={"run_id": "r1"})
    params = {"runner_id": "plugin:test/wire/a", "runner_name": "a", "context": {"run_id": "r1"}}
    assert wire.sent == [{"jsonrpc": "2.0", "id": 1, "method": "run_agent", "params": params}]
    assert news.acks == 0
    wire.says(id=1, result={"run_id": "r1", "accepted": True})
    assert news.acks == 1


async def test_a_first_result_counts_as_the_acknowledgement_and_only_once() -> None:
    wire = Wire()
    news, _ = await wire.run()
    wire.result("r1", 1)
    wire.says(id=1, result={"run_id": "r1", "accepted": True})
    assert (news.acks, len(news.results)) == (1, 1)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"code": "rate_limited"}, "rate_limited"),
        (None, "runner.refused"),
        ({"code": 5}, "runner.refused"),
        ([], "runner.refused"),
    ],
)
async def test_a_refused_run_is_lost_with_the_runners_code(data: object, code: str) -> None:
    wire = Wire()
    news, _ = await wire.run()
    wire.says(id=1, error={"code": -32000, "message": "no room", "data": data})
    assert news.losses == [(code, "no room")]


async def test_accepted_may_be_left_out_of_the_acknowledgement() -> None:
    wire = Wire()
    news, _ = await wire.run()
    wire.says(id=1, result={"run_id": "r1"})
    assert (news.acks, news.losses) == (1, [])


NO_ACKNOWLEDGEMENTS = [
    ({}, "has no run_id"),
    ({"accepted": True}, "has no run_id"),
    ([], 'must be an object: {"run_id": ..., "accepted": true}'),
    (None, 'must be an object: {"run_id": ..., "accepted": true}'),
    ("yes", 'must be an object: {"run_id": ..., "accepted": true}'),
    ({"run_id": "r2", "accepted": True}, "names another run: 'r2'"),
    ({"run_id": "r1", "accepted": False}, "says accepted is not true; a run is refused with an error"),
]


@pytest.mark.parametrize(("result", "said"), NO_ACKNOWLEDGEMENTS)
async def test_an_acknowledgement_that_is_none_fails_the_run_and_says_why(result: object, said: str) -> None:
    wire = Wire()
    news, _ = await wire.run()
    wire.says(id=1, result=result)
    assert news.losses == [("runner.protocol_error", f"the runner's answer to run_agent {said}")]


async def test_results_of_types_nobody_knows_are_warned_of_once_in_a_run_and_handed_on() -> None:
    wire = Wire()
    runs = [(await wire.run(run_id))[0] for run_id in ("r1", "r2")]
    with structlog.testing.capture_logs() as said:
        for number, kind in enumerate(["message.delta", "dance.started", "dance.ended", "run.completed"], 1):
            wire.result("r1", number, kind)
        wire.result("r2", 1, "dance.started")
    assert [(line["action"], line["run_id"], line["type"]) for line in said] == [
        ("runner.unknown_result", "r1", "dance.started"),
        ("runner.unknown_result", "r2", "dance.started"),
    ]
    assert [len(news.results) for news in runs] == [4, 1]


async def test_lines_may_arrive_in_any_pieces() -> None:
    wire = Wire()
    news, _ = await wire.run()
    whole = b"".join(
        json.dumps(
            {"jsonrpc": "2.0", "method": "run_result", "params": {"run_id": "r1", "type": "x", "sequence": n}}
        ).encode()
        + b"\n"
        for n in range(1, 20)
    )
    for size in (1, 2, 7, 100):
        piece, whole = whole[: size * 5], whole[size * 5 :]
        for start in range(0, len(piece), size):
            wire.connection.feed(piece[start : start + size])
    wire.connection.feed(whole)
    assert [result.sequence for result in news.results] == list(range(1, 20))


async def test_a_frame_of_the_very_cap_is_taken_and_one_byte_more_ends_the_connection() -> None:
    wire = Wire(max_frame_bytes=1000)
    news, _ = await wire.run()
    head = b'{"jsonrpc":"2.0","method":"run_result","params":{"run_id":"r1","type":"x","data":{"a":"'
    fits = head + b"a" * (1000 - len(head) - 4) + b'"}}}'
    wire.connection.feed(fits + b"\n")
    assert len(news.results) == 1
    wire.connection.feed(fits + b" \n")
    assert news.code == "payload_too_large"
    await eventually(lambda: wire.killed == 1)


async def test_an_endless_line_ends_the_connection_before_it_is_kept() -> None:
    wire = Wire(max_frame_bytes=1000)
    news, _ = await wire.run()
    for _ in range(11):
        wire.connection.feed(b"x" * 100)
    assert news.code == "payload_too_large"


async def test_a_context_above_the_cap_is_not_sent() -> None:
    wire = Wire(max_frame_bytes=1000)
    news, _ = await wire.run(context={"text": "x" * 1000})
    assert (news.code, wire.sent) == ("payload_too_large", [])


async def test_credit_counts_each_result_and_a_terminal_is_always_allowed() -> None:
    wire = Wire(run_credit=2)
    news, _ = await wire.run()
    for number in range(1, 5):
        wire.result("r1", number)
    assert news.losses == [], "two paid, two within the tolerance of one window"
    wire.result("r1", 5, "run.completed")
    assert news.ended
    greedy, _ = await wire.run("r2")
    for number in range(1, 6):
        wire.result("r2", number)
    assert greedy.code == "runner.protocol_error"


async def test_given_credit_is_told_and_includes_what_repetitions_cost() -> None:
    wire = Wire()
    _, run = await wire.run()
    for number in (1, 1, 1, 2):
        wire.result("r1", number)
    run.give_credit(10)
    assert wire.sent[-1] == {"jsonrpc": "2.0", "method": "run_credit", "params": {"run_id": "r1", "credit": 12}}


async def test_a_failed_run_is_cancelled_at_its_runner_and_one_that_will_not_stop_is_ended() -> None:
    wire = Wire(run_credit=1)
    news, _ = await wire.run()
    for number in range(1, 4):
        wire.result("r1", number)
    assert news.code == "runner.protocol_error"
    await eventually(lambda: wire.sent[-1]["method"] == "cancel_run")
    wire.says(id=wire.sent[-1]["id"], error={"code": 1, "message": "will not"})
    await eventually(lambda: wire.killed == 1)


async def test_the_end_of_the_peer_ends_every_run_and_every_question_once() -> None:
    wire = Wire()
    heard = [(await wire.run(f"r{number}"))[0] for number in range(3)]
    async with anyio.create_task_group() as group:
        group.start_soon(wire.connection.ping)
        await eventually(lambda: wire.sent[-1]["method"] == "ping")
        wire.connection.end("runner.crashed", "gone")
        wire.connection.end("runner.crashed", "gone again")
    assert [news.losses for news in heard] == [[("runner.crashed", "gone")]] * 3
    wire.result("r1", 1)
    late, _ = await wire.run("late")
    assert late.code == "runner.crashed"


async def test_a_listener_that_fails_costs_its_run_and_nothing_else() -> None:
    wire = Wire()
    news, _ = await wire.run()
    other, _ = await wire.run("r2")

    def fail(_result: object) -> None:
        raise ZeroDivisionError

    news.on_result = fail
    wire.result("r1", 1)
    wire.result("r2", 1)
    assert (news.code, len(other.results)) == ("runtime_error", 1)


# --- host calls -------------------------------------------------------------------------------------------------------


def call(wire: Wire, number: object = "c1", method: str = "state.get", params: object = None) -> None:
    wire.says(id=number, method=method, params={"run_id": "r1"} if params is None else params)


async def answered(wire: Wire) -> dict[str, Any]:
    await eventually(lambda: bool(wire.sent))
    return wire.sent[-1]


@pytest.mark.parametrize("number", ["c1", 0, 7, ""])
async def test_a_host_call_is_answered_under_its_own_id(number: object) -> None:
    wire = Wire()
    wire.open.set()
    call(wire, number)
    assert await answered(wire) == {"jsonrpc": "2.0", "id": number, "result": {"value": 1}}


PROBLEMS = [
    (HostError(ErrorCode.NOT_FOUND, "nothing here", details={"a": 1}), "not_found", False),
    (HostError(ErrorCode.RATE_LIMITED, "slower", retryable=True), "rate_limited", True),
    (StorageUnavailableError(), "runtime_error", True),
    (ZeroDivisionError("secret"), "runtime_error", False),
]


@pytest.mark.parametrize(("problem", "code", "retryable"), PROBLEMS)
async def test_a_refusal_carries_one_of_the_wires_codes(problem: Exception, code: str, retryable: bool) -> None:
    wire = Wire()
    wire.problem = problem
    wire.open.set()
    call(wire)
    error = (await answered(wire))["error"]
    assert (error["code"], error["data"]["code"], error["data"]["retryable"]) == (-32000, code, retryable)
    assert "secret" not in json.dumps(error)


async def test_unknown_methods_and_odd_params_are_refused_by_their_own_codes() -> None:
    wire = Wire()
    wire.open.set()
    call(wire, method="host.destroy")
    call(wire, "c2", params=[1])
    await eventually(lambda: len(wire.sent) == 2)
    codes = [(sent["error"]["code"], sent["error"]["data"]["code"]) for sent in wire.sent]
    assert codes == [(-32601, "invalid_argument"), (-32602, "invalid_argument")]


async def test_an_answer_above_the_cap_is_refused_and_not_cut() -> None:
    wire = Wire(max_frame_bytes=1000)
    wire.answer = {"text": "x" * 1000}
    wire.open.set()
    call(wire)
    assert (await answered(wire))["error"]["data"]["code"] == "payload_too_large"


async def test_calls_wait_their_turn_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MAX_WAITING", 10)
    wire = Wire()
    for number in range(calls.MAX_RUNNING + 10 + 5):
        call(wire, number)
    refused = [sent["error"]["data"] for sent in wire.sent]
    assert [(error["code"], error["retryable"]) for error in refused] == [("rate_limited", True)] * 5
    wire.open.set()
    await eventually(lambda: len(wire.sent) == calls.MAX_RUNNING + 10 + 5)
    assert len({sent["id"] for sent in wire.sent}) == len(wire.sent)


async def test_calls_end_with_the_connection() -> None:
    wire = Wire()
    call(wire)
    await anyio.lowlevel.checkpoint()
    wire.connection.end("runner.crashed", "gone")
    wire.open.set()
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    assert wire.sent == []


# --- answers in chunks ------------------------------------------------------------------------------------------------


class Pieces:
    """An answer in chunks that remembers how far it came and that it was closed."""

    def __init__(self, count: int, *, then_wait: bool = False, problem: Exception | None = None) -> None:
        self.given = 0
        self.closed = 0
        self._count, self._then_wait, self._problem = count, then_wait, problem

    @property
    def result(self) -> Mapping[str, Any]:
        assert self.given == self._count, "read before the end"
        return {"usage": {"total_tokens": self._count}}

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> Mapping[str, Any]:
        await anyio.lowlevel.checkpoint()
        if self.given < self._count:
            self.given += 1
            return {"text": str(self.given)}
        if self._problem is not None:
            raise self._problem
        if self._then_wait:
            await anyio.sleep_forever()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


async def streaming(pieces: Pieces, **limits: int) -> tuple[Wire, Any]:
    """A wire on which run r1 has asked for these pieces as call c1."""
    wire = Wire(**limits)
    _, run = await wire.run()
    wire.answer = pieces  # pyright: ignore[reportAttributeAccessIssue]
    wire.open.set()
    call(wire, "c1", "models.stream")
    return wire, run


def chunks_of(wire: Wire) -> list[Any]:
    return [(sent["params"]["id"], sent["params"]["sequence"]) for sent in wire.sent if "call_chunk" in str(sent)]


def ends_of(wire: Wire) -> list[dict[str, Any]]:
    return [sent for sent in wire.sent if sent.get("id") == "c1"]


async def test_an_answer_in_chunks_is_sent_in_order_and_ended_by_the_response() -> None:
    pieces = Pieces(3)
    wire, _ = await streaming(pieces)
    await eventually(lambda: bool(ends_of(wire)))
    assert chunks_of(wire) == [("c1", 1), ("c1", 2), ("c1", 3)]
    assert wire.sent[2]["params"]["data"] == {"text": "2"}
    assert wire.sent[-1] == {"jsonrpc": "2.0", "id": "c1", "result": {"usage": {"total_tokens": 3}}}
    assert pieces.closed == 1


async def test_chunks_stop_at_the_credit_and_go_on_when_the_peer_gives_more() -> None:
    wire, _ = await streaming(Pieces(10), call_credit=2)
    await eventually(lambda: len(chunks_of(wire)) == 2)
    await settle()
    assert len(chunks_of(wire)) == 2
    wire.says(method="call_credit", params={"id": "c1", "credit": 3})
    await eventually(lambda: len(chunks_of(wire)) == 5)
    await settle()
    assert (len(chunks_of(wire)), ends_of(wire)) == (5, [])
    wire.says(method="call_credit", params={"id": "c1", "credit": 100})
    await eventually(lambda: bool(ends_of(wire)))
    assert len(chunks_of(wire)) == 10


async def settle() -> None:
    """Let everything that can go on without us go on."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("how", ["completed", "released"])
async def test_the_end_of_its_run_cuts_an_answer_off_and_still_answers_once(how: str) -> None:
    pieces = Pieces(1, then_wait=True)
    wire, run = await streaming(pieces, call_credit=0)
    await eventually(lambda: pieces.given == 1)
    if how == "completed":
        wire.result("r1", 1, "run.completed")
    else:
        run.release()
    await eventually(lambda: bool(ends_of(wire)))
    [end] = ends_of(wire)
    assert (end["error"]["data"]["code"], end["error"]["message"]) == ("unauthorized", "the run is over")
    assert (chunks_of(wire), pieces.closed) == ([], 1)


async def test_the_end_of_another_run_cuts_nothing_off() -> None:
    pieces = Pieces(1, then_wait=True)
    wire, _ = await streaming(pieces)
    _, other = await wire.run("r2")
    await eventually(lambda: len(chunks_of(wire)) == 1)
    other.release()
    await settle()
    assert (ends_of(wire), pieces.closed) == ([], 0)
    wire.connection.end("runner.crashed", "gone")
    await eventually(lambda: pieces.closed == 1)


async def test_chunks_for_a_run_that_ended_meanwhile_are_not_begun() -> None:
    wire, pieces = Wire(), Pieces(3)
    _, run = await wire.run()
    wire.answer = pieces  # pyright: ignore[reportAttributeAccessIssue]
    call(wire, "c1", "models.stream")
    await settle()
    run.release()
    wire.open.set()
    await eventually(lambda: bool(ends_of(wire)))
    assert (ends_of(wire)[0]["error"]["data"]["code"], chunks_of(wire), pieces.closed) == ("unauthorized", [], 1)


async def test_a_problem_in_the_middle_ends_the_chunks_with_its_refusal() -> None:
    wire, _ = await streaming(Pieces(2, problem=HostError(ErrorCode.RATE_LIMITED, "slower", retryable=True)))
    await eventually(lambda: bool(ends_of(wire)))
    assert (len(chunks_of(wire)), ends_of(wire)[0]["error"]["data"]["code"]) == (2, "rate_limited")


async def test_a_second_call_of_the_same_id_is_refused_and_the_first_goes_on() -> None:
    wire, _ = await streaming(Pieces(5), call_credit=1)
    await eventually(lambda: len(chunks_of(wire)) == 1)
    wire.answer = Pieces(1)  # pyright: ignore[reportAttributeAccessIssue]
    call(wire, "c1", "models.stream")
    await eventually(lambda: bool(ends_of(wire)))
    assert ends_of(wire)[0]["error"]["data"]["code"] == "invalid_argument"
    wire.says(method="call_credit", params={"id": "c1", "credit": 9})
    await eventually(lambda: len(ends_of(wire)) == 2)
    assert len(chunks_of(wire)) == 5


@pytest.mark.parametrize("params", [None, {}, {"id": "c1"}, {"id": "c1", "credit": "9"}, {"id": "c1", "credit": -1}])
async def test_credit_that_cannot_be_read_is_warned_of_and_gives_nothing(params: object) -> None:
    wire, _ = await streaming(Pieces(5), call_credit=1)
    await eventually(lambda: len(chunks_of(wire)) == 1)
    with structlog.testing.capture_logs() as said:
        wire.says(method="call_credit", params=params)
        await settle()
    assert (len(chunks_of(wire)), [line["action"] for line in said]) == (1, ["runner.unknown_notification"])


def test_every_code_of_the_house_has_one_of_the_wires_seven() -> None:
    seven = {"unauthorized", "not_found", "deadline_exceeded", "payload_too_large", "rate_limited", "invalid_argument"}
    assert set(calls.API_CODE) == set(ErrorCode)
    assert set(calls.API_CODE.values()) <= seven | {"runtime_error"}


async def test_a_line_that_comes_in_very_many_pieces_takes_no_more_than_its_length() -> None:
    wire, length = Wire(), 1_000_000
    tracemalloc.start()
    for number in range(length):
        wire.connection.feed(b"%d" % (number % 10))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * length
    assert not wire.connection.closed
    wire.connection.feed(b"\n")
