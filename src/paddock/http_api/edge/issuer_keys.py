"""The keys an issuer publishes, from a file or an address: read when the first token needs them, kept for a while.

The address may be that of the issuer's OpenID configuration, which names the place of the keys (discovery): both are
read anew each time, so keys may move. A token with a key we have not seen makes us look again, but not more than twice
a minute: nobody can make this host knock at the issuer's door by sending it nonsense. When the issuer is away, what it
said last counts for a day.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import anyio.to_thread
import msgspec
import structlog

from paddock.rules.agents.addresses import is_private_way
from paddock.rules.errors import ErrorCode, HostError

FRESH_SECONDS = 600.0
STALE_SECONDS = 86_400.0
RETRY_SECONDS = 30.0
FETCH_SECONDS = 5.0
MAX_BYTES = 256 * 1024

log = structlog.get_logger(__name__)


class IssuerKeys:
    """`issuer` is what a configuration found at `source` must say of itself."""

    def __init__(self, source: str, *, issuer: str | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._issuer = issuer
        self._now = now
        self._keys: Mapping[str, Any] | None = None
        self._read_at = self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, kid: str | None) -> Mapping[str, Any]:
        """The key set. Raises UNAVAILABLE when it cannot be had."""
        if self._wants_another_look(kid):
            async with self._reading:
                if self._wants_another_look(kid):
                    await self._look()
        if self._keys is None or self._now() - self._read_at > STALE_SECONDS:
            raise HostError(
                ErrorCode.UNAVAILABLE, "the issuer's keys cannot be read at the moment, so no token can be checked"
            )
        return self._keys

    def _wants_another_look(self, kid: str | None) -> bool:
        now = self._now()
        if now - self._tried_at < RETRY_SECONDS:
            return False
        if self._keys is None or now - self._read_at > FRESH_SECONDS:
            return True
        return kid is not None and all(key.get("kid") != kid for key in self._keys["keys"])

    async def _look(self) -> None:
        self._tried_at = self._now()
        try:
            with anyio.fail_after(FETCH_SECONDS * 2):
                found = await anyio.to_thread.run_sync(_found, self._source, self._issuer, abandon_on_cancel=True)
            self._keys = _key_set(found)
            self._read_at = self._now()
        except (OSError, HTTPException, ValueError, msgspec.MsgspecError, RecursionError) as error:
            log.warning("the issuer's keys cannot be read", action="auth.issuer_keys", reason=str(error))


def _found(source: str, issuer: str | None) -> Mapping[str, Any]:
    """What lies at the source, or, where that is the issuer's configuration, at the place of its keys."""
    found = _document(_read(source))
    if "keys" in found or "jwks_uri" not in found:
        return found
    if issuer is not None and found.get("issuer") != issuer:
        raise ValueError("the configuration is that of another issuer than jwt_issuer says")
    place = found["jwks_uri"]
    if not isinstance(place, str) or not is_private_way(place):
        raise ValueError("the configuration names no https:// address as the place of its keys (jwks_uri)")
    return _document(_read(place))


def _read(source: str) -> bytes:
    parts = urlsplit(source)
    if parts.scheme not in {"http", "https"}:
        return Path(source).read_bytes()[: MAX_BYTES + 1]
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=FETCH_SECONDS)
    try:
        connection.request("GET", f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")
        response = connection.getresponse()
        if response.status != 200:  # also a redirect: keys come from where the operator said, or not at all
            raise ValueError(f"the answer has status {response.status}")
        return response.read(MAX_BYTES + 1)
    finally:
        connection.close()


def _document(raw: bytes) -> Mapping[str, Any]:
    if len(raw) > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")
    return msgspec.json.decode(raw, type=dict[str, Any])


def _key_set(found: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = found.get("keys")
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in cast("list[Any]", keys)):
        raise ValueError("it is no JSON Web Key Set: there is no list of keys")
    public = [key for key in cast("list[dict[str, Any]]", keys) if key.get("kty") != "oct"]
    return {"keys": public}
