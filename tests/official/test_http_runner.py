"""The HTTP runner against real agents on loopback: JSON, server-sent events, AG-UI, and what goes wrong."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from pydantic_core import from_json

from loopback import QuietHandler
from paddock_runners.http import HttpRunner
from paddock_sdk.protocol.results import RunFailed
from paddock_sdk.testing import RunResults, pretend_host

pytestmark = pytest.mark.anyio
AG_UI = (
    'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    'data: {"type":"STEP_STARTED","stepName":"looking"}\n\n'
    'data: {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}\n\n'
    'data: {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\\"a\\":1}"}\n\n'
    'data: {"type":"TOOL_CALL_END","toolCallId":"c"}\n\n'
    'data: {"type":"TOOL_CALL_RESULT","toolCallId":"c","messageId":"x","content":"seen"}\n\n'
    'data: {"type":"STEP_FINISHED","stepName":"looking"}\n\n'
    'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel"}\n\n'
    'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"lo"}\n\n'
    'data: {"type":"TEXT_MESSAGE_END","messageId":"m"}\n\n'
    'data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n'
)
A_PIECE = 'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel"}\n\n'


@contextmanager
def an_agent(
    answer: str, kind: str = "application/json", status: int = 200, missing: int = 0
) -> Generator[tuple[str, list[Any]]]:
    """Its URL, and what it was asked. It is gone before it has said the bytes that are `missing`."""
    asked: list[Any] = []

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked.append(
                (
                    {name.lower(): value for name, value in self.headers.items()},
                    from_json(self.rfile.read(int(self.headers["content-length"]))),
                )
            )
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(answer.encode()) + missing))
            self.end_headers()
            self.wfile.write(answer.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/agent", asked
    finally:
        server.shutdown()
        server.server_close()


async def asked_at(url: str, **config: Any) -> RunResults:
    history = [("user", "earlier"), ("assistant", "indeed")]
    async with pretend_host(HttpRunner(), history=history) as host:
        return await host.run("hello", config={"url": url, **config})


async def test_it_posts_the_event_with_the_tail_and_reads_json() -> None:
    with an_agent('{"answer": "hi"}') as (url, asked):
        results = await asked_at(url, authorization="Bearer abc", headers={"X-Team": "blue"})
    assert results.text == "hi"
    headers, body = asked[0]
    assert (headers["authorization"], headers["x-team"]) == ("Bearer abc", "blue")
    assert body["input"]["text"] == "hello"
    assert body["event"]["event_type"] == "message.received"
    assert [one["content"] for one in body["history"]] == ["earlier", "indeed"]
    assert "config" not in body


async def test_it_streams_server_sent_events() -> None:
    with an_agent('data: {"delta": "He"}\n\ndata: llo\n\ndata: [DONE]\n\n', "text/event-stream") as (url, _):
        results = await asked_at(url)
    assert results.deltas == ["He", "llo"]
    assert results.text == "Hello"


async def test_it_speaks_ag_ui() -> None:
    with an_agent(AG_UI, "text/event-stream; charset=utf-8") as (url, asked):
        results = await asked_at(url, body="ag-ui")
    assert [one["content"] for one in asked[0][1]["messages"]] == ["earlier", "indeed", "hello"]
    assert results.deltas == ["Hel", "lo"]
    looked = ["step.started", "tool.call.started", "tool.call.completed", "step.finished"]
    assert results.types == [*looked, "message.delta", "message.delta", "message.completed", "run.completed"]


async def test_it_reads_what_servers_of_chat_completions_say() -> None:
    with an_agent('{"choices": [{"message": {"role": "assistant", "content": "hi"}}]}') as (url, _):
        assert (await asked_at(url)).text == "hi"
    pieces = 'data: {"choices": [{"delta": {"content": "h"}}]}\n\ndata: {"choices": [{"delta": {"content": "i"}}]}\n\n'
    with an_agent(pieces, "text/event-stream") as (url, _):
        assert (await asked_at(url)).deltas == ["h", "i"]


async def test_its_owner_says_how_much_was_said_before_is_posted() -> None:
    with an_agent('{"answer": "hi"}') as (url, asked):
        assert (await asked_at(url, history=1)).text == "hi"
        assert (await asked_at(url, history=0)).text == "hi"
        wrong = await asked_at(url, history="all")
    assert [[one["content"] for one in body["history"]] for _, body in asked] == [["indeed"], []]
    assert isinstance(wrong.terminal, RunFailed)
    assert "config.history must be a whole number from 0 to 50" in wrong.terminal.data.message


@pytest.mark.parametrize(
    ("answer", "kind", "status", "code"),
    [
        ("broken", "application/json", 200, "http.bad_answer"),
        ('{"n": 1}', "application/json", 200, "http.bad_answer"),
        ("overloaded", "text/plain", 503, "http.refused"),
        ('data: {"type":"RUN_ERROR","message":"no"}\n\n', "text/event-stream", 200, "http.agent_failed"),
        (": nothing\n\n", "text/event-stream", 200, "http.bad_answer"),
        ('{"answer": "' + "x" * 1024 * 1024 + '"}', "application/json", 200, "http.too_large"),
        (AG_UI.rpartition("data:")[0], "text/event-stream", 200, "http.broken_off"),
        (A_PIECE, "text/event-stream", 200, "http.broken_off"),
    ],
)
async def test_what_goes_wrong_is_said(answer: str, kind: str, status: int, code: str) -> None:
    with an_agent(answer, kind, status) as (url, _):
        results = await asked_at(url)
    assert isinstance(results.terminal, RunFailed)
    assert results.terminal.data.code == code


@pytest.mark.parametrize(
    ("answer", "kind", "heard"),
    [
        ('data: {"delta": "Hel"}\n\n', "text/event-stream", ["Hel"]),
        (A_PIECE, "text/event-stream", ["Hel"]),
        ('{"answer": "Hel', "application/json", []),
    ],
)
async def test_an_agent_that_is_killed_in_the_middle_broke_off_and_what_it_said_is_kept(
    answer: str, kind: str, heard: list[str]
) -> None:
    with an_agent(answer, kind, missing=10) as (url, _):
        results = await asked_at(url)
    assert results.deltas == heard
    assert isinstance(results.terminal, RunFailed)
    assert (results.terminal.data.code, results.terminal.data.retryable) == ("http.broken_off", True)
    assert f"the agent at {url} broke off" in results.terminal.data.message


async def test_a_page_for_people_is_no_answer_and_plain_text_is_one() -> None:
    with an_agent("<html><title>Log in</title></html>", "Text/HTML; charset=utf-8") as (url, _):
        page = await asked_at(url)
    assert isinstance(page.terminal, RunFailed)
    assert page.terminal.data.code == "http.bad_answer"
    assert "answered with text/html" in page.terminal.data.message
    assert "expected is application/json, text/event-stream or text/plain" in page.terminal.data.message
    for kind in ("text/plain; charset=utf-8", "text/markdown", "", "text/html; charset=utf-8"):
        with an_agent("hi", kind) as (url, _):
            assert (await asked_at(url)).text == "hi"


async def test_an_agent_that_is_not_there_and_a_missing_address_are_named() -> None:
    with an_agent("") as (url, _):
        pass
    gone = await asked_at(f"{url.replace('http://', 'http://ann:pass@')}?key=hidden")
    assert isinstance(gone.terminal, RunFailed)
    assert (gone.terminal.data.code, gone.terminal.data.retryable) == ("http.unreachable", True)
    assert f"the agent at {url} did not answer" in gone.terminal.data.message
    for wrong in ("", "ftp://agent", "http://", "http://[agent", "http://agent:99999"):
        missing = await asked_at(wrong)
        assert isinstance(missing.terminal, RunFailed)
        assert "config.url must be" in missing.terminal.data.message
