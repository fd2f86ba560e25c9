"""A client's connection: requests that come too slowly are given up, too large ones are refused.

It stands between the socket and uvicorn's own protocol, and hands on what it has looked at. A parser of the same
library reads along, so a limit is noticed before uvicorn sees the bytes; `WatchedApp` says how far the answers are.
What is too slow or too large is said in `bounds`, as is what is too much for all connections together.
"""

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import httptools
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from paddock.http_api.edge.bounds import PATIENCE, Arriving, Crowd, Patience
from paddock.http_api.edge.errors import problem
from paddock.http_api.edge.requests import IS_HERE
from paddock.http_api.edge.web_socket import WatchedSocket
from paddock.rules.errors import ErrorCode

if TYPE_CHECKING:
    from uvicorn.server import ServerState

LINGER_SECONDS = 1.0
"""After a refusal. Closing at once, with bytes unread, would make the client's system throw the answer away."""
LINGER_IN_BODY_SECONDS = 5.0
"""The same, for a client that goes on sending a body whose answer it has: some read only when they have sent it."""
REST_BYTES = 64 * 1024
"""So much more of an answered request's body is read, so that the connection can go on. Nobody looks at it."""
SENT_AHEAD = 16
"""Requests that wait in one connection for the answers before theirs. With one more, nothing more is read from it."""
EMPTY_LINE = b"\r\n"
END_OF_HEAD = b"\r\n\r\n"
CONNECTION = "paddock.connection"
"""Where a request's `state` names its connection."""

log = structlog.get_logger("paddock.http")
_mistakes = logging.getLogger("uvicorn.error.requests")
_mistakes.setLevel(logging.ERROR)
"""uvicorn's, for connections: what a client does wrong is the client's matter, and fills no log."""


class HeadTooLargeError(Exception):
    """Raised in the parser, which then stops reading."""


class SentAheadError(Exception):
    """Raised in the parser for a request too many, which then stops reading."""


def served(app: ASGIApp, crowd: Crowd, patience: Patience = PATIENCE, **settings: Any) -> Config:
    """Configure uvicorn to serve an application to connections that are watched."""

    settings.setdefault("ws", WatchedSocket)
    return Config(
        WatchedApp(app),  # pyright: ignore[reportArgumentType] - uvicorn has types of its own for the same thing
        http=partial(WatchedConnection, crowd=crowd, patience=patience),  # pyright: ignore[reportArgumentType] - likewise
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # who a caller is must not depend on a header anybody can send
        server_header=False,
        **settings,
    )


