"""Nobody holds a connection by sending slowly, and nobody fills memory with a head; honest clients notice neither."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog

from http_api.doors import a_body, assert_problem, open_doors
from http_api.test_connection import DOOR, Socket, a_socket
from paddock.http_api.edge.bounds import Arriving, Crowd, Patience
from paddock.http_api.edge.connection import WatchedConnection

pytestmark = pytest.mark.anyio
SHORT = Patience(head_seconds=0.2, body_seconds=0.2, look_seconds=0.05)
ORDINARY = "/api/v1/api-keys"


def begin(client: Socket, path: str) -> None:
    """A request with one byte of its twenty."""
    lines = [f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", "content-length: 20"]
    client.writer.write("\r\n".join([*lines, "", "{"]).encode())


async def refused(client: Socket) -> tuple[str, dict[str, Any]]:
    """The status line, and the problem: whole, and then the connection is closed."""
    head = await client.head()
    assert "connection: close" in head
    assert "content-type: application/problem+json" in head
    return head.splitlines()[0], json.loads(await client.reader.read())


@pytest.mark.spec("http/patience")
@pytest.mark.parametrize("path", [DOOR, ORDINARY, f"{DOOR}?large"])
async def test_a_body_that_does_not_come_is_given_up(path: str) -> None:
    with structlog.testing.capture_logs() as logged:
        async with open_doors(patience=SHORT) as doors, a_socket(doors) as client:
            begin(client, path)
            status, problem = await refused(client)
            assert status == "http/1.1 408 request timeout"
            assert problem["code"] == "deadline_exceeded"
    assert [line for line in logged if line.get("action") == "http.failed"] == []  # a client's doing, not a mistake


async def test_a_head_that_does_not_end_is_given_up() -> None:
    async with open_doors(patience=SHORT) as doors, a_socket(doors) as client:
        client.writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        assert (await refused(client))[0] == "http/1.1 408 request timeout"


async def test_who_connects_and_says_nothing_is_let_go() -> None:
    async with open_doors(patience=SHORT) as doors, a_socket(doors) as client:
        assert await client.reader.read() == b""


async def test_who_waits_between_requests_or_for_an_answer_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    is_over, looked = Patience.is_over, asyncio.Event()

    def an_hour_later(patience: Patience, arriving: Arriving, seconds: float, size: int) -> bool:
        if arriving is not Arriving.NOTHING:
            return is_over(patience, arriving, seconds, size)
        looked.set()
        return is_over(patience, arriving, seconds + 3600, size)

    monkeypatch.setattr(Patience, "is_over", an_hour_later)
    async with open_doors(patience=Patience(look_seconds=0.05)) as doors, a_socket(doors) as client:
        for number in range(2):
            client.ask(a_body(run=f"r{number}"))
            await client.head()
            run = await doors.gateway.next()
            looked.clear()
            await asyncio.wait_for(looked.wait(), 30)
            run.message("hello")
            run.say("run.completed")
            assert "RUN_FINISHED" in await client.rest()
            if number == 0:
                looked.clear()
                await asyncio.wait_for(looked.wait(), 30)


@pytest.mark.spec("http/patience")
@pytest.mark.parametrize("path", [DOOR, ORDINARY])
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([f"x-{number}: 1" for number in range(200)], id="too many"),
        pytest.param(["x-long: " + "a" * 100_000], id="too long"),
        pytest.param(["x-long: " + "a" * 3_000_000], id="far too long"),
    ],
)
async def test_a_head_that_is_too_large_is_refused(path: str, headers: list[str]) -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.ask(a_body(), path, *headers)
        status, problem = await refused(client)
        assert status == "http/1.1 431 request header fields too large"
        assert problem["code"] == "payload_too_large"


async def test_a_large_body_is_no_large_head() -> None:
    async with open_doors() as doors:
        answer = await doors.client.post("/api/v1/agent/runs", json=a_body(text="a" * 200_000))
        assert_problem(answer, 422, "invalid_argument", "RunAgentInput user message text exceeds limit")


async def test_what_is_no_http_is_refused_as_a_problem() -> None:
    async with open_doors() as doors, a_socket(doors) as client:
        client.writer.write(b"hello?\r\n\r\n")
        assert (await refused(client))[0] == "http/1.1 400 bad request"


@pytest.mark.spec("http/patience")
async def test_who_takes_nothing_of_an_answer_is_let_go() -> None:
    crowd = Crowd()
    patience = Patience(reader_seconds=0.5, look_seconds=0.05)
    async with open_doors(patience=patience, crowd=crowd) as doors, deaf_client(doors.url, crowd) as connection:
        await until(connection.transport.is_closing)


@pytest.mark.spec("http/connections")
async def test_where_nobody_is_idle_who_takes_nothing_of_an_answer_makes_room() -> None:
    crowd = Crowd(most=2)
    async with (
        open_doors(crowd=crowd) as doors,
        deaf_client(doors.url, crowd) as first,
        deaf_client(doors.url, crowd) as second,
        a_socket(doors) as late,
    ):
        late.writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert "200" in (await late.head()).splitlines()[0]
        assert [one.transport.is_closing() for one in (first, second)] == [True, False]


@asynccontextmanager
async def deaf_client(url: str, crowd: Crowd) -> AsyncGenerator[WatchedConnection]:
    """A client that asks for much and reads nothing. The host's end of it, when more waits than both systems take."""
    host, port = url.removeprefix("http://").split(":")
    before = crowd.unread
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((host, int(port)))
        await until(lambda: len(crowd.idle) == 1)
        (connection,) = crowd.idle
        assert isinstance(connection, WatchedConnection)
        connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        client.sendall(b"GET /api/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 16)
        await until(lambda: crowd.unread == before + 1)
        yield connection


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.005)


def test_a_large_body_may_take_its_time_as_long_as_it_keeps_the_pace() -> None:
    patience = Patience(body_seconds=30, body_bytes_per_second=1000)
    assert not patience.is_over(Arriving.BODY, 29, 0)
    assert not patience.is_over(Arriving.BODY, 600, 600_000)
    assert patience.is_over(Arriving.BODY, 600, 599_000)
    assert not patience.is_over(Arriving.NOTHING, 600, 0)


async def test_a_client_that_goes_away_within_its_body_is_no_mistake_of_the_host() -> None:
    with structlog.testing.capture_logs() as logged:
        async with open_doors() as doors:
            async with a_socket(doors) as client:
                begin(client, ORDINARY)
                await client.writer.drain()
            assert (await doors.client.get("/healthz")).status_code == 200
    assert [line for line in logged if line.get("action") == "http.failed"] == []
