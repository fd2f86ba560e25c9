"""A connection that does not wait for ever: requests that come too slowly are given up, too large heads are refused.

One timer for each connection, which only looks; a request costs it a few assignments. What is too slow or too large is
said in `patience`. uvicorn itself has neither limit.
"""

import asyncio
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from paddock.http_api.errors import problem
from paddock.http_api.patience import PATIENCE, Arriving, Patience
from paddock.rules.errors import ErrorCode

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


LINGER_SECONDS = 1.0
"""After a refusal. Closing at once, with bytes unread, would make the client's system throw the answer away."""


class HeadTooLargeError(Exception):
    """Raised in the parser, which then stops reading."""


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
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._patience = patience
        self._arriving = Arriving.HEAD
        self._since = 0.0
        self._piece = 0
        self._size = 0
        self._too_large = False
        self._refused = False
        self._watch: asyncio.TimerHandle | None = None

    # --- what the transport tells -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._piece = len(data)
        self._size += self._piece
        super().data_received(data)
        if self._arriving is Arriving.HEAD and self._size > self._patience.max_head_bytes and not self._refused:
            self._refuse_head()

    def handle_websocket_upgrade(self) -> None:
        self._stop_watching()
        super().handle_websocket_upgrade()

    # --- what the parser tells ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._arriving, self._since, self._size = Arriving.HEAD, self.loop.time(), 0
        super().on_message_begin()

    def head_came(self) -> None:
        """To be called when a head is complete, before anything is done with it."""
        patience = self._patience
        maybe = self._size + self._piece > patience.max_head_bytes or len(self.headers) > patience.max_headers
        if maybe and patience.is_too_large(self.url, self.headers):
            self._too_large = True
            raise HeadTooLargeError
        self._arriving = Arriving.BODY

    def body_came(self) -> None:
        """To be called when a request is complete."""
        self._arriving = Arriving.NOTHING

    # --- refusing -----------------------------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the name is uvicorn's
        """What uvicorn says when its parser stops: as a problem, like everything else that is refused."""
        if self._too_large:
            self._refuse_head()
        elif self._is_being_answered:
            self.transport.close()
        else:
            self._refuse(400, ErrorCode.INVALID_ARGUMENT, "this is not a valid HTTP request")

    def _refuse_head(self) -> None:
        most = f"{self._patience.max_headers} headers and {self._patience.max_head_bytes} bytes"
        self._refuse(431, ErrorCode.PAYLOAD_TOO_LARGE, f"the head of a request may have at most {most}")

    def _refuse(self, status: int, code: ErrorCode, detail: str) -> None:
        answer = problem(status, code, detail, headers={"connection": "close"})
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], head, bytes(answer.body)))
        self._leave()

    def _leave(self) -> None:
        """Nothing more is said or heard; whoever waits for the rest of the body is told that it does not come."""
        self._refused = True
        self._stop_watching()
        if self._arriving is Arriving.BODY and self.cycle and self.cycle.scope is self.scope:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._watch = self.loop.call_later(LINGER_SECONDS, self.transport.close)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now = self.loop.time()
        if self.flow.read_paused:  # then it is us who are slow
            self._since, self._size = now, 0
        if self._patience.is_over(self._arriving, now - self._since, self._size):
            self._give_up()
        else:
            self._look_later()

    def _give_up(self) -> None:
        asked = cast("list[tuple[bytes, bytes]] | None", self.headers) is not None
        if asked and not self._is_being_answered:
            self._refuse(408, ErrorCode.DEADLINE_EXCEEDED, "the request did not arrive in time; send it again, faster")
        else:
            self.transport.close()

    @property
    def _is_being_answered(self) -> bool:
        """Whether an answer of this request, or of the one before, is under way: nothing may be said between."""
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
