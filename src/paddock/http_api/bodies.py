"""Bodies in and out: read no more than allowed, write JSON."""

from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from paddock.rules.errors import ErrorCode, HostError

SMALL_BODY = 64 * 1024
"""More than any administrative call needs."""

_encode = msgspec.json.Encoder().encode


async def read_body(request: Request, limit: int, complaint: str) -> bytes:
    """The whole body. One that is longer is refused before it is read in full."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint)
        pieces.append(piece)
    return b"".join(pieces)


async def read_object(request: Request) -> dict[str, Any]:
    """The small JSON object of an administrative call."""
    body = await read_body(request, SMALL_BODY, f"the body exceeds {SMALL_BODY} bytes")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"the body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "the body must be a JSON object")
    return cast("dict[str, Any]", value)


def json_response(value: object, status: int = 200) -> Response:
    return Response(_encode(value), status, media_type="application/json")
