"""A client's connection: uvicorn's own, with a short way from the socket to the doors where runs are asked for.

Between a socket and a door ASGI puts events, a dictionary for each thing said, and a write for the head alone; for a
short run that is a tenth of all the host does. On the short way the body is read whole, the door is called, and what
is committed is written to the socket by whoever committed it. Everything unusual is left to uvicorn: other requests,
large bodies, requests sent before the last was answered, answers that are no stream, readers that are slow, and streams
that go on for more than a moment.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from paddock.http_api.edge.bounds import PATIENCE, Crowd, Patience
from paddock.http_api.edge.errors import Endpoint
from paddock.http_api.edge.exchange import Exchange
from paddock.http_api.edge.requests import Whole
from paddock.http_api.edge.slow_clients import WatchedConnection

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

MAX_BODY = 65_536
"""A longer body is taken in pieces, by uvicorn, so that one that is too long is refused before all of it came."""

Way = tuple[Endpoint, Mapping[str, str]]
"""A door, and what the path says beside naming it."""
FindWay = Callable[[bytes, bytes], Way | None]
"""(method, path and query) to a door that is reached the short way; None for everything else."""


class Connection(WatchedConnection):
    """One connection. `find_way` says which requests go the short way."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        find_way: FindWay,
        patience: Patience = PATIENCE,
        crowd: Crowd | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop, patience=patience, crowd=crowd)
        self._find_way = find_way
        self._way: Way | None = None
        self._body = b""
        self._quiet_since = 0.0

    # --- what the parser tells ----------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        self.head_came()
        parser = self.parser
        assert parser is not None  # it calls us
        method = parser.get_method()
        plain = self._is_short and not (self._busy or self.expect_100_continue or parser.should_upgrade())
        self._way = self._find_way(method, self.url) if plain and parser.get_http_version() == "1.1" else None
        self._body = b""
        if self._way is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._way is None:
            super().on_body(body)
            return
        self._body = self._body + body if self._body else body

    def on_message_complete(self) -> None:
        self.body_came()
        if self._way is None:
            super().on_message_complete()
            return
        (door, named), self._way = self._way, None
        scope = cast("dict[str, Any]", self.scope)
        scope.update(method="POST", path=self.url.decode(), raw_path=self.url, query_string=b"", path_params=named)
        exchange = Exchange(self, scope, keep_alive=self.parser is not None and self.parser.should_keep_alive())
        self.cycle = self._answering = cast("RequestResponseCycle", exchange)
        task = self.loop.create_task(exchange.answer(door, Whole(scope, self._body)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def _is_short(self) -> bool:
        """True when the client declares a short body. Web pages need more headers than a stream has, so they go the
        ordinary way.
        """
        length = b""
        for name, value in self.headers:
            if name == b"origin":
                return False
            if name == b"content-length" and not length:
                length = value
        return 0 < len(length) < 6 and length.isdigit() and int(length) <= MAX_BODY

    @property
    def _busy(self) -> bool:
        """True while the last request is still being answered."""
        before = cast("RequestResponseCycle | None", self.cycle)
        return before is not None and not before.response_complete

    # --- leaving the short way ----------------------------------------------------------------------------------------

    def cycle_after(self, exchange: Exchange) -> RequestResponseCycle:
        """uvicorn's own, to go on with what an exchange began."""
        cycle = RequestResponseCycle(
            scope=exchange.scope,  # pyright: ignore[reportArgumentType]
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=exchange.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.more_body = False
        cycle.disconnected = exchange.disconnected
        if self.cycle is cast("Any", exchange):
            self.cycle = cycle
        self._answering = cycle
        return cycle

    def start(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._start_asgi_task(cycle, app)

    # --- one timer for a connection's idle time, and not one for each request -----------------------------------------

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        if not self.pipeline:
            self.flow.resume_reading()
        else:  # uvicorn would read on here, and keep whatever a client sends that reads no answer
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._quiet_since = self.loop.time()
        self.answered()
        if self.timeout_keep_alive_task is None:
            self._look_after(self.timeout_keep_alive)

    def _unset_keepalive_if_required(self) -> None:
        """uvicorn asks at every request; here the timer itself finds out whether there was one."""
        if self.transport.is_closing():
            self._stop_looking()

    def handle_websocket_upgrade(self) -> None:
        self._stop_looking()
        super().handle_websocket_upgrade()

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self.transport.is_closing():
            return
        quiet = self.loop.time() - self._quiet_since
        if self._way is not None or not self.cycle.response_complete:
            self._look_after(self.timeout_keep_alive)
        elif quiet < self.timeout_keep_alive:
            self._look_after(self.timeout_keep_alive - quiet)
        else:
            self.transport.close()

    def _look_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _stop_looking(self) -> None:
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None
