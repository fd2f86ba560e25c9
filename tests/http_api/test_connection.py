"""A run asked for and streamed over one connection, whatever the client does with it."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from http_api.doors import Doors, a_body, open_doors
from paddock.host.conversations.inbox import Accepted
from paddock.host.people.principals import Principal
from paddock.http_api.edge.connection import HeadWithBody
from paddock.http_api.streams import run_stream
from paddock.http_api.streams.run_stream import RunReader, RunStream, RunStreams

pytestmark = pytest.mark.anyio
DOOR = "/api/v1/agent/ag-ui/one"
LARGE = 65_537
"""More than uvicorn takes of a body before the application asks for it."""


class Socket:
    """A connection that speaks HTTP by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def ask(self, body: Any, path: str = DOOR, *headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", *headers]
        self.writer.write("\r\n".join([*lines, f"content-length: {len(content)}", "", ""]).encode() + content)

    async def head(self) -> str:
        return (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def piece(self) -> bytes:
        """The next chunk of a body; empty at its end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def rest(self) -> str:
        said = b""
        while piece := await self.piece():
            said += piece
        return said.decode()


@asynccontextmanager
async def a_socket(doors: Doors) -> AsyncGenerator[Socket]:
    host, port = doors.url.removeprefix("http://").split(":")
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection(host, int(port))
        yield Socket(reader, writer)
        writer.close()


def kinds(said: str) -> list[str]:
    return [json.loads(line[6:])["type"] for line in said.splitlines() if line.startswith("data: ")]


WHOLE = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]


async def test_one_connection_carries_run_after_run() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        for number in range(3):
            client.ask(a_body(run=f"r{number}"))
            assert "transfer-encoding: chunked" in await client.head()
            assert kinds((await client.piece()).decode()) == ["RUN_STARTED"]
            run = await doors.gateway.next()
            run.message("hello")
            run.say("run.completed")
            assert kinds(await client.rest()) == WHOLE[1:]


async def test_requests_sent_ahead_are_answered_in_order() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body(run="first"))
        client.ask(a_body(run="second"))
        client.ask(b"{", DOOR)
        for name in ("first", "second"):
            await client.head()
            run = await doors.gateway.next()
            run.say("run.completed")
            said = await client.rest()
            assert f'"runId":"{name}"' in said
            assert kinds(said)[-1] == "RUN_FINISHED"
        assert "422" in await client.head()


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"threadId": 1}'])
async def test_a_refusal_is_a_problem_and_the_connection_goes_on(body: bytes) -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(body)
        head = await client.head()
        assert "application/problem+json" in head
        assert "422" in head
        await client.reader.readexactly(int(head.partition("content-length: ")[2].split()[0]))
        client.ask(a_body())
        assert "200 ok" in await client.head()


async def test_a_large_body_is_taken_as_well() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body(text="x" * LARGE))
        assert "200 ok" in await client.head()
        assert len((await doors.gateway.next()).context["input"]["text"]) == LARGE


async def test_a_client_that_asks_for_the_end_gets_it() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body(), DOOR, "connection: close")
        assert "connection: close" in await client.head()
        (await doors.gateway.next()).say("run.completed")
        assert kinds(await client.rest())[-1] == "RUN_FINISHED"
        assert await client.reader.read() == b""


async def test_a_client_that_goes_away_leaves_its_run_alone_and_nothing_behind() -> None:
    async with open_doors() as doors:
        thread = str(uuid.uuid4())
        async with a_socket(doors) as client:
            client.ask(a_body(thread))
            await client.head()
        tail = doors.house.tails.tail_of(thread)
        async with asyncio.timeout(30):
            while tail.followers:
                await asyncio.sleep(0.005)
        run = await doors.gateway.next()
        await doors.answered(run, "still ", "here")


async def test_a_stream_that_goes_on_is_kept_alive_and_ends_once() -> None:
    async with open_doors(keep_alive=0.05) as doors, a_socket(doors) as client:
        client.ask(a_body())
        await client.head()
        run = await doors.gateway.next()
        run.delta("slowly ")
        said = b""
        while b": keep-alive" not in said:
            said += await client.piece()
        run.message("slowly but surely")
        run.say("run.completed")
        whole = said.decode() + await client.rest()
        assert kinds(whole) == [*WHOLE[:3], *WHOLE[2:]]


async def test_a_reader_that_is_slow_misses_nothing() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body())
        await client.head()
        run = await doors.gateway.next()
        pieces = [f"{number:06}" * 10_000 for number in range(100)]
        for piece in pieces:
            run.delta(piece)
            await doors.recorded(run.run_id, piece)
        run.say("run.completed")
        said = await client.rest()
        deltas = [json.loads(line[6:]).get("delta", "") for line in said.splitlines() if line.startswith("data: ")]
        assert "".join(deltas) == "".join(pieces)


async def test_a_run_that_is_taken_in_is_told_whole_and_the_connection_goes_on_or_ends_as_asked() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        for number, last in enumerate([False, False, True]):
            client.ask(a_body(str(uuid.uuid4()), f"r{number}"), "/api/v1/agent/runs", *["connection: close"] * last)
            head = await client.head()
            assert head.startswith("http/1.1 202 accepted\r\n")
            assert ("connection: close" in head, "content-type: application/json" in head) == (last, True)
            length = int(head.partition("content-length: ")[2].split("\r\n")[0])
            assert json.loads(await client.reader.readexactly(length))["runId"] == f"r{number}"
        assert await client.reader.read() == b""


async def test_what_is_committed_while_the_beginning_is_read_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_stream, "UNWATCHED", 3600.0)  # nobody comes to look later
    async with open_doors() as doors, a_socket(doors) as client:
        opened = RunStreams.open

        async def and_then_the_run_ends(
            self: RunStreams, who: Principal, run: Accepted, reader: RunReader
        ) -> RunStream:
            stream = await opened(self, who, run, reader)
            at_runner = await doors.gateway.next()
            at_runner.message("hello")
            at_runner.say("run.completed")
            await doors.ended(run.run_id)
            return stream

        monkeypatch.setattr(RunStreams, "open", and_then_the_run_ends)
        client.ask(a_body())
        await client.head()
        assert kinds(await client.rest()) == WHOLE


ALIVE = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
CHUNKED = (
    b"POST /api/v1/api-keys HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"transfer-encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n"
)


@pytest.mark.parametrize("size", [1, 3, 50, 1000])
async def test_requests_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        whole = ALIVE + CHUNKED + b"\r\n" + ALIVE
        for at in range(0, len(whole), size):
            client.writer.write(whole[at : at + size])
            await client.writer.drain()
            await asyncio.sleep(0)
        for status in ("200", "422", "200"):
            head = await client.head()
            assert head.split()[1] == status
            await client.reader.readexactly(int(head.partition("content-length: ")[2].split()[0]))


@pytest.mark.parametrize("line", [b"GET http://[ HTTP/1.1", b"GET /\xff HTTP/1.1", b"GET / HTTP/9"])
async def test_a_line_that_cannot_be_read_is_refused_as_a_problem(line: bytes) -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.writer.write(line + b"\r\nhost: 127.0.0.1\r\n\r\n")
        head = await client.head()
        assert head.startswith("http/1.1 400 ")
        assert "content-type: application/problem+json" in head


class Written(asyncio.Transport):
    """Notes each call of the system that a socket would make."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes] = []

    def write(self, data: Any) -> None:
        self.calls.append(bytes(data))

    def close(self) -> None:
        self.calls.append(b"(closed)")


def answering() -> tuple[HeadWithBody, Written]:
    written = Written()
    return HeadWithBody(written, asyncio.get_running_loop()), written


async def test_the_head_of_an_answer_is_written_together_with_the_first_piece_of_its_body() -> None:
    answers, written = answering()
    answers.hold()
    for piece in (b"head ", b"first ", b"second"):
        answers.write(piece)
    await asyncio.sleep(0)
    assert written.calls == [b"head first ", b"second"]


async def test_a_head_whose_body_is_not_there_yet_is_written_in_the_next_turn_of_the_loop() -> None:
    answers, written = answering()
    answers.hold()
    answers.write(b"head")
    await asyncio.sleep(0)
    answers.write(b"late")
    assert written.calls == [b"head", b"late"]


async def test_a_head_that_waits_for_its_body_is_written_before_the_connection_is_closed() -> None:
    answers, written = answering()
    answers.hold()
    answers.write(b"head")
    answers.close()
    await asyncio.sleep(0)
    assert written.calls == [b"head", b"(closed)"]
