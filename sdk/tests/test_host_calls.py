"""Host calls from a run: what goes out, what comes back, refusals, streams, deadlines."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from paddock_sdk import AgentRunner, HostApi, HostCallError, Results, RunContext, message, state_updated
from paddock_sdk.protocol.host_calls import METHODS
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio
Ask = Callable[[HostApi], Awaitable[Any]]

EVERYTHING = {
    "models": ["invoke", "stream", "rerank"],
    "tools": ["detail", "call"],
    "knowledge_bases": ["list", "retrieve"],
    "history": ["page", "search"],
    "events": ["get", "page"],
    "artifacts": ["metadata", "read", "create"],
    "storage": ["plugin", "workspace", "binding"],
    "platform_api": ["message.edit"],
}


class Asking(AgentRunner):
    """Makes one call and keeps what came of it."""

    permissions = EVERYTHING
    capabilities = {"steering": True}  # noqa: RUF012

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.got: Any = None

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            self.got = await self._ask(api)
        except HostCallError as error:
            self.got = error
        yield message("done")


async def all_of(stream: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in stream]


HELLO = {"role": "assistant", "content": "hello"}
EVENT = {"event_id": "e1", "event_type": "message.received", "source": "api"}
ANSWERS: dict[str, Callable[[Any], Any]] = {
    "models.invoke": lambda p: {"message": {**HELLO, "content": p.messages[0].text}, "usage": {"total_tokens": 2}},
    "models.stream": lambda p: [
        {"chunk": {"content": "hel"}},
        {"chunk": {"content": "lo"}},
        {"usage": {"total_tokens": 2}},
    ],
    "models.rerank": lambda p: {"results": [{"index": len(p.documents) - 1, "relevance_score": 0.9}]},
    "tools.get_detail": lambda p: {"tool_name": p.tool_name, "description": "adds", "parameters": {"type": "object"}},
    "tools.call": lambda p: {"result": p.parameters["a"] + 1},
    "knowledge.retrieve": lambda p: {
        "results": [{"id": "1", "content": [{"type": "text", "text": "x"}], "distance": 0.1}]
    },
    "events.get": lambda p: {**EVENT, "event_id": p.event_id},
    "events.page": lambda p: {"items": [EVENT], "has_more": False},
}
CALLS: dict[str, tuple[Ask, Callable[[Any], bool]]] = {
    "models.invoke": (
        lambda api: api.models.invoke("demo", [{"role": "user", "content": "hi"}]),
        lambda r: r.message.text == "hi",
    ),
    "models.stream": (
        lambda api: all_of(api.models.stream("demo", [{"role": "user", "content": "hi"}])),
        lambda r: "".join(piece.chunk.text for piece in r if piece.chunk) == "hello" and r[-1].usage.total_tokens == 2,
    ),
    "models.rerank": (lambda api: api.models.rerank("demo", "q", ["a", "b"]), lambda r: r[0].index == 1),
    "tools.get_detail": (lambda api: api.tools.get_detail("add"), lambda r: r.parameters == {"type": "object"}),
    "tools.call": (lambda api: api.tools.call("add", {"a": 1}), lambda r: r.result == 2),
    "knowledge.retrieve": (lambda api: api.knowledge.retrieve("kb", "q"), lambda r: r[0].content[0].text == "x"),
    "history.page": (lambda api: api.history.page(limit=1), lambda r: r.items[0].content == "now" and r.has_more),
    "history.search": (
        lambda api: api.history.search("FIRST"),
        lambda r: [i.content for i in r.items] == ["the first"],
    ),
    "events.get": (lambda api: api.events.get("e7"), lambda r: r.event_id == "e7"),
    "events.page": (lambda api: api.events.page(), lambda r: len(r.items) == 1),
    "artifacts.metadata": (lambda api: api.artifacts.metadata("art"), lambda r: r.size_bytes == 10),
    "artifacts.read_range": (
        lambda api: api.artifacts.read_range("art", 2, 3),
        lambda r: r.content == b"234" and r.has_more,
    ),
    "artifacts.open_stream": (
        lambda api: all_of(api.artifacts.open_stream("art")),
        lambda r: b"".join(r) == b"0123456789",
    ),
    "artifacts.create": (
        lambda api: api.artifacts.create(b"abc", name="a.txt"),
        lambda r: r.name == "a.txt" and r.size_bytes == 3,
    ),
    "state.get": (lambda api: api.state.get("conversation", "turns"), lambda r: r == 4),
    "state.set": (lambda api: api.state.set("runner", "seen", None), bool),
    "state.delete": (lambda api: api.state.delete("conversation", "turns"), lambda r: r is True),
    "storage.get": (lambda api: api.storage.get("plugin", "blob"), lambda r: r == b"\x00\x01"),
    "storage.set": (lambda api: api.storage.set("binding", "blob", b"\xff"), lambda r: r is None),
    "storage.delete": (lambda api: api.storage.delete("plugin", "nothing"), lambda r: r is False),
    "storage.list": (lambda api: api.storage.list("plugin", "bl"), lambda r: r.keys == ["blob"]),
    "steering.pull": (lambda api: api.steering.pull(), lambda r: r == []),
    "platform.request_action": (
        lambda api: api.platform.request_action("message.edit", {"message_id": "m"}, {"text": "t"}),
        lambda r: r.status == "recorded",
    ),
}


def test_there_is_an_example_of_every_host_call() -> None:
    assert set(CALLS) == set(METHODS)


@pytest.mark.spec("wire/host-calls")
@pytest.mark.parametrize("method", METHODS)
async def test_a_host_call_goes_over_the_wire_and_comes_back_typed(method: str) -> None:
    ask, as_expected = CALLS[method]
    runner = Asking(ask)
    async with pretend_host(
        runner,
        state={"conversation": {"turns": 4}},
        storage={"plugin": {"blob": b"\x00\x01", "other": b""}},
        history=[("user", "the first"), ("assistant", "the second")],
        artifacts={"art": b"0123456789"},
        calls=ANSWERS,
    ) as host:
        await host.run("now")
    assert [call.method for call in host.calls] == [method]
    assert as_expected(runner.got), runner.got


@pytest.mark.spec("wire/host-call-refused")
@pytest.mark.parametrize("method", METHODS)
async def test_a_host_call_the_manifest_does_not_ask_for_is_refused(method: str) -> None:
    class Modest(Asking):
        permissions = {}  # noqa: RUF012
        capabilities = {}  # noqa: RUF012

    runner = Modest(CALLS[method][0])
    async with pretend_host(runner, calls=ANSWERS) as host:
        await host.run()
    assert isinstance(runner.got, HostCallError)
    assert (runner.got.code, runner.got.retryable) == ("unauthorized", False)


@pytest.mark.spec("wire/host-call-refused")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (
            {"code": -32000, "message": "m", "data": {"code": "rate_limited", "message": "slow", "retryable": True}},
            "rate_limited",
        ),
        ({"code": -32602, "message": "m"}, "invalid_argument"),
        ({"code": -32603, "message": "m", "data": "?"}, "runtime_error"),
    ],
)
async def test_a_refusal_always_has_one_of_the_seven_codes(wire: Any, error: dict[str, Any], code: str) -> None:
    runner = Asking(lambda api: api.state.get("runner", "x"))
    w = wire(runner)
    await w.hello()
    await w.start()
    w.answer(await w.call("state.get"), error=error)
    await w.ended()
    assert runner.got.code == code


async def test_an_answer_of_the_wrong_shape_is_a_runtime_error(wire: Any) -> None:
    runner = Asking(lambda api: api.history.page())
    w = wire(runner)
    await w.hello()
    await w.start()
    w.answer(await w.call("history.page"), result={"items": 7})
    await w.ended()
    assert (runner.got.code, runner.got.method) == ("runtime_error", "history.page")


@pytest.mark.spec("wire/host-calls")
async def test_every_call_names_its_run_and_optional_nulls_stay_off_the_wire(wire: Any) -> None:
    w = wire(Asking(lambda api: api.history.page(limit=5)))
    await w.hello()
    await w.start("r7")
    params = (await w.call("history.page"))["params"]
    assert params == {"run_id": "r7", "limit": 5, "direction": "backward", "include_artifacts": False}


async def test_a_request_too_large_for_the_wire_is_not_sent(wire: Any) -> None:
    runner = Asking(lambda api: api.state.set("runner", "k", "x" * 5000))
    w = wire(runner)
    await w.hello(limits={"max_frame_bytes": 4096})
    await w.start()
    await w.ended()
    assert runner.got.code == "payload_too_large"
    assert not [frame for frame in w.said if frame.get("method") == "state.set"]


@pytest.mark.spec("wire/deadline")
@pytest.mark.parametrize(
    "ask", [lambda api: api.state.get("runner", "x"), lambda api: all_of(api.models.stream("m", []))]
)
async def test_a_call_ends_by_the_deadline_of_the_run_on_the_hosts_clock(wire: Any, ask: Ask) -> None:
    hour = 3600.0
    runner = Asking(ask)
    w = wire(runner)
    await w.hello(host_time=time.time() + hour)
    await w.start(runtime={"trace_id": "t", "deadline_at": time.time() + hour + 0.05})
    await w.ended()
    assert runner.got.code == "deadline_exceeded"


@pytest.mark.spec("wire/streaming-calls")
async def test_a_stream_gives_back_credit_as_it_is_read_and_the_response_comes_last(wire: Any) -> None:
    async def read(api: HostApi) -> tuple[str, Any]:
        stream = await api.models.stream("demo", [])
        text = "".join([piece.chunk.text async for piece in stream if piece.chunk])
        return text, stream.result

    runner = Asking(read)
    w = wire(runner)
    await w.hello(limits={"call_credit": 8})
    await w.start()
    call = await w.call("models.stream")
    for sequence in range(1, 9):
        w.tell("call_chunk", id=call["id"], sequence=sequence, data={"chunk": {"content": str(sequence)}})
    credit = await w.until(lambda frame: frame.get("method") == "call_credit")
    w.answer(call, result={"usage": {"total_tokens": 9}})
    await w.ended()
    assert runner.got == ("12345678", {"usage": {"total_tokens": 9}})
    assert credit["params"] == {"id": call["id"], "credit": 4}


async def test_a_stream_that_is_refused_half_way_gives_what_came_and_then_raises(wire: Any) -> None:
    async def read(api: HostApi) -> list[Any]:
        got: list[Any] = []
        try:
            async for piece in api.models.stream("demo", []):
                assert piece.chunk is not None
                got.append(piece.chunk.text)
        except HostCallError as error:
            got.append(error.code)
        return got

    runner = Asking(read)
    w = wire(runner)
    await w.hello()
    await w.start()
    call = await w.call("models.stream")
    w.tell("call_chunk", id=call["id"], sequence=1, data={"chunk": {"content": "a"}})
    w.answer(call, error={"code": -32000, "message": "x", "data": {"code": "runtime_error", "message": "gone"}})
    await w.ended()
    assert runner.got == ["a", "runtime_error"]


async def test_a_cancel_reaches_a_run_that_waits_for_the_host(wire: Any) -> None:
    w = wire(Asking(lambda api: api.state.get("runner", "x")))
    await w.hello()
    await w.start()
    call = await w.call("state.get")
    assert (await w.ask("cancel_run", run_id="r1", reason="user"))["result"]["ended"]
    w.answer(call, result={"found": False})
    assert w.results() == []


class Remembering(AgentRunner):
    """Answers with the tail it was given, and remembers the turn."""

    bootstrap = "recent_tail"
    bootstrap_limit = 3
    permissions = {"storage": ["plugin"]}  # noqa: RUF012

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        turns = await api.state.get("conversation", "turns", 0)
        yield state_updated("conversation", "turns", turns + 1)
        yield message(" | ".join(f"{item.role}: {item.content}" for item in ctx.recent_tail))


@pytest.mark.spec("wire/bootstrap")
async def test_a_recent_tail_is_fetched_before_the_run_oldest_first_without_the_input_itself() -> None:
    history = [("user", "one"), ("assistant", "two"), ("user", "three"), ("assistant", "four")]
    async with pretend_host(Remembering(), history=history) as host:
        results = await host.run("now")
    assert results.text == "assistant: two | user: three | assistant: four"
    assert host.manifests[0].permissions.history == ["page"]
    assert host.calls[0].method == "history.page"


async def test_what_waits_in_line_behind_the_input_is_no_part_of_its_tail() -> None:
    history = [("user", "one"), ("assistant", "two"), ("user", "behind")]
    async with pretend_host(Remembering(), history=history) as host:
        apis = {"inline_policy": {"mode": "current_event"}, "available_apis": {"history_page": True}}
        results = await host.run("now", context={**apis, "latest_cursor": "3"})
    assert results.text == "user: one | assistant: two"


async def test_a_recent_tail_that_is_not_granted_is_empty_and_costs_no_call() -> None:
    async with pretend_host(Remembering(), history=[("user", "one")]) as host:
        apis = {"inline_policy": {"mode": "current_event"}, "available_apis": {"history_page": False}}
        results = await host.run("now", context=apis)
    assert results.text == ""
    assert [call.method for call in host.calls] == ["state.get"]


async def test_the_pretend_host_remembers_state_and_history_from_turn_to_turn() -> None:
    async with pretend_host(Remembering()) as host:
        await host.run("first")
        results = await host.run("second")
        assert host.state["conversation"] == {"turns": 2}
    assert results.text.startswith("user: first | assistant:")


async def test_seconds_left_counts_down_to_the_deadline() -> None:
    async def left(api: HostApi) -> tuple[float, float]:
        before = api.seconds_left()
        await asyncio.sleep(0)
        return before, api.seconds_left()

    runner = Asking(left)
    async with pretend_host(runner) as host:
        await host.run(runtime={"trace_id": "t", "deadline_at": time.time() + 60})
    before, after = runner.got
    assert 60.1 > before > after > 0  # the two clocks are compared across the wire, so a moment may be gained


async def _increment(api: HostApi) -> list[object]:
    value, version = await api.state.get_with_version("conversation", "turns", 0)
    await api.state.set("conversation", "turns", value + 1, expected_version=version)
    try:
        await api.state.set("conversation", "turns", 99, expected_version=version)
    except HostCallError as error:
        return [error.code, error.retryable, await api.state.get("conversation", "turns")]
    return []


@pytest.mark.spec("wire/compare-and-set")
async def test_state_that_has_changed_since_it_was_read_is_not_overwritten() -> None:
    runner = Asking(_increment)
    async with pretend_host(runner) as host:
        await host.run("go")
    assert runner.got == ["invalid_argument", True, 1]


@pytest.mark.spec("wire/storage-parts")
@pytest.mark.parametrize("size", [0, 2 * 1024 * 1024, 5_000_001, 10 * 1024 * 1024])
async def test_a_large_value_is_stored_and_read_in_parts(size: int) -> None:
    value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def there_and_back(api: HostApi) -> bool:
        await api.storage.set("binding", "big", value)
        return await api.storage.get("binding", "big") == value

    runner = Asking(there_and_back)
    async with pretend_host(runner) as host:
        await host.run("go")
    assert runner.got is True
    assert max(len(str(call.params)) for call in host.calls) < 4_194_304
