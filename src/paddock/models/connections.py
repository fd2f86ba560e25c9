"""Connections to one provider: a question goes out, its answer is read as it comes.

What goes wrong is one of the errors below; the model that asks says it in words.
This module is imported when the first question is asked: the HTTP library behind it is slow to load.
"""

import io
import ssl
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Self
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import msgspec
from multidict import CIMultiDict
from yarl import URL

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 15.0
"""How long a connection nobody uses is kept for the next question."""
_USUAL = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # unpacking takes far longer than reading what was sent
    "Content-Type": "application/json",
    "User-Agent": f"paddock/{version('paddock')}",
}
MAX_ERROR_BYTES = 256 * 1024
IN_ONE_PIECE = 512 * 1024
"""A larger question is written piece by piece, so that nobody else waits for it."""


class LineError(Exception):
    """No answer, or half of one."""


class UnreachableError(LineError):
    """Nobody was there, or hung up without a word."""


class SilentError(LineError):
    """The server sent nothing for too long."""


class BrokenOffError(LineError):
    """The answer had begun."""


class StatusError(Exception):
    """The provider answered with an error; `words` are its own."""

    def __init__(self, status: int, words: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.words = words
        self.headers = headers


class HttpAnswer:
    """An answer that is still being received; one that is left before its end is hung up on."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.release()
        await self._response.wait_for_close()

    @property
    def over(self) -> bool:
        return self._content.at_eof()

    async def read(self, at_most: int) -> bytes:
        """Read the whole answer, or a little more than `at_most` bytes."""
        parts, size = list[bytes](), 0
        while size <= at_most and (received := await self.more()):
            parts.append(received)
            size += len(received)
        return b"".join(parts)

    async def more(self) -> bytes:
        """Return the next bytes, at least one; empty at the end."""
        try:
            return await self._content.readany()
        except TimeoutError as error:
            raise SilentError from error
        except (aiohttp.ClientError, OSError) as error:
            raise BrokenOffError from error


@cache
def trusted() -> ssl.SSLContext:
    """Return the trusted certificates, as elsewhere in the host. Slow the first time."""
    return httpx2.create_ssl_context()


def proxy_for(address: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The proxy that the environment names for this address, as a question takes it, and headers of the question that
    are for the proxy. Looked up once: it is slow."""
    to = URL(address)
    proxies = {} if proxy_bypass(to.host or "") else getproxies()
    found = URL(proxies.get(to.scheme) or proxies.get("all") or "")
    if not found.host:
        return {}, {}
    proxy = found.with_user(None)
    if not found.user:
        return {"proxy": proxy}, {}
    said = {"Proxy-Authorization": aiohttp.encode_basic_auth(found.user, found.password or "")}
    return {"proxy": proxy, "proxy_headers": said}, {} if to.scheme == "https" else said


class Connections:
    """Kept open from question to question."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self._base = address.rstrip("/")
        self._proxy, for_proxy = proxy_for(self._base)
        self._headers = CIMultiDict(_USUAL)
        self._headers.update(headers)
        self._headers.update(for_proxy)
        """Given with each question: what the session has of its own is told to a proxy too."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trusted(), keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    @property
    def address(self) -> str:
        return self._base

    async def post(self, path: str, body: Mapping[str, Any], seconds: float) -> HttpAnswer:
        """Ask. Nothing is waited for longer than `seconds`. Whoever gets the answer closes it."""
        response = await self._sent(URL(f"{self._base}/{path}"), msgspec.json.encode(body), seconds)
        answer = HttpAnswer(response)
        if response.status < 300:
            return answer
        async with answer:
            raise StatusError(response.status, await answer.read(MAX_ERROR_BYTES), response.headers)

    async def _sent(self, url: URL, body: bytes, seconds: float) -> aiohttp.ClientResponse:
        timeout = aiohttp.ClientTimeout(sock_connect=min(CONNECT_SECONDS, seconds), sock_read=seconds)
        data = body if len(body) <= IN_ONE_PIECE else io.BytesIO(body)
        try:
            return await self._session.post(
                url, data=data, headers=self._headers, timeout=timeout, allow_redirects=False, **self._proxy
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise UnreachableError from error
        except TimeoutError as error:
            raise SilentError from error
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError from error

    async def close(self) -> None:
        await self._session.close()
