"""A connection that does not wait for ever: requests that come too slowly are given up, too large heads are refused.

One timer for each connection, which only looks; a request costs it a few assignments. What is too slow or too large is
said in `bounds`, as is what is too much for all connections together. uvicorn itself has no such limit.
"""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from paddock.http_api.edge.bounds import PATIENCE, Arriving, Crowd, Patience
from paddock.http_api.edge.errors import problem
from paddock.rules.errors import ErrorCode

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


LINGER_SECONDS = 1.0
"""After a refusal. Closing at once, with bytes unread, would make the client's system throw the answer away."""
LINGER_IN_BODY_SECONDS = 5.0
"""The same, for a client that goes on sending a body whose answer it has: some read only when they have sent it."""
REST_BYTES = 64 * 1024
"""So much more of an answered request's body is read, so that the connection can go on. Nobody looks at it."""
SENT_AHEAD = 16
"""Requests that wait in one connection for the answers before theirs. With one more, nothing more is read from it."""


class HeadTooLargeError(Exception):
    """Raised in the parser, which then stops reading."""


class SentAheadError(Exception):
    """Raised in the parser for a request too many, which then stops reading."""


class WatchedConnection(HttpToolsProtocol):
    """uvicorn's connection with an eye on what arrives."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        patience: Patience = PATIENCE,
        crowd: Crowd | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._patience = patience
        self._crowd = crowd or Crowd()
        self._arriving = Arriving.HEAD
        self._since = 0.0
        self._piece = 0
        self._size = 0
        self._is_first = True
        """The next message begins where this piece does, so all of the piece counts."""
        self._unfinished = False
        self._rest = 0
        """How much came of the body after its request was answered."""
        self._too_large = False
        self._too_many = False
        self._refused = False
        self._answering: RequestResponseCycle | None = None
        """The request that is being answered; uvicorn's `cycle` is the one that came last."""
        self._stuck_at = 0
        self._stuck_since = 0.0
        self._watch: asyncio.TimerHandle | None = None

    # --- what the transport tells -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._since = self.loop.time()
        if self._crowd.came(self, len(self.connections)):
            self._look_later()
        else:
            self._turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._crowd.left(self)
        self.pipeline.clear()
        answering = self._answering
        if answering is not None and answering is not self.cycle and not answering.response_complete:
            answering.disconnected = True
            answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._arriving is Arriving.NOTHING:
            self._size, self._is_first = 0, True
        while data and not self._refused and not self.transport.is_closing():
            data = self._take(data)

    def _take(self, data: bytes) -> bytes:
        """Feed the parser: of a head no more than it may have. What is left over."""
        room = len(data) if self._arriving is Arriving.BODY else self._patience.max_head_bytes - self._size
        if room <= 0:
            self._refuse_head()
            return b""
        piece = data[:room]
        self._piece = len(piece)
        self._size += self._piece
        super().data_received(piece)
        if self._arriving is Arriving.BODY and not self._refused:
            self._goes_on()
        elif self._unfinished:
            self._unfinished = False
            self._crowd.is_whole(self)
        return data[room:]

    def _goes_on(self) -> None:
        self._unfinished = True
        if len(self.headers) > self._patience.max_headers:  # what stands behind a body is read as headers too
            self._refuse_head()
        elif self._is_answered:
            self._rest += self._piece
            if self._rest > REST_BYTES:
                self._leave(LINGER_IN_BODY_SECONDS)
        else:
            self._crowd.holds(self, self._size)

    def pause_writing(self) -> None:
        self._crowd.is_unread(self)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._crowd.is_read(self)
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        self._stop_watching()
        self._crowd.left(self)
        super().handle_websocket_upgrade()

    # --- what the crowd asks ------------------------------------------------------------------------------------------

    @property
    def caller(self) -> int:
        given = next((value for name, value in self.headers if name == b"authorization"), None)
        return 0 if given is None else hash(given) or 1

    def leave_idle(self) -> None:
        self.transport.close()

    def leave_unread(self) -> None:
        self.transport.abort()

    def leave_unfinished(self) -> None:
        if self._is_being_answered:
            self.transport.close()
        else:
            self._refuse(503, ErrorCode.UNAVAILABLE, "too much is on its way to this host at once; send it again")

    def _turn_away(self) -> None:
        self._refused = True
        self.transport.write(self._said(503, ErrorCode.UNAVAILABLE, "this host has as many connections as it takes"))
        self.transport.close()

    def answered(self) -> None:
        """To be called when nothing more is to be said for now."""
        if self._too_many:
            self._leave()
            return
        self._crowd.is_whole(self)
        self._crowd.is_idle(self)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    # --- what the parser tells ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._arriving, self._since = Arriving.HEAD, self.loop.time()
        if not self._is_first:
            self._size = 0
        self._is_first = False
        self._rest = 0
        super().on_message_begin()

    def head_came(self) -> None:
        """To be called when a head is complete, before anything is done with it."""
        if len(self.pipeline) >= SENT_AHEAD:
            self._too_many = True
            raise SentAheadError
        patience = self._patience
        maybe = self._size + self._piece > patience.max_head_bytes or len(self.headers) > patience.max_headers
        if maybe and patience.is_too_large(self.url, self.headers):
            self._too_large = True
            raise HeadTooLargeError
        self._arriving = Arriving.BODY
        self._crowd.is_busy(self)

    def body_came(self) -> None:
        """To be called when a request is complete."""
        self._arriving = Arriving.NOTHING

    # --- refusing -----------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the name is uvicorn's
        """Answer a request that the parser rejects, as a problem like every other refusal."""
        if self._too_many:
            self._refused = True  # the answers that are due come first
        elif self._too_large:
            self._refuse_head()
        elif self._is_being_answered:
            self.transport.close()
        else:
            self._refuse(400, ErrorCode.INVALID_ARGUMENT, "this is not a valid HTTP request")

    def _refuse_head(self) -> None:
        most = f"{self._patience.max_headers} headers and {self._patience.max_head_bytes} bytes"
        self._refuse(431, ErrorCode.PAYLOAD_TOO_LARGE, f"the head of a request may have at most {most}")

    def _refuse(self, status: int, code: ErrorCode, detail: str) -> None:
        self.transport.write(self._said(status, code, detail))
        self._leave()

    def _said(self, status: int, code: ErrorCode, detail: str) -> bytes:
        later = {"retry-after": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        answer = problem(status, code, detail, headers={"connection": "close", **later})
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"%b%b\r\n%b" % (STATUS_LINE[status], head, bytes(answer.body))

    def _leave(self, seconds: float = LINGER_SECONDS) -> None:
        """Nothing more is said or heard; whoever waits for the rest of the body is told that it does not come."""
        self._refused = True
        self._stop_watching()
        self._crowd.left(self)
        if self._arriving is Arriving.BODY and self.cycle and self.cycle.scope is self.scope:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._watch = self.loop.call_later(seconds, self.transport.close)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # then it is us who are slow
            self._since, self._size = now, 0
        if self._is_stuck(now):
            self.transport.abort()
        elif self._patience.is_over(self._arriving, now - self._since, self._size):
            self._give_up()
        else:
            self._look_later()

    def _is_stuck(self, now: float) -> bool:
        """True when nothing was read by the client for longer than it may pause."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == 0 or waiting != self._stuck_at:
            self._stuck_at, self._stuck_since = waiting, now
        return now - self._stuck_since > self._patience.reader_seconds

    def _give_up(self) -> None:
        asked = cast("list[tuple[bytes, bytes]] | None", self.headers) is not None
        if asked and not self._is_being_answered:
            self._refuse(408, ErrorCode.DEADLINE_EXCEEDED, "the request did not arrive in time; send it again, faster")
        else:
            self.transport.close()

    @property
    def _is_answered(self) -> bool:
        """True when the request whose body is still coming has its answer already."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and cycle.scope is self.scope and cycle.response_complete

    @property
    def _is_being_answered(self) -> bool:
        """True while an answer to this request or the one before is under way: nothing may be written in between."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None:
            return False
        if self._arriving is Arriving.BODY and cycle.scope is self.scope:
            return cycle.response_started
        return not cycle.response_complete

    def _look_later(self) -> None:
        self._watch = self.loop.call_later(self._patience.look_seconds, self._look)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
