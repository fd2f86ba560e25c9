"""`/mcp/run`: what one run was granted, for programs that speak MCP. The token says which run; nothing else lets in.

The token is looked up on every request, also on those of an open MCP session, and a session belongs to the run that
opened it. Neither keys nor the keyless rule count here. The MCP library is slow to import: it is loaded, off the loop,
when the first run that may be called begins.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

import anyio
import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from paddock.host.calls.host_calls import HostCalls
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.surroundings import PATH, RunEndpoints
from paddock.http_api.edge.auth import by_name, names_loopback
from paddock.http_api.edge.errors import GUARDED, guarded, refusal
from paddock.http_api.edge.requests import read_body
from paddock.ports import HostCallHandler
from paddock.rules.access.limits import MAX_CALL_BYTES, TokenBucket
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.request_bodies import holds_more_values

if TYPE_CHECKING:
    from paddock.http_api.mcp.server import RunServer

METHODS = ("GET", "POST", "DELETE")
NO_RUN = "this is no token of a run that goes on; a run's token is made for it and ends with it"
SHORT = 64 * 1024
MAX_VALUES = 100_000
"""Values in one request: making them takes far longer than reading text."""
NOTED_PER_SECOND, NOTED_AT_ONCE = 5.0, 50.0
"""Strangers that are put on record; a flood of them is only refused."""
_BEARER = re.compile(rb"bearer +([A-Za-z0-9._~+/=-]{16,256})", re.ASCII | re.IGNORECASE)

log = structlog.get_logger("paddock.mcp")

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class McpDoor:
    """An ASGI application for one path."""

    def __init__(
        self,
        endpoints: RunEndpoints,
        calls: HostCalls,
        *,
        on_call: HostCallHandler | None = None,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
        spawn: Spawn,
    ) -> None:
        self._endpoints = endpoints
        self._calls = calls
        self._on_call: HostCallHandler = on_call or calls.on_wire
        self._note = note
        self._clock = clock
        self._spawn = spawn
        self._servers: dict[str, RunServer] = {}
        self._loading: asyncio.Task[None] | None = None
        self._noted = TokenBucket.full(NOTED_PER_SECOND, NOTED_AT_ONCE, clock())
        endpoints.when_over(self._over)
        endpoints.when_opened(self._load)

    def routes(self) -> list[BaseRoute]:
        return [Route(PATH, self, methods=list(METHODS))]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await Response(status_code=404, headers=GUARDED)(scope, receive, send)
            return
        try:
            self._admit(scope)
            await self._loaded()
            looked_at = await _looked_at(scope, receive)
            run = self._admit(scope)  # loading takes seconds, and the run may have ended meanwhile
        except HostError as error:
            await refusal(error)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        await self._server_of(run).handle(scope, looked_at, guarded(send))

    # --- who

    def _admit(self, scope: Scope) -> LiveRun:
        headers = by_name(scope)
        self._check_place(headers)
        found = _BEARER.fullmatch(headers.get(b"authorization", b""))
        run = self._endpoints.find(found[1].decode()) if found else None
        if run is None:
            self._refuse(ErrorCode.UNAUTHENTICATED, NO_RUN, "no token of a live run" if found else "no token")
        return run

    def _check_place(self, headers: dict[bytes, bytes]) -> None:
        """Refuse calls of web pages, even of one whose own host name leads to this machine."""
        host, origin = headers.get(b"host", b""), headers.get(b"origin")
        if not (names_loopback(host) or host.decode("latin-1").lower() == self._own_authority()):
            self._refuse(ErrorCode.UNAUTHORIZED, "the Host header names no address of this host", "foreign Host header")
        if origin is not None and origin.partition(b"://")[2] != host:
            self._refuse(ErrorCode.UNAUTHORIZED, "web pages of another origin may not call this", "foreign Origin")

    def _own_authority(self) -> str | None:
        address = self._endpoints.address
        return None if address is None else urlsplit(address).netloc.lower()

    def _refuse(self, code: ErrorCode, message: str, reason: str) -> NoReturn:
        now = self._clock()
        if self._noted.take(now) <= 0:
            self._note(AuditRow(now, "", "unknown", "mcp.open", PATH, "", str(code), reason))
        raise HostError(code, message)

    # --- where it goes

    async def _loaded(self) -> None:
        self._load()
        if self._loading is not None and not self._loading.done():
            await asyncio.shield(self._loading)

    def _server_of(self, run: LiveRun) -> "RunServer":
        server = self._servers.get(run.run_id)
        if server is None:
            server = self._servers[run.run_id] = library().RunServer(
                run, self._on_call, overloaded=self._calls.overloaded, spawn=self._spawn
            )
            at, grant = self._clock(), run.grant
            self._note(
                AuditRow(
                    at,
                    grant.scope.workspace_id,
                    f"plugin:{server.caller.plugin}",
                    "mcp.open",
                    PATH,
                    grant.scope.session_id,
                    "allowed",
                    "the token of the run",
                    run_id=run.run_id,
                    runner_id=grant.runner_id,
                    session_id=grant.scope.session_id,
                )
            )
        return server

    @property
    def servers(self) -> int:
        return len(self._servers)

    def _load(self) -> None:
        if self._loading is None:
            self._loading = self._spawn(anyio.to_thread.run_sync(library))

    def _over(self, run_id: str) -> None:
        server = self._servers.pop(run_id, None)
        if server is not None:
            server.end()


def library() -> Any:
    """Import the server of the MCP library, which takes long the first time."""
    return import_module("paddock.http_api.mcp.server")


async def _looked_at(scope: Scope, receive: Receive) -> Receive:
    """Read the whole body and check how many values it holds: the library would parse any number at once."""
    if scope["method"] != "POST":
        return receive
    body = await read_body(Request(scope, receive), MAX_CALL_BYTES, f"a request has at most {MAX_CALL_BYTES} bytes")
    if len(body) > SHORT and await anyio.to_thread.run_sync(holds_more_values, body, MAX_VALUES):
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a request holds at most {MAX_VALUES} values")
    given = iter(({"type": "http.request", "body": body, "more_body": False},))

    async def whole() -> Message:
        return next(given, None) or await receive()

    return whole
