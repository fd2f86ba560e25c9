"""Where a request came from, and the address under which its caller reaches us."""

import re
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

from paddock.rules.conversations.attachment_urls import MAX_URL_CHARS, origin_of
from paddock.rules.run.context import TriggerSource

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
