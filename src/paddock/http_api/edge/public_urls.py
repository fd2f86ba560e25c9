"""Addresses of ours as a caller can use them."""

import re
from urllib.parse import urlsplit

from starlette.requests import Request

from paddock.rules.conversations.attachment_urls import MAX_URL_CHARS, origin_of

_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)
"""A name or an address, and a port."""


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
