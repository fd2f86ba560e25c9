"""One request on the short way and its answer: a run's stream, written to the socket as it is committed.

It stands in the place of uvicorn's cycle and has the names uvicorn asks for. What it cannot do at once it hands over to
a cycle of uvicorn's: an answer that is neither a stream nor a 202, a reader that is slow, facts that are no longer in
memory, and a stream that goes on for more than a moment and then needs keep-alives.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import structlog
from starlette.requests import Request

from paddock.http_api.edge.errors import Endpoint
from paddock.http_api.edge.requests import JSON_HEADERS, JsonResponse
from paddock.http_api.streams.stream import HEADERS, UNWATCHED, RunStream

if TYPE_CHECKING:
    from paddock.http_api.edge.connection import Connection

log = structlog.get_logger(__name__)

Headers = Sequence[tuple[bytes, bytes]]
ACCEPTED = 202


class _MessageEvent:
    """The event that uvicorn sets when something came from the client, or when the client is gone."""

    __slots__ = ("set",)

    def __init__(self, called: Callable[[], None]) -> None:
        self.set = called


class Exchange:
    __slots__ = (
        "_connection",
        "_stream",
        "_timer",
        "disconnected",
        "keep_alive",
        "message_event",
        "response_complete",
        "scope",
    )

    def __init__(self, connection: "Connection", scope: dict[str, Any], *, keep_alive: bool) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False
        self.message_event = _MessageEvent(self.client_moved)
        self._connection = connection
        self._stream: RunStream | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def answer(self, door: Endpoint, request: Request) -> None:
        answer = await door.answer(request)
        if isinstance(answer, RunStream) and not answer.is_watched:
            self._begin(answer)
        elif (
            isinstance(answer, JsonResponse)
            and answer.status_code == ACCEPTED
            and not self._connection.flow.write_paused
        ):
            self._accept(answer)
        else:
            cycle = self._connection.cycle_after(self)
            await cycle.run_asgi(answer)  # pyright: ignore[reportArgumentType]

    # --- what uvicorn asks --------------------------------------------------------------------------------------------

    def client_moved(self) -> None:
        """End the stream of a client that is gone."""
        if self.disconnected and self._stream is not None:
            self._let_go(self._stream).close()

    def _accept(self, answer: JsonResponse) -> None:
        """Answer an accepted run: head and body in one write."""
        if self.disconnected:
            return
        head = _ACCEPTED.of(self._connection.server_state.default_headers, last=not self.keep_alive)
        body = answer.body
        self._connection.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        self._complete()

    def _complete(self) -> None:
        self.response_complete = True
        if not self.keep_alive:
            self._connection.transport.close()
        self._connection.on_response_complete()

    # --- the stream ---------------------------------------------------------------------------------------------------

    def _begin(self, stream: RunStream) -> None:
        if self.disconnected:
            stream.close()
            return
        head = _STREAM.of(self._connection.server_state.default_headers, last=not self.keep_alive)
        self._write(stream, stream.said(stream.first), head + b"\r\n")
        if not stream.ended:
            self._stream = stream
            self._timer = self._connection.loop.call_later(UNWATCHED, self._hand_over)
            stream.follower.listen(self._more)
            self._more()  # what was committed while the beginning was read: nobody calls for that again

    def _more(self) -> None:
        """Something was committed. Whoever committed it calls, so nothing may go wrong here but the stream itself."""
        stream = self._stream
        if stream is None:
            return
        try:
            entries = None if self._connection.flow.write_paused else stream.follower.read_now()
            if entries is None:
                self._hand_over()
            elif entries:
                self._write(stream, stream.said(entries))
        except Exception:
            log.exception("a stream was cut", action="http.stream_cut")
            self._let_go(stream).close()
            self._connection.transport.abort()

    def _write(self, stream: RunStream, said: bytes, head: bytes = b"") -> None:
        connection = self._connection
        piece = b"%b%x\r\n%b\r\n" % (head, len(said), said) if said else head
        if not stream.ended:
            connection.transport.write(piece)
            return
        connection.transport.write(piece + b"0\r\n\r\n")
        self._let_go(stream).close()
        self._complete()

    def _hand_over(self) -> None:
        stream = self._stream
        if stream is None:
            return
        self._let_go(stream).follower.be_quiet()
        cycle = self._connection.cycle_after(self)
        cycle.response_started = cycle.chunked_encoding = True
        self._connection.start(cycle, stream.rest)

    def _let_go(self, stream: RunStream) -> RunStream:
        self._stream = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return stream


class _Heads:
    """The head that many answers have, made once for the headers uvicorn gives all of them; it changes those each
    second. The empty line at its end is left to the answer."""

    def __init__(self, status: bytes, *own: tuple[bytes, bytes]) -> None:
        self._status = status
        self._own = own
        self._made_of: Headers | None = None
        self._heads = (b"", b"")

    def of(self, default: Headers, *, last: bool) -> bytes:
        if default is not self._made_of:
            self._made_of = default
            head = b"HTTP/1.1 %b\r\n" % self._status
            head += b"".join(b"%b: %b\r\n" % header for header in (*default, *self._own))
            self._heads = head, head + b"connection: close\r\n"
        return self._heads[last]


_STREAM = _Heads(b"200 OK", *HEADERS, (b"transfer-encoding", b"chunked"))
_ACCEPTED = _Heads(b"202 Accepted", *JSON_HEADERS)
