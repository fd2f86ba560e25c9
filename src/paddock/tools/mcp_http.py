"""An MCP server at an address: spoken to over streamable HTTP, each of its messages of a bounded length.

The official client speaks the protocol. It bounds what is streamed and reads an answer that is not streamed to its end,
however long that is; here both are held to what a server over stdio may say, in bytes and in values, and handed on in
pieces between which others have their turn. Packed answers are not read at all (`paddock_sdk.outbound`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread

from paddock.rules.run.input import JsonValues, holds_more_values
from paddock.tools.mcp_stdio import MAX_MESSAGE, MAX_VALUES, SHORT, TOO_LONG, TOO_MANY
from paddock_sdk import outbound

SILENT_SECONDS = 30.0
"""To connect and to send. A call has its own time, and between calls the server may be silent."""
PIECE = 16 * 1024
MAX_LINES = 50_000
"""Lines of one message that is streamed; a message that is written by a program has one."""
_EMPTY_LINES = (b"\n\n", b"\r\r", b"\r\n\r\n")
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
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):
            response.stream = _stream_of(_whole(response.stream), response.stream)
        elif kind.startswith("text/event-stream"):
            response.stream = _stream_of(_events(response.stream), response.stream)

    timeout, hooks = httpx2.Timeout(SILENT_SECONDS, read=None), {"response": [seen, bounded]}
    async with (
        outbound.client("any", headers=dict(headers), timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams[0], streams[1]


def was_lost(error: BaseException) -> bool:
    """Whether a call was sent and its answer never came, or came as nothing that can be read."""
    return getattr(getattr(error, "error", None), "code", None) in {CLOSED, UNREADABLE}


def _stream_of(pieces: AsyncIterator[bytes], stream: Any) -> Any:
    """The pieces as the client takes them; closing them closes the stream they come from."""
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return pieces

        async def aclose(self) -> None:
            await stream.aclose()

    return Stream()


def _refused(why: str) -> Exception:
    import httpx2

    return httpx2.StreamError(why)


async def _whole(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """One message, looked at before it is handed on."""
    message = bytearray()
    async for piece in stream:
        message += piece
        if len(message) > MAX_MESSAGE:
            raise _refused(TOO_LONG)
    if len(message) > SHORT and await anyio.to_thread.run_sync(holds_more_values, bytes(message), MAX_VALUES):
        raise _refused(TOO_MANY)
    yield bytes(message)


async def _events(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Messages one after the other, each ended by an empty line."""
    values, lines, before = JsonValues(MAX_VALUES), 0, b""
    async for received in stream:
        for start in range(0, len(received), PIECE):
            piece = received[start : start + PIECE]
            if (rest := _after_empty_line(before + piece)) is not None:
                values.begin_anew()
                lines = 0
            lines += piece.count(b"\n") + piece.count(b"\r")
            if values.feed(piece if rest is None else rest) or lines > MAX_LINES:
                raise _refused(TOO_MANY)
            before = piece[-3:]
            yield piece
            await asyncio.sleep(0)  # whoever reads it may take a while


def _after_empty_line(text: bytes) -> bytes | None:
    """What follows the last empty line; None when there is none."""
    ends = [place + len(empty) for empty in _EMPTY_LINES if (place := text.rfind(empty)) >= 0]
    return text[max(ends) :] if ends else None
