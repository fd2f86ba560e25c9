"""Which web pages of elsewhere may call: none, unless the operator names their origins.

Browsers ask before they let a page read an answer; this is what they are told. No cookies are involved: a page has to
bring a key like everybody else. A page that is not named gets no word, and the browser keeps the answer from it.
"""

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

EVERYBODY = "*"
MAY_USE = b"GET, POST, PUT, PATCH, DELETE"
MAY_SEND = b"authorization, content-type, last-event-id, accept"
MAY_READ = b"retry-after, location, content-disposition"
REMEMBER_SECONDS = b"600"


def origin_of(scope: Scope) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == b"origin"), None)


class Cors:
    """An application, with the answer browsers ask for around it."""

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.lower().encode() for origin in origins)
        self._all = EVERYBODY.encode() in self._origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = origin_of(scope) if scope["type"] == "http" else None
        if origin is None or not (self._all or origin.lower() in self._origins):
            await self._app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and any(
            name == b"access-control-request-method" for name, _ in scope["headers"]
        ):
            await _allowed(origin, send)
        else:
            await self._app(scope, receive, _telling(origin, send))


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
