"""The load generator at every door and with servers that behave badly, each a few lines of raw socket."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from bench.client import MAX_ERRORS, Load
from bench.jobs import Job
from bench.scripts import SHORT, TOKEN

pytestmark = pytest.mark.anyio

Answer = Callable[[str, bytes], bytes]
"""(request line, body) -> the bytes of the response."""
STREAM = f'data: {{"type":"TEXT_MESSAGE_CONTENT","delta":"{TOKEN}"}}\n\ndata: {{"type":"RUN_FINISHED"}}\n\n'.encode()


def with_length(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def server(answer: Answer) -> AsyncGenerator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""):
            length = re.search(rb"content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            response = answer(head.decode().split("\r\n")[0], body)
            writer.write(response)
            if not response:
                writer.close()
                return

    def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.ensure_future(serve(reader, writer)))

    connections: list[asyncio.Future[None]] = []
    listener = await asyncio.start_server(quiet, "127.0.0.1", 0)
    yield listener.sockets[0].getsockname()[1]
    listener.close()
    await asyncio.gather(*connections, return_exceptions=True)


async def test_the_ag_ui_door_is_asked_for_a_new_thread_each_time() -> None:
    threads: list[str] = []

    def answer(line: str, body: bytes) -> bytes:
        asked = json.loads(body)
        threads.append(asked["threadId"])
        assert line == "POST /api/v1/agent/ag-ui/bench HTTP/1.1"
        assert asked["messages"][0]["content"] == SHORT
        return with_length("200 OK", STREAM)

    async with server(answer) as port:
        outcome = await Load(Job(door="ag-ui", port=port, text=SHORT, concurrency=2, runs=6)).finish()
    assert (outcome.runs, outcome.errors, len(set(threads))) == (6, 0, 6)


async def test_a_run_through_the_pair_is_two_requests_and_counts_once() -> None:
    lines: list[str] = []

    def answer(line: str, _: bytes) -> bytes:
        lines.append(line)
        if line.startswith("POST"):
            return with_length("202 Accepted", b'{"taskId":"T-7"}')
        return with_length("200 OK", STREAM)

    async with server(answer) as port:
        outcome = await Load(Job(door="pair", port=port, text=SHORT, concurrency=1, runs=1)).finish()
    assert (outcome.runs, outcome.errors) == (1, 0)
    assert lines == ["POST /api/v1/agent/runs HTTP/1.1", "GET /api/v1/agent/runs/T-7/events HTTP/1.1"]


async def test_a_refused_run_is_a_failed_run_and_its_words_are_kept() -> None:
    async with server(lambda *_: with_length("422 Unprocessable", b"threadId must be a valid UUID")) as port:
        outcome = await Load(Job(door="pair", port=port, text=SHORT, concurrency=1, runs=3)).finish()
    assert (outcome.runs, outcome.errors) == (0, 3)
    assert "status 422" in outcome.problems[0]
    assert "valid UUID" in outcome.problems[0]


async def test_a_connection_that_ends_within_a_run_is_a_failed_run_and_the_next_goes_on() -> None:
    answers = iter([b"", with_length("200 OK", STREAM)])
    async with server(lambda *_: next(answers)) as port:
        outcome = await Load(Job(door="floor", port=port, text=SHORT, concurrency=1, runs=2)).finish()
    assert (outcome.runs, outcome.errors) == (1, 1)
    assert "closed the connection" in outcome.problems[0]


async def test_a_server_that_only_fails_is_soon_left_alone() -> None:
    async with server(lambda *_: with_length("500 Oh", b"")) as port:
        outcome = await Load(Job(door="floor", port=port, text=SHORT, concurrency=1, seconds=30.0)).finish()
    assert (outcome.runs, outcome.errors) == (0, MAX_ERRORS)


async def test_a_run_without_an_end_is_failed_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.jobs.RUNS_SECONDS", 0.2)
    half = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n"
    async with server(lambda *_: half) as port:
        outcome = await Load(Job(door="floor", port=port, text=SHORT, concurrency=3, runs=9)).finish()
    assert (outcome.runs, outcome.errors) == (0, 3)
