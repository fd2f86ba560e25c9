"""Errors for callers: a status and an RFC 9457 problem with one sentence a person can act on.

The only place that turns an error code into a status. Internals (tracebacks, paths, SQL) never leave through here.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Message, Send

from paddock.rules.errors import ErrorCode, HostError

READING = ("GET", "HEAD")
STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.UNAUTHORIZED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.CONFLICT: 409,
    ErrorCode.SESSION_CLOSED: 409,
    ErrorCode.CURSOR_EXPIRED: 410,
    ErrorCode.PAYLOAD_TOO_LARGE: 413,
    ErrorCode.INVALID_ARGUMENT: 422,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.RUNTIME_ERROR: 500,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.DEADLINE_EXCEEDED: 504,
}
GUARDED = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
"""On every answer of the API: browsers take it for what it says it is, and nobody keeps it."""
TOLD = ("snapshot", "reason")
"""Details of an error that are for the caller: what to go on from when a cursor has expired, and what exactly is wrong
where the sentence is prescribed."""
RETRY_SECONDS = 1
"""What Retry-After says when the error itself does not know."""

_encode = msgspec.json.Encoder().encode


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    body = {**problem_of(status, code, detail), **(more or {})}
    return Response(_encode(body), status, {**GUARDED, **(headers or {})}, media_type="application/problem+json")


def problem_of(status: int, code: str, detail: str) -> dict[str, Any]:
    return {
        "type": f"urn:paddock:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": str(code),
    }


def refusal(error: HostError) -> Response:
    status = STATUS[error.code]
    told = {name: error.details[name] for name in TOLD if name in error.details}
    return problem(status, error.code, error.message, headers=_headers(status, error), more=told)


def _headers(status: int, error: HostError) -> dict[str, str]:
    match status:
        case 401:
            return {"WWW-Authenticate": 'Bearer realm="paddock"'}
        case 429 | 503:
            return {"Retry-After": str(max(1, round(error.details.get("retry_after") or RETRY_SECONDS)))}
        case _:
            return {}


def storage_refusal(method: str) -> Response:
    detail = "the host cannot write to its storage at the moment, so nothing was accepted; try again shortly"
    if method in READING:
        detail = "the host does not reach its storage at the moment; try again shortly"
    return problem(503, ErrorCode.UNAVAILABLE, detail, headers={"Retry-After": str(RETRY_SECONDS)})


def unexpected() -> Response:
    return problem(500, ErrorCode.RUNTIME_ERROR, "the host made a mistake; its log has the details")


_NOT_ROUTED = {404: ErrorCode.NOT_FOUND, 405: ErrorCode.INVALID_ARGUMENT}


async def not_routed(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return unexpected()
    detail = f"{request.method} {request.scope['path']} is not part of this API"
    code = _NOT_ROUTED.get(error.status_code, ErrorCode.INVALID_ARGUMENT)
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem(error.status_code, code, detail, headers=headers)


def _allowed(request: Request) -> str:
    """Return all methods of a path. Each method has a route of its own."""
    routes: Sequence[BaseRoute] = request.app.routes
    fitting = [route for route in routes if isinstance(route, Route) and route.matches(request.scope)[0] != Match.NONE]
    return ", ".join(sorted({method for route in fitting for method in route.methods or ()}))


_GUARDED = tuple((name.lower().encode(), value.encode()) for name, value in GUARDED.items())


def guarded(send: Send) -> Send:
    """Answers that a library writes, with the headers that all of ours have."""

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message["headers"]}
            more = [header for header in _GUARDED if header[0] not in named]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return send_on
