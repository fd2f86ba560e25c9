"""The run's own MCP endpoint, as an address that any program of this run can reach.

Outside a sandbox the host's address is one. Inside, where there is no network, the host gives a socket in the file
system; a relay on this sandbox's own loopback makes an address of it. The relay carries bytes and knows nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from paddock_sdk.host_api import HostApi
from paddock_sdk.protocol.resources import McpResource
from paddock_sdk.protocol.run_context import AgentRunContext

TOKEN = "mcp_token"  # noqa: S105 - the name of a secret
PATH = "/mcp/run"
UNIX = "unix:"
MAX_CONNECTIONS = 64
PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class RunEndpoint:
    """Where it is, and the token to hand to a program in the variable `token_env`, never on a command line."""

    url: str
    token_env: str
    token: str = field(repr=False)


def own_endpoint(ctx: AgentRunContext) -> McpResource | None:
    """The endpoint of this very run among the granted ones, if it was granted."""
    return next((server for server in ctx.resources.mcp if server.token_env and server.url), None)


@asynccontextmanager
async def run_endpoint(ctx: AgentRunContext, api: HostApi) -> AsyncGenerator[RunEndpoint | None, None]:
    """The endpoint while the block lasts; None when this run was granted none."""
    own, token = own_endpoint(ctx), api.secrets.get(TOKEN)
    if own is None or own.url is None or own.token_env is None or token is None:
        yield None
    elif own.url.startswith(UNIX):
        async with relay(own.url.removeprefix(UNIX)) as port:
            yield RunEndpoint(f"http://127.0.0.1:{port}{PATH}", own.token_env, token)
    else:
        yield RunEndpoint(own.url, own.token_env, token)


@asynccontextmanager
async def relay(socket: str) -> AsyncGenerator[int, None]:
    """A port of this machine's loopback that leads to a unix socket. What is under way ends with the block."""
    open_ones: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(open_ones) >= MAX_CONNECTIONS:
            writer.close()
            return
        open_ones.add(task)
        try:
            await _join(socket, reader, writer)
        finally:
            open_ones.discard(task)
            writer.close()

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in list(open_ones):
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


async def _join(socket: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        far_reader, far_writer = await asyncio.open_unix_connection(socket)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer))
                both.create_task(_pump(far_reader, writer))
        except* OSError:
            pass
        finally:
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    with suppress(OSError, NotImplementedError):
        writer.write_eof()
