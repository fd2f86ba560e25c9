"""The wire as the SDK speaks it, frame by frame."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from paddock_sdk import AgentRunner, HostApi, Result, Results, RunContext, completed, delta, failed, message

pytestmark = pytest.mark.anyio
MakeWire = Callable[[AgentRunner], Any]


class Scripted(AgentRunner):
    """Says what the test gave it."""

    def __init__(self, *results: Result) -> None:
        self._results = results

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        for result in self._results:
            yield result


class Waiting(AgentRunner):
    """Says one word, then waits until it is stopped, and remembers that its clean-up ran."""

    def __init__(self) -> None:
        self.cleaned_up = asyncio.Event()

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            yield delta("hm")
            await asyncio.Event().wait()
        finally:
            self.cleaned_up.set()


@pytest.mark.spec("wire/handshake")
async def test_the_handshake_answers_with_our_version_and_name(wire: MakeWire) -> None:
    reply = await wire(Scripted()).hello()
    assert reply["result"]["protocol_version"] == "1"
    assert reply["result"]["sdk"]["name"] == "paddock-sdk"


@pytest.mark.spec("wire/handshake-first")
async def test_nothing_is_answered_before_the_handshake_and_no_second_one(wire: MakeWire) -> None:
    w = wire(Scripted())
    assert (await w.ask("ping"))["error"]["code"] == -32600
    await w.hello()
    assert (await w.hello())["error"]["code"] == -32600
    assert (await w.ask("ping"))["result"] == {}


@pytest.mark.spec("wire/version")
async def test_a_host_of_another_major_is_refused_with_a_sentence(wire: MakeWire) -> None:
    reply = await wire(Scripted()).hello(protocol_version="2")
    assert "the host 2" in reply["error"]["message"]


@pytest.mark.spec("wire/list")
async def test_manifests_carry_the_identity_the_host_gave(wire: MakeWire) -> None:
    w = wire(Scripted())
    await w.hello(plugin={"author": "me", "name": "thing"})
    (manifest,) = (await w.ask("list_agent_runners"))["result"]["runners"]
    assert (manifest["id"], manifest["protocol_version"]) == ("plugin:me/thing/default", "1")


@pytest.mark.spec("wire/run-ack")
async def test_the_ack_is_sent_before_anything_the_run_says(wire: MakeWire) -> None:
    w = wire(Scripted(message("hello")))
    await w.hello()
    assert (await w.start())["result"] == {"run_id": "r1", "accepted": True}
    await w.ended()
    kinds = [frame.get("method", "response") for frame in w.said]
    assert kinds == ["response", "response", "run_result", "run_result"]


@pytest.mark.spec("wire/run-refused")
@pytest.mark.parametrize("fault", ["runner", "context", "twice"])
async def test_a_run_that_cannot_be_started_is_refused_and_says_nothing(wire: MakeWire, fault: str) -> None:
    w = wire(Waiting())
    await w.hello()
    if fault == "runner":
        reply = await w.ask("run_agent", runner_id="plugin:a/b/other", runner_name="other", context={})
    elif fault == "context":
        reply = await w.ask(
            "run_agent", runner_id="plugin:a/b/default", runner_name="default", context={"run_id": "r1"}
        )
    else:
        await w.start()
        reply = await w.start()
    codes = {"runner": "not_found", "context": "invalid_argument", "twice": "invalid_argument"}
    assert reply["error"]["data"]["code"] == codes[fault]


@pytest.mark.spec("wire/results")
async def test_results_are_numbered_from_one_and_carry_run_and_time(wire: MakeWire) -> None:
    w = wire(Scripted(delta("a"), delta("b"), message("ab"), completed(usage={"total_tokens": 3})))
    await w.hello()
    await w.start()
    assert (await w.ended())["data"] == {"usage": {"total_tokens": 3}}
    assert [result["sequence"] for result in w.results()] == [1, 2, 3, 4]
    assert all(isinstance(result["timestamp"], int) for result in w.results())


@pytest.mark.spec("wire/one-end")
async def test_a_run_that_just_returns_is_completed(wire: MakeWire) -> None:
    w = wire(Scripted(message("x")))
    await w.hello()
    await w.start()
    assert (await w.ended())["type"] == "run.completed"


@pytest.mark.spec("wire/one-end")
async def test_nothing_follows_the_end_even_if_the_runner_goes_on(wire: MakeWire) -> None:
    w = wire(Scripted(failed("quota", "no more", retryable=True), message("too late"), completed()))
    await w.hello()
    await w.start()
    assert (await w.ended())["data"] == {"code": "quota", "message": "no more", "retryable": True}
    await w.ask("cancel_run", run_id="r1", reason="test")
    assert [result["type"] for result in w.results()] == ["run.failed"]


@pytest.mark.spec("wire/one-end")
async def test_an_exception_becomes_one_failure_with_its_words(
    wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(AgentRunner):
        async def run(self, ctx: RunContext, api: HostApi) -> Results:
            yield delta("so far")
            raise ValueError("out of ideas")

    w = wire(Broken())
    await w.hello()
    await w.start()
    assert (await w.ended())["data"] == {"code": "runner.error", "message": "out of ideas", "retryable": False}
    assert "out of ideas" in caplog.text


async def no_yield(ctx: RunContext, api: HostApi) -> Result:
    return message("hello")


def not_async(ctx: RunContext, api: HostApi) -> Iterator[Result]:
    yield message("hello")


def only_returns(ctx: RunContext, api: HostApi) -> Result:
    return message("hello")


async def plain_text(ctx: RunContext, api: HostApi) -> AsyncIterator[str]:
    yield "hello"


async def a_dict(ctx: RunContext, api: HostApi) -> AsyncIterator[dict[str, str]]:
    yield {"text": "hello"}


async def a_number(ctx: RunContext, api: HostApi) -> Results:
    yield delta(5)  # pyright: ignore[reportArgumentType]


SLIPS = [
    (no_yield, "Slip.run() never yields: write `yield message(...)`"),
    (not_async, "Slip.run() is not async: write `async def run(self, ctx, api)`"),
    (only_returns, "Slip.run() returned Result: write `async def run(self, ctx, api)`"),
    (plain_text, "Slip.run() yielded plain text: write `yield delta(...)`"),
    (a_dict, "Slip.run() yielded dict: write `yield delta(...)`"),
    (a_number, "delta() takes text, not int"),
]


@pytest.mark.parametrize(("body", "sentence"), SLIPS, ids=[body.__name__ for body, _ in SLIPS])
async def test_a_slip_of_the_author_fails_the_run_with_what_to_write(wire: MakeWire, body: Any, sentence: str) -> None:
    class Slip(AgentRunner):
        run = staticmethod(body)

    w = wire(Slip())
    await w.hello()
    await w.start()
    assert (await w.ended())["data"]["message"].startswith(sentence)


async def test_a_runner_that_describes_itself_wrongly_is_said_in_one_line(
    wire: MakeWire, caplog: pytest.LogCaptureFixture
) -> None:
    class Typo(AgentRunner):
        permissions = {"history": ["pages"]}  # noqa: RUF012 - as authors write it

    w = wire(Typo())
    await w.hello()
    assert (await w.ask("list_agent_runners"))["result"]["runners"] == []
    [record] = caplog.records
    assert record.getMessage().startswith("runner 'default' is not offered: permissions.history.0: Input should be")
    assert (record.exc_info, record.getMessage().endswith("not 'pages'")) == (None, True)


@pytest.mark.spec("wire/credit")
async def test_results_stop_at_the_credit_and_go_on_when_more_is_given(wire: MakeWire) -> None:
    w = wire(Scripted(*[delta(str(n)) for n in range(10)]))
    await w.hello(limits={"run_credit": 3})
    await w.start()
    await w.settle()
    assert len(w.results()) == 3
    w.tell("run_credit", run_id="r1", credit=2)
    await w.settle()
    assert len(w.results()) == 5


@pytest.mark.spec("wire/credit")
async def test_the_end_needs_no_credit(wire: MakeWire) -> None:
    w = wire(Scripted(delta("a")))
    await w.hello(limits={"run_credit": 1})
    await w.start()
    assert (await w.ended())["sequence"] == 2


@pytest.mark.spec("wire/credit")
async def test_a_run_without_credit_never_holds_up_its_neighbour(wire: MakeWire) -> None:
    w = wire(Scripted(delta("a"), delta("b")))
    await w.hello(limits={"run_credit": 1})
    await w.start("slow")
    await w.start("quick")
    w.tell("run_credit", run_id="quick", credit=5)
    await w.ended("quick")
    assert len(w.results("slow")) == 1


@pytest.mark.spec("wire/cancel")
async def test_a_cancel_is_answered_when_the_run_has_ended_and_cleaned_up(wire: MakeWire) -> None:
    runner = Waiting()
    w = wire(runner)
    await w.hello()
    await w.start()
    await w.until(lambda frame: frame.get("method") == "run_result")
    reply = await w.ask("cancel_run", run_id="r1", reason="user")
    assert reply["result"] == {"run_id": "r1", "ended": True}
    assert runner.cleaned_up.is_set()
    assert [result["type"] for result in w.results()] == ["message.delta"]


@pytest.mark.spec("wire/cancel")
async def test_a_run_that_waits_for_credit_can_be_cancelled(wire: MakeWire) -> None:
    runner = Waiting()
    w = wire(runner)
    await w.hello(limits={"run_credit": 0})
    await w.start()
    await w.settle()
    assert (await w.ask("cancel_run", run_id="r1", reason="user"))["result"]["ended"]
    assert runner.cleaned_up.is_set()
    assert w.results() == []


@pytest.mark.spec("wire/cancel")
async def test_after_a_cancel_only_the_runners_own_failure_is_still_said(wire: MakeWire) -> None:
    class Polite(AgentRunner):
        async def run(self, ctx: RunContext, api: HostApi) -> Results:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield failed("cancelled", "as you wish")
                yield message("and another thing")

    w = wire(Polite())
    await w.hello()
    await w.start()
    await w.settle()
    await w.ask("cancel_run", run_id="r1", reason="user")
    assert [result["data"] for result in w.results()] == [
        {"code": "cancelled", "message": "as you wish", "retryable": False}
    ]


@pytest.mark.spec("wire/cancel")
async def test_after_a_cancel_a_runner_that_will_not_stop_talking_is_stopped(wire: MakeWire) -> None:
    class Stubborn(AgentRunner):
        async def run(self, ctx: RunContext, api: HostApi) -> Results:
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    yield message("one more thing")

    w = wire(Stubborn())
    await w.hello()
    await w.start()
    await w.settle()
    assert (await w.ask("cancel_run", run_id="r1", reason="user"))["result"]["ended"]
    assert w.results() == []


@pytest.mark.spec("wire/cancel")
async def test_cancelling_what_is_not_running_is_answered_at_once(wire: MakeWire) -> None:
    w = wire(Scripted())
    await w.hello()
    assert (await w.ask("cancel_run", run_id="never", reason="user"))["result"] == {"run_id": "never", "ended": True}


@pytest.mark.spec("wire/shutdown")
async def test_a_shutdown_ends_the_runs_first_and_then_answers(wire: MakeWire) -> None:
    runner = Waiting()
    w = wire(runner)
    await w.hello()
    await w.start()
    await w.until(lambda frame: frame.get("method") == "run_result")
    assert (await w.ask("shutdown"))["result"] == {}
    assert runner.cleaned_up.is_set()
    assert w.connection.closed.is_set()
    assert "error" in await w.start("r2")


@pytest.mark.spec("wire/bad-frames")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"rubbish", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no.such"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"cancel_run","params":{}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"run_agent","params":{"runner_id":{}}}', -32602),
    ],
)
async def test_a_bad_frame_is_answered_and_nothing_else_suffers(wire: MakeWire, line: bytes, code: int) -> None:
    w = wire(Scripted(message("still here")))
    await w.hello()
    w.raw(line)
    assert w.said[-1]["error"]["code"] == code
    assert w.said[-1]["error"]["data"]["code"] == "invalid_argument"
    await w.start()
    assert (await w.ended())["type"] == "run.completed"


@pytest.mark.spec("wire/bad-frames")
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"from.the.future","params":{}}',
        b'{"jsonrpc":"2.0","method":"run_credit","params":{"run_id":[],"credit":"x"}}',
        b'{"jsonrpc":"2.0","method":"call_chunk","params":{"id":[1]}}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":[],"error":"no"}',
    ],
)
async def test_notices_and_answers_nobody_waits_for_are_passed_over(wire: MakeWire, line: bytes) -> None:
    w = wire(Scripted())
    await w.hello()
    before = len(w.said)
    w.raw(line)
    assert len(w.said) == before


@pytest.mark.spec("wire/result-size")
async def test_a_result_the_host_would_not_take_fails_its_own_run_only(wire: MakeWire) -> None:
    w = wire(Scripted(delta("small"), message("x" * 5000)))
    await w.hello(limits={"max_result_bytes": 2000})
    await w.start()
    end = await w.ended()
    assert end["data"]["code"] == "payload_too_large"
    assert [result["sequence"] for result in w.results()] == [1, 2]


async def test_two_runners_of_one_name_are_refused_before_anything_is_served() -> None:
    from paddock_sdk.connection import Connection

    with pytest.raises(ValueError, match="different names"):
        Connection([Scripted(), Scripted()], lambda _: None)


async def test_a_runner_that_describes_itself_wrongly_never_hides_the_others(caplog: pytest.LogCaptureFixture) -> None:
    from paddock_sdk.testing import pretend_host

    class Typo(Scripted):
        name = "typo"
        permissions = {"history": ["pages"]}  # noqa: RUF012

    async with pretend_host(Typo(), Scripted(message("x"))) as host:
        assert [manifest.name for manifest in host.manifests] == ["default"]
        assert (await host.run()).text == "x"
    assert "typo" in caplog.text
