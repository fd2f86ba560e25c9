"""Bodies in and out: read no more than allowed, write JSON."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Scope

from paddock.host.streams.open_streams import while_let_in
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.input import why_no_json

SMALL_BODY = 64 * 1024
"""More than any administrative call needs."""

_encode = msgspec.json.Encoder().encode


class Whole(Request):
    """A request whose body is here already: it was short."""

    def __init__(self, scope: Scope, body: bytes) -> None:
        super().__init__(scope, self._receive_whole)
        self.whole = body

    async def _receive_whole(self) -> Message:
        return {"type": "http.request", "body": self.whole, "more_body": False}


async def read_body(request: Request, limit: int, complaint: str) -> bytes:
    """The whole body. One that is longer is refused before it is read in full."""
    if type(request) is Whole and len(request.whole) <= limit:
        return request.whole
    declared = _declared(request.scope["headers"])
    if declared.isdigit() and int(declared) > limit:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint)
    body = bytearray()  # grows in place: a body may come in very many pieces
    with while_let_in(request.scope):
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > limit:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint)
            if not message.get("more_body", False):
                break
    return bytes(body)


def _declared(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return next((value for name, value in headers if name == b"content-length"), b"")


def declared_size(request: Request) -> int | None:
    """How long the body is said to be; None when nothing is said, or nothing that makes sense."""
    declared = _declared(request.scope["headers"])
    return int(declared) if declared.isdigit() and len(declared) < 16 else None


def has_body(request: Request) -> bool:
    headers = request.headers
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


async def read_object(request: Request, known: Sequence[str]) -> dict[str, Any]:
    """The small JSON object of an administrative call. A field that is not known is a slip, and said."""
    body = await read_body(request, SMALL_BODY, f"the body exceeds {SMALL_BODY} bytes")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"the body {why_no_json(body, error)}") from error
    if not isinstance(value, dict):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "the body must be a JSON object")
    given = cast("dict[str, Any]", value)
    for name in given:
        if name not in known:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"unknown field {name[:64]!r}{_meant(name, known)}")
    return given


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


class JsonResponse(Response):
    """Bytes of JSON; its headers are known without looking through any that were given."""

    media_type = "application/json"

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code = status
        self.background = None
        self.body = body
        self.raw_headers = [(b"content-length", b"%d" % len(body)), *JSON_HEADERS]


JSON_HEADERS = (
    (b"content-type", b"application/json"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


def json_response(value: object, status: int = 200) -> Response:
    return JsonResponse(_encode(value), status)
