"""Webhooks over HTTP. The client is imported with the first one; redirects are not followed, answers are cut short."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog

from paddock.ports.platforms import Posted
from paddock_sdk import outbound

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

MAX_ANSWER = 64 * 1024
MAX_CONNECTIONS = 32


class HttpWebhooks:
    def __init__(self) -> None:
        self._client: AsyncClient | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Posted:
        import httpx2

        try:
            async with (
                asyncio.timeout(seconds),
                self._opened().stream("POST", url, content=body, headers=dict(headers)) as answer,
            ):
                return Posted(answer.status_code, "", await _beginning(answer), _retry_after(answer))
        except TimeoutError:
            return Posted(None, f"no answer within {seconds:g} seconds")
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
            log.info("a webhook was not reached", action="webhooks.post", reason=str(error)[:300])
            return Posted(None, _unreached(error))

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> "AsyncClient":
        import httpx2

        if self._client is None:
            limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=8)
            self._client = outbound.client("any", limits=limits, timeout=None, trust_env=False)
        return self._client


async def _beginning(answer: "Response") -> bytes:
    read = b""
    async for piece in answer.aiter_bytes():
        read += piece
        if len(read) >= MAX_ANSWER:
            break
    return read[:MAX_ANSWER]


def _retry_after(answer: "Response") -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 8 else None


def _unreached(error: Exception) -> str:
    """Name the cause without the library's text, which may quote the address with what is secret in it."""
    import httpx2

    if isinstance(error, httpx2.InvalidURL):
        return "its address cannot be read"
    if isinstance(error, httpx2.ConnectError):
        return "it cannot be reached: no connection was made"
    return "it cannot be reached: the connection broke"
