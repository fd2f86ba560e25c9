"""A connection that became a web socket. Its library has no bounds for small pieces; they are here.

It stands between the socket and uvicorn's own protocol, as `WatchedConnection` does for requests. Whoever was not let
in yet, or was refused, is nobody we know: little of what they say is read.
"""

import asyncio
from typing import Any, cast

import structlog

LINGER_SECONDS = 1.0
"""After a close frame, for the one that answers it. uvicorn would wait ten times as long."""
PIECE_BYTES = 8 * 1024
"""So much is read in one turn of the loop: a frame may have six bytes, and each is some work."""
UNASKED_BYTES = 4 * 1024
"""So much is read of whoever was not let in, or was told to go."""
MOST_FRAGMENTS = 4096
"""Frames of one message. Empty ones do not count for its size, and would be kept without end."""

log = structlog.get_logger("paddock.http")


class WatchedSocket(asyncio.BufferedProtocol):
    """Made by uvicorn for a request that asks for a web socket, and handed its head."""

    def __init__(self, **about: Any) -> None:
        # few hosts ever have a web socket, so its library is loaded then
        from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

        self._socket = WebSocketsSansIOProtocol(**about)
        self._socket.close_timeout = LINGER_SECONDS
        self._transport = cast("asyncio.Transport", None)  # comes with the connection
        self._piece = bytearray(PIECE_BYTES)
        self._unasked = 0

    @property
    def has_begun(self) -> bool:
        """False when the library could not read the head. It says nothing then, not even to whoever asked."""
        return self._socket.handshake_initiated

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.connection_lost(exc)

    def pause_writing(self) -> None:
        self._socket.pause_writing()

    def resume_writing(self) -> None:
        self._socket.resume_writing()

    def eof_received(self) -> None:
        self._socket.eof_received()

    def data_received(self, data: bytes) -> None:
        """The head of the request, handed over by uvicorn."""
        self._socket.data_received(data)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002 - the loop's guess would be a large one
        return self._piece

    def buffer_updated(self, nbytes: int) -> None:
        if not self._socket.handshake_complete or self._socket.close_sent:
            self._unasked += nbytes
            if self._unasked > UNASKED_BYTES:
                if not self._socket.handshake_complete:
                    self._transport.abort()
                return
        self._socket.data_received(bytes(memoryview(self._piece)[:nbytes]))
        if len(self._socket.frames) > MOST_FRAGMENTS:
            log.warning("a message came in too many frames", action="http.too_many_frames", most=MOST_FRAGMENTS)
            self._transport.abort()
