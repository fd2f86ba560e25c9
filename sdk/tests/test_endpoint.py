"""The run's own endpoint becomes an address, also where only a socket leads out."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from paddock_sdk import AgentRunner, HostApi, Results, RunContext, message
from paddock_sdk.endpoint import relay, run_endpoint
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio


class Asks(AgentRunner):
    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        async with run_endpoint(ctx, api) as endpoint:
            yield message(f"{endpoint}" if endpoint is None else f"{endpoint.url} {endpoint.token_env} {endpoint}")


def an_endpoint(url: str) -> dict[str, Any]:
    return {"mcp": [{"name": "other", "url": "https://x"}, {"name": "host", "url": url, "token_env": "RUN_TOKEN"}]}


async def test_the_endpoint_is_the_granted_one_and_shows_no_token() -> None:
    async with pretend_host(Asks()) as host:
        run = await host.start(secrets={"mcp_token": "t0p"}, resources=an_endpoint("http://127.0.0.1:1/mcp/run"))
        said = (await run.results()).text
        assert said.startswith("http://127.0.0.1:1/mcp/run RUN_TOKEN ")
        assert "t0p" not in said


async def test_without_a_grant_or_a_token_there_is_none() -> None:
    async with pretend_host(Asks()) as host:
        assert (await host.run(resources=an_endpoint("http://127.0.0.1:1/mcp/run"))).text == "None"
        run = await host.start(secrets={"mcp_token": "t0p"})
        assert (await run.results()).text == "None"


async def test_a_socket_becomes_an_address_of_the_sandbox() -> None:
    async with pretend_host(Asks()) as host:
        run = await host.start(secrets={"mcp_token": "t0p"}, resources=an_endpoint("unix:/run/paddock/mcp.sock"))
        assert (await run.results()).text.startswith("http://127.0.0.1:")


async def test_the_relay_carries_both_ways_and_ends_with_its_block(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece.upper())
        writer.close()

    socket = tmp_path / "s"
    async with await asyncio.start_unix_server(echo, socket), asyncio.timeout(30):
        async with relay(str(socket)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"abc" * 100_000)
            assert await reader.readexactly(300_000) == b"ABC" * 100_000
            idle, still_open = await asyncio.open_connection("127.0.0.1", port)
            still_open.write(b"x")
            assert await idle.readexactly(1) == b"X"
        assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        still_open.close()


async def test_nobody_behind_the_socket_closes_the_connection(tmp_path: Path) -> None:
    async with relay(str(tmp_path / "nobody")) as port, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
