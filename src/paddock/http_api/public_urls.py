"""Addresses of ours as a caller can use them."""

from urllib.parse import urlsplit

from starlette.requests import Request

from paddock.rules.attachment_urls import MAX_URL_CHARS, origin_of


def absolute(request: Request, url: str) -> str:
    """A path becomes an address at the host the caller used; whole addresses stay."""
    return f"{request.url.scheme}://{request.url.netloc}{url}" if url.startswith("/") else url


def local(request: Request, url: str) -> str:
    """Undo `absolute`: an address at the host the caller used becomes a path; any other stays as it is."""
    if url.startswith("/") or len(url) > MAX_URL_CHARS:
        return url
    origin = origin_of(url)
    if origin is None or origin != origin_of(f"{request.url.scheme}://{request.url.netloc}"):
        return url
    return urlsplit(url)._replace(scheme="", netloc="").geturl()
