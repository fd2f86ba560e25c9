"""Bodies in and out: read no more than allowed, write JSON. And where a request came from."""

import re
from contextlib import nullcontext
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from paddock.host.streams.open_streams import while_let_in
from paddock.rules.conversations.attachments import MAX_URL_CHARS, origin_of
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.run_context import TriggerSource

IS_HERE = "paddock.is_here"
"""In the scope of a request that has come in full, so that nobody waits for its body."""
SMALL_BODY = 64 * 1024
"""More than any administrative call needs."""

_encode = msgspec.json.Encoder().encode


async def read_body(request: Request, limit: int, complaint: str = "") -> bytes:
    """The whole body. One that is longer is refused before it is read in full."""
    scope = request.scope
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint or f"the body exceeds {limit} bytes")
    body = bytearray()  # grows in place: a body may come in very many pieces
    with nullcontext() if IS_HERE in scope else while_let_in(scope):
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > limit:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, complaint or f"the body exceeds {limit} bytes")
            if not message.get("more_body", False):
                return bytes(body)


def has_body(request: Request) -> bool:
    headers = request.headers
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


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


# --- where a request came from ----------------------------------------------------------------------------------------


_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
"""A name or an address, and a port."""
OWN_PAGE = (b"sec-fetch-site", b"same-origin")
"""Set by browsers and by no script; other programs that send it change nothing but this word."""


def source_of(scope: Scope) -> TriggerSource:
    """Name where a run was asked for: in the console, which is the only page of this host, or by another program."""
    return "webui" if OWN_PAGE in scope["headers"] else "api"


def absolute(request: Request, url: str) -> str:
    """A path becomes an address at the host the caller used; whole addresses stay."""
    return own_address(request) + url if url.startswith("/") else url


def own_address(request: Request) -> str:
    """Where the caller reaches us, as they wrote it; empty where that could be no part of an address: anything may be
    sent as a Host header."""
    host = next((value for name, value in request.scope["headers"] if name == b"host"), b"").decode("latin-1")
    return f"{request.scope['scheme']}://{host}" if _HOST.fullmatch(host) else ""


def local(request: Request, url: str) -> str:
    """Undo `absolute`: an address at the host the caller used becomes a path; any other stays as it is."""
    if url.startswith("/") or len(url) > MAX_URL_CHARS:
        return url
    origin = origin_of(url)
    if origin is None or origin != origin_of(own_address(request)):
        return url
    return urlsplit(url)._replace(scheme="", netloc="").geturl()