class WatchedConnection(asyncio.Protocol):
    """One connection. A single timer looks at it now and then; a request costs it a few assignments."""

    def __init__(
        self,
        config: Config,
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        crowd: Crowd,
        patience: Patience,
    ) -> None:
        self.caller = 0
        self.transport = cast("asyncio.Transport", None)  # comes with the connection
        self._answers = cast("HeadWithBody", None)  # likewise
        self._http = HttpToolsProtocol(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._http.logger = _mistakes
        self._server = server_state
        self._crowd = crowd
        self._patience = patience
        self._loop = _loop or asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._arriving = Arriving.HEAD
        self._since = 0.0
        self._size = 0
        """How much came of the request that is arriving."""
        self._url = b""
        self._headers = 0
        self._head_end = b""
        """The last bytes of a head that came in pieces."""
        self._body_left: int | None = None
        """How much of the body is still to come, where its length was declared."""
        self._rest = 0
        """How much came of the body after its request was answered."""
        self._due = 0
        """Requests whose answer is not complete."""
        self._is_too_many = self._is_left = False
        self._exchange: HttpExchange | None = None
        """The request that is being answered, and its answer."""
        self._stuck_at = 0
        self._stuck_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # --- what the transport tells -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._answers = HeadWithBody(self.transport, self._loop)
        self._http.connection_made(cast("asyncio.Transport", self._answers))
        self._since = self._loop.time()
        self._timer = self._loop.call_later(self._patience.look_seconds, self._look)
        if not self._crowd.came(self, len(self._server.connections)):
            text = "this host has as many connections as it takes"
            self.transport.write(self._refusal(503, ErrorCode.UNAVAILABLE, text))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_looking()
        self._crowd.left(self)
        self._tell_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not (self._is_left or self._is_too_many or self.transport.is_closing()):
            if self._arriving is Arriving.NOTHING and data[0] in EMPTY_LINE:
                data = data.lstrip(EMPTY_LINE)  # means nothing before a request
                continue
            size = self._together(data)
            if size == 0:
                self._refuse_head()
                return
            self._take(data[:size])
            data = data[size:]

    def pause_writing(self) -> None:
        self._crowd.is_unread(self)
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._crowd.is_read(self)
        self._http.resume_writing()

    # --- reading along ------------------------------------------------------------------------------------------------

    def _together(self, data: bytes) -> int:
        """Count the bytes to take at once: to the end of a head or of a body of known length, and no more of a head
        than it may have. So no two requests are taken together, but behind a body of unknown length."""
        if self._arriving is Arriving.BODY:
            return len(data) if self._body_left is None else min(len(data), self._body_left)
        found = (self._head_end + data).find(END_OF_HEAD)
        end = len(data) if found < 0 else found + len(END_OF_HEAD) - len(self._head_end)
        return min(end, self._patience.max_head_bytes - self._size)

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        was_in_body = self._arriving is Arriving.BODY
        if was_in_body and self._body_left is not None:
            self._body_left -= len(piece)
        is_upgrade = False
        try:
            self._parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            is_upgrade = True
        except httptools.HttpParserError as error:
            self._refuse_because_of(error.__context__)
            return
        self._http.data_received(piece)
        socket = self.transport.get_protocol() if is_upgrade else self
        if isinstance(socket, WatchedSocket):
            self._becomes(socket)
        elif self._arriving is Arriving.BODY:
            self._goes_on(len(piece))
        elif was_in_body:
            self._crowd.is_whole(self)
        elif self._arriving is Arriving.HEAD:
            self._head_end = (self._head_end + piece)[1 - len(END_OF_HEAD) :]

    def _becomes(self, socket: WatchedSocket) -> None:
        if socket.has_begun:
            self._stop_looking()
            self._crowd.left(self)
            if self.transport.is_reading():  # anew, by the socket's measure
                self.transport.pause_reading()
                self.transport.resume_reading()
            return
        self.transport.set_protocol(self)
        socket.connection_lost(ConnectionAbortedError())
        self._due -= 1
        self._refuse(400, ErrorCode.INVALID_ARGUMENT, "this request for a web socket cannot be read")

    def _goes_on(self, size: int) -> None:
        """Account for a body that is not complete yet."""
        if self._due == 0:
            self._rest += size
            if self._rest > REST_BYTES:
                self._leave(LINGER_IN_BODY_SECONDS)
            return
        self._crowd.holds(self, self._size)
        if self._due > 1 and self._size > REST_BYTES:
            self.transport.pause_reading()

    def on_message_begin(self) -> None:
        self._arriving, self._since = Arriving.HEAD, self._loop.time()
        self._url, self._headers, self._body_left, self._rest = b"", 0, None, 0
        self.caller = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, of the head or behind a body."""
        self._headers += 1
        if self._headers > self._patience.max_headers:
            raise HeadTooLargeError
        if self._arriving is Arriving.HEAD:
            name = name.lower()
            if name == b"content-length":
                self._body_left = int(value)
            elif name == b"authorization":
                self.caller = hash(value) or 1

    def on_headers_complete(self) -> None:
        if self._due > SENT_AHEAD:
            raise SentAheadError
        httptools.parse_url(self._url).path.decode("ascii")  # what uvicorn cannot read is refused before it sees it
        self._due += 1
        self._arriving, self._head_end = Arriving.BODY, b""
        self._crowd.is_busy(self)

    def on_message_complete(self) -> None:
        self._arriving, self._size = Arriving.NOTHING, 0

    # --- what an exchange tells ---------------------------------------------------------------------------------------

    def begins(self, exchange: "HttpExchange") -> bool:
        """Register the request that is answered next; return True if all of it has come."""
        self._exchange = exchange
        return self._arriving is not Arriving.BODY or self._due > 1

    def begins_to_answer(self) -> None:
        self._answers.hold()

    def answered(self) -> None:
        self._exchange = None
        self._due -= 1
        if self._is_left:
            return
        if self._due > 1:
            self.transport.pause_reading()  # uvicorn reads on, and would keep whatever a client sends ahead
            return
        self.transport.resume_reading()
        if self._due == 0 and self._is_too_many:
            self._leave()
        elif self._due == 0:
            self._crowd.is_whole(self)
            self._crowd.is_idle(self)

    def read_on(self) -> None:
        """Only who reads notices that a client is gone."""
        self.transport.resume_reading()

    # --- what the crowd asks ------------------------------------------------------------------------------------------

    def leave_idle(self) -> None:
        self.transport.close()

    def leave_unread(self) -> None:
        self.transport.abort()

    def leave_unfinished(self) -> None:
        self._refuse(503, ErrorCode.UNAVAILABLE, "too much is on its way to this host at once; send it again")

    # --- refusing -----------------------------------------------------------------------------------------------------

    def _refuse_because_of(self, reason: BaseException | None) -> None:
        if isinstance(reason, SentAheadError):
            self._is_too_many = True  # the answers that are due come first
        elif isinstance(reason, HeadTooLargeError):
            self._refuse_head()
        else:
            self._refuse(400, ErrorCode.INVALID_ARGUMENT, "this is not a valid HTTP request")

    def _refuse_head(self) -> None:
        most = f"{self._patience.max_headers} headers and {self._patience.max_head_bytes} bytes"
        self._refuse(431, ErrorCode.PAYLOAD_TOO_LARGE, f"the head of a request may have at most {most}")

    def _refuse(self, status: int, code: ErrorCode, detail: str) -> None:
        """Refuse the request that is arriving. While another answer is being sent, only close the connection."""
        log.debug("a request was refused before it was read", action="http.refused", status=status, reason=detail)
        if self._is_being_answered:
            self.transport.close()
            return
        self.transport.write(self._refusal(status, code, detail))
        self._leave()

    @property
    def _is_being_answered(self) -> bool:
        if self._due == 1 and self._arriving is Arriving.BODY:  # it is the arriving request that is answered next
            return self._exchange is not None and self._exchange.has_started
        return self._due > 0

    def _refusal(self, status: int, code: ErrorCode, detail: str) -> bytes:
        later = {"retry-after": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        answer = problem(status, code, detail, headers={"connection": "close", **later})
        headers = [*self._server.default_headers, *answer.raw_headers]
        head = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), head, bytes(answer.body))

    def _leave(self, seconds: float = LINGER_SECONDS) -> None:
        """Send and read nothing more. A handler that waits for the rest of a body is told that the client is gone."""
        self._stop_looking()
        self._crowd.left(self, lingers=True)
        self._tell_lost(ConnectionAbortedError())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._timer = self._loop.call_later(seconds, self.transport.close)

    def _tell_lost(self, exc: Exception | None) -> None:
        if self._is_left:
            return
        self._is_left = True
        if self._exchange is not None:
            self._exchange.end()
        self._http.connection_lost(exc)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        now = self._loop.time()
        if not self.transport.is_reading():  # then it is us who are slow
            self._since, self._size = now, 0
        if self._is_stuck(now):
            self.transport.abort()
        elif self._patience.is_over(self._arriving, now - self._since, self._size):
            self._give_up()
        else:
            self._timer = self._loop.call_later(self._patience.look_seconds, self._look)

    def _is_stuck(self, now: float) -> bool:
        """True when nothing was read by the client for longer than it may pause."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == 0 or waiting != self._stuck_at:
            self._stuck_at, self._stuck_since = waiting, now
        return now - self._stuck_since > self._patience.reader_seconds

    def _give_up(self) -> None:
        if self._size == 0:  # a client that never asked for anything
            self.transport.close()
        else:
            self._refuse(408, ErrorCode.DEADLINE_EXCEEDED, "the request did not arrive in time; send it again, faster")

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class HeadWithBody:
    """The transport for uvicorn: an answer's head goes out with the first piece of its body, in one call of the system.

    That saves a short run one write of three. A head whose body is not there yet goes in the next turn of the loop."""

    __slots__ = ("_head", "_holds", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._holds = False
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def hold(self) -> None:
        """Keep the next write, which is a head, for the one after it."""
        self._holds = True

    def write(self, data: bytes) -> None:
        if self._holds:
            self._holds, self._head = False, data
            self._loop.call_soon(self._let_go)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(b"".join((head, data)))
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._let_go()
        self._transport.close()

    def _let_go(self) -> None:
        if self._head:
            self.write(b"")


class WatchedApp:
    """An application that tells each request's connection how far the answer is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            connection: WatchedConnection = scope["state"][CONNECTION]
            exchange = HttpExchange(connection, receive, send)
            if connection.begins(exchange):
                scope[IS_HERE] = True
            receive, send = exchange.receive, exchange.send
        await self._app(scope, receive, send)


class HttpExchange:
    """One request and its answer."""

    __slots__ = ("_connection", "_is_whole", "_over", "_receive", "_send", "has_started")

    def __init__(self, connection: WatchedConnection, receive: Receive, send: Send) -> None:
        self.has_started = False
        self._connection = connection
        self._receive = receive
        self._send = send
        self._is_whole = False
        self._over = asyncio.Event()

    def end(self) -> None:
        """Nothing can be said any more."""
        self._over.set()

    async def receive(self) -> Message:
        """The body, and then the end: uvicorn tells it only to the request that came last."""
        if not self._is_whole:
            message = await self._receive()
            self._is_whole = not message.get("more_body", False)
            return message
        self._connection.read_on()
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self.has_started:
            self.has_started = True
            self._connection.begins_to_answer()
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._over.set()
            self._connection.answered()
