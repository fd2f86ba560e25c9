"""Connections to addresses that came from others: public ones only, and to the very address that was judged."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from paddock_sdk import outbound

pytestmark = pytest.mark.anyio

INSIDE = (
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.168.1.1",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.7",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::",
    "2a00:1450::5efe:7f00:1",
    "2a00:1450::200:5efe:a00:1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "not an address",
)
OUTSIDE = ("93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1")


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_that_is_not_of_the_public_internet_is_known_however_it_is_written(address: str) -> None:
    assert not outbound.is_public(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_one(address: str) -> None:
    assert outbound.is_public(address)


class Names:
    """A name server that says something else each time it is asked."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def look(self, host: str, port: int, **_: Any) -> list[Any]:
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Any:
    def answer(*answers: tuple[str, ...]) -> Names:
        server = Names(*answers)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", server.look, raising=False)
        return server

    return answer


@asynccontextmanager
async def a_server(tls: ssl.SSLContext | None = None) -> AsyncGenerator[tuple[int, list[bytes]]]:
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0x7f000001", "0", "[::ffff:7f00:1]"]
)
async def test_this_machine_is_not_called_whatever_it_is_called(host: str) -> None:
    async with a_server() as (port, heard):
        async with outbound.client("public") as client:
            with pytest.raises(outbound.AddressRefusedError, match="does not lead to a public address"):
                await client.get(f"http://{host}:{port}/")
        assert heard == []


async def test_one_private_address_among_public_ones_is_enough_to_refuse_a_name(names: Any) -> None:
    names(("93.184.216.34", "10.0.0.1"))
    with pytest.raises(outbound.AddressRefusedError):
        await outbound.look_up("mixed.example", 80)


async def test_a_name_that_leads_nowhere_is_refused_in_the_same_words_as_one_that_leads_inside(names: Any) -> None:
    said = list[str]()
    for answers in ((), ("10.0.0.1",)):
        names(answers)
        with pytest.raises(outbound.AddressRefusedError) as refused:
            await outbound.look_up("intranet.example", 80)
        said.append(str(refused.value))
    assert said[0] == said[1]


async def test_the_connection_goes_to_the_address_that_was_judged_and_the_name_is_not_asked_again(
    names: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = names(("93.184.216.34",), ("127.0.0.1",))
    sent = list[httpx2.Request]()

    async def carried(_self: object, request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", carried)
    async with outbound.client("public") as client:
        await client.get("https://rebinding.example:8443/path")
    [request] = sent
    assert (request.url.host, request.url.port, request.url.path) == ("93.184.216.34", 8443, "/path")
    assert (request.headers["host"], request.extensions["sni_hostname"]) == (
        "rebinding.example:8443",
        "rebinding.example",
    )
    assert server.asked == ["rebinding.example"]


async def test_where_one_address_does_not_answer_the_next_is_tried(names: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names(("93.184.216.34", "93.184.216.35"))
    tried = list[str]()

    async def carried(_self: object, request: httpx2.Request) -> httpx2.Response:
        tried.append(request.url.host)
        if len(tried) == 1:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(200)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", carried)
    async with outbound.client("public") as client:
        assert (await client.get("http://two.example/")).status_code == 200
    assert tried == ["93.184.216.34", "93.184.216.35"]


async def test_this_machines_own_public_address_counts_as_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_server() as (port, heard):
        monkeypatch.setattr(outbound, "is_public", lambda _: True)
        with pytest.raises(outbound.AddressRefusedError):
            await outbound.look_up("127.0.0.1", port)
        assert heard == []


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_server() as (port, heard):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        async with outbound.client("public") as client:
            with pytest.raises(outbound.AddressRefusedError):
                await client.get("http://localhost:1/")
        assert heard == []
        async with outbound.client("any") as client:
            assert (await client.get("http://somewhere.example/")).text == "ok", (
                "what the operator named goes their way"
            )


async def test_a_redirect_is_not_followed() -> None:
    for reach in ("any", "public"):
        async with outbound.client(reach) as client:  # pyright: ignore[reportArgumentType]
            assert client.follow_redirects is False
