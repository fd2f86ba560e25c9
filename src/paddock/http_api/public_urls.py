"""Addresses of ours as a caller can use them."""

from starlette.requests import Request


def absolute(request: Request, url: str) -> str:
    """A path becomes an address at the host the caller used; whole addresses stay."""
    return f"{request.url.scheme}://{request.url.netloc}{url}" if url.startswith("/") else url
