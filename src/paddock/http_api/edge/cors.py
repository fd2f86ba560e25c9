"""Which web pages of elsewhere may call: none, unless the operator names their origins.

Browsers ask before they let a page read an answer; this is what they are told. No cookies are involved: a page has to
bring a key like everybody else. A page that is not named gets no word, and the browser keeps the answer from it; the
log says once what to do, for whoever forgot to name their own.
"""

from collections.abc import Iterable

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddock.http_api.edge.errors import problem
from paddock.rules.errors import ErrorCode

log = structlog.get_logger(__name__)

EVERYBODY = "*"
MAY_USE = b"GET, POST, PUT, PATCH, DELETE"
MAY_SEND = b"authorization, content-type, last-event-id, accept"
MAY_READ = b"retry-after, location, content-disposition"
REMEMBER_SECONDS = b"600"
SAID_AT_MOST = 20
"""Of so many pages the log speaks."""


def origin_of(scope: Scope) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == b"origin"), None)


class Cors:
    """An application, with the answer browsers ask for around it."""

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.lower().encode() for origin in origins)
        self._all = EVERYBODY.encode() in self._origins
        self._said: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = origin_of(scope) if scope["type"] == "http" else None
        if origin is None:
            await self._app(scope, receive, send)
            return
        named = self._all or origin.lower() in self._origins
        if not _asks_before(scope):
            await self._app(scope, receive, _telling(origin, send) if named else send)
        elif named:
            await _allowed(origin, send)
        else:
            await self._refusal(origin)(scope, receive, send)

    def _refusal(self, origin: bytes) -> ASGIApp:
        page = origin.decode("latin-1")
        cure = "name that origin in the setting `cors_origins`"
        if origin not in self._said and len(self._said) < SAID_AT_MOST:
            self._said.add(origin)
            log.warning("http.page_refused", origin=page, cure=cure)
        return problem(403, ErrorCode.UNAUTHORIZED, f"web pages of {page} may not call this host: {cure}")


def _asks_before(scope: Scope) -> bool:
    """A browser's question ahead of what a page wants to send."""
    names = (name for name, _ in scope["headers"])
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in names


def _telling(origin: bytes, send: Send) -> Send:
    async def tell(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *_for(origin)]}
        await send(message)

    return tell


def _for(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", MAY_READ),
        (b"vary", b"origin"),
    ]


async def _allowed(origin: bytes, send: Send) -> None:
    headers = [
        *_for(origin),
        (b"access-control-allow-methods", MAY_USE),
        (b"access-control-allow-headers", MAY_SEND),
        (b"access-control-max-age", REMEMBER_SECONDS),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
