"""An MCP server at an address: spoken to over streamable HTTP, each of its messages of a bounded length.

The official client speaks the protocol. It bounds what is streamed and reads an answer that is not streamed to its end,
however long that is; here both are held to what a server over stdio may say.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from paddock.tools.mcp_stdio import MAX_MESSAGE, TOO_LONG
from paddock_sdk import outbound

SILENT_SECONDS = 30.0
"""To connect and to send. A call has its own time, and between calls the server may be silent."""
CLOSED, UNREADABLE = -32000, -32700
"""What the official client says of a request whose answer was lost on the way, in the codes of JSON-RPC."""


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], seen: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams that the official session is made of. `seen` is shown every response before it is read."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def bounded(response: Any) -> None:
        if response.headers.get("content-type", "").startswith("application/json"):
            response.stream = _bounded(response.stream)

    timeout, hooks = httpx2.Timeout(SILENT_SECONDS, read=None), {"response": [seen, bounded]}
    async with (
        outbound.client("any", headers=dict(headers), timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams[0], streams[1]


def was_lost(error: BaseException) -> bool:
    """Whether a call was sent and its answer never came, or came as nothing that can be read."""
    return getattr(getattr(error, "error", None), "code", None) in {CLOSED, UNREADABLE}


def _bounded(stream: Any) -> Any:
    """The same stream, up to a length."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in _up_to(stream, MAX_MESSAGE, httpx2.StreamError(TOO_LONG)):
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


async def _up_to(stream: AsyncIterable[bytes], most: int, error: Exception) -> AsyncIterator[bytes]:
    async for piece in stream:
        most -= len(piece)
        if most < 0:
            raise error
        yield piece
