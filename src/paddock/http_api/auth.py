"""Who is calling: an API key, the host's own local token, or, on this very machine and without any set-up, `dev`.

Keyless access would make every web page and every local proxy somebody, so it holds only for requests that provably
come straight from this machine, and only until the first key exists. Keys are compared by hash and never kept.
"""

import hmac
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from ipaddress import ip_address

from starlette.types import Scope

from paddock.host.principals import DEV, Principal
from paddock.ports import ApiKeys
from paddock.rules.errors import ErrorCode, HostError

REMEMBER_SECONDS = 5.0
REMEMBER_KEYS = 1024
PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
HOW = "send `Authorization: Bearer <key>`; `paddock keys create` on the host's machine makes one"

Headers = Iterable[tuple[bytes, bytes]]


class Auth:
    """Finds out who calls. What was looked up is believed for a few seconds."""

    def __init__(
        self, keys: ApiKeys, *, local_token: str | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._local_hash = sha256(local_token.encode()).digest() if local_token else None
        self._now = now
        self._known: dict[bytes, tuple[Principal, float]] = {}
        self._keyless_until = 0.0
        self._key_exists = False

    async def principal(self, scope: Scope) -> Principal:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        given = _only(headers, b"authorization")
        if given is not None:
            return await self._by_key(given)
        if await self._keyless():
            _require_this_machine(scope, headers)
            return DEV
        raise HostError(ErrorCode.UNAUTHENTICATED, f"this host knows its callers by key: {HOW}")

    async def admin(self, scope: Scope) -> Principal:
        principal = await self.principal(scope)
        if principal.role != "admin":
            raise HostError(ErrorCode.UNAUTHORIZED, "this needs a key with the role admin")
        return principal

    def key_added(self) -> None:
        """From now on nobody is let in without one."""
        self._key_exists = True

    async def _by_key(self, given: bytes) -> Principal:
        scheme, _, key = given.partition(b" ")
        key = key.strip()
        if scheme.lower() != b"bearer" or not key:
            raise HostError(ErrorCode.UNAUTHENTICATED, f"the Authorization header is not understood: {HOW}")
        key_hash = sha256(key).digest()
        if self._local_hash is not None and hmac.compare_digest(key_hash, self._local_hash):
            return DEV
        found = self._known.get(key_hash)
        if found is not None and found[1] > self._now():
            return found[0]
        return await self._look_up(key_hash)

    async def _look_up(self, key_hash: bytes) -> Principal:
        row = await self._keys.find_key(key_hash)
        if row is None:
            self._known.pop(key_hash, None)
            raise HostError(ErrorCode.UNAUTHENTICATED, f"this key is not known here: {HOW}")
        if len(self._known) >= REMEMBER_KEYS:
            self._known.clear()
        principal = Principal(row.workspace_id, row.user_id, row.role)
        self._known[key_hash] = (principal, self._now() + REMEMBER_SECONDS)
        return principal

    async def _keyless(self) -> bool:
        """True while no key exists. Keys made elsewhere are noticed within seconds, our own at once."""
        if not self._key_exists and self._now() >= self._keyless_until:
            self._key_exists = await self._keys.any_key()
            self._keyless_until = self._now() + REMEMBER_SECONDS
        return not self._key_exists


def _require_this_machine(scope: Scope, headers: Headers) -> None:
    reason = _why_not_local(scope, headers)
    if reason is not None:
        raise HostError(
            ErrorCode.UNAUTHENTICATED, f"without a key only this machine itself may call, and {reason}: {HOW}"
        )


def _why_not_local(scope: Scope, headers: Headers) -> str | None:
    client: tuple[str, int] | None = scope.get("client")
    host = _only(headers, b"host")
    if client is None or not _is_loopback(client[0]):
        return "the call came from another one"
    if host is None or not _is_loopback(_host_name(host)):
        return "the Host header does not name a loopback address"
    if any(name in PROXY_HEADERS or name.startswith(b"x-forwarded") for name, _ in headers):
        return "the call came through a proxy"
    origin = _only(headers, b"origin")
    if origin is not None and origin.lower() != b"%b://%b" % (str(scope["scheme"]).encode(), host.lower()):
        return "the call came from a web page of another origin"
    if _has_body(headers) and not _is_safe_type(_only(headers, b"content-type")):
        return "the body is neither application/json nor multipart/form-data"
    return None


def _only(headers: Headers, wanted: bytes) -> bytes | None:
    """The value of a header; empty, so matching nothing, when it is there more than once."""
    found = [value for name, value in headers if name == wanted]
    return None if not found else found[0] if len(found) == 1 else b""


def _host_name(host: bytes) -> str:
    text = host.decode("latin-1")
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _has_body(headers: Headers) -> bool:
    return any(
        (name == b"content-length" and value.strip() != b"0") or name == b"transfer-encoding" for name, value in headers
    )


def _is_safe_type(content_type: bytes | None) -> bool:
    media = (content_type or b"").partition(b";")[0].strip().lower()
    return media in {b"application/json", b"multipart/form-data"}
