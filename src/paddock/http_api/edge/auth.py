"""Authentication: an API key, a signed token, the host's own local token, or, here and without any set-up, `dev`.

Keyless access would make every web page and every local proxy somebody, so it holds only for requests that provably
come straight from this machine, and only until the first key exists. Keys are compared by hash and never kept.
"""

import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address

from starlette.types import Scope

from paddock.host.people.principals import DEV, KEYLESS_DEV, NO_OPERATORS, Operators, Principal
from paddock.host.streams.open_streams import OpenStreams
from paddock.http_api.edge.tokens import Tokens, looks_like_token
from paddock.ports import ApiKeyRow, ApiKeys
from paddock.rules.access.limits import Buckets
from paddock.rules.access.signatures import Credential
from paddock.rules.conversations.attachments import PATH as ATTACHMENTS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

AT_ONCE = 2.0
"""Seconds' worth of calls that may come at once."""


class CallerLimits:
    """A bucket for each caller. `per_second` 0 lifts the limit."""

    def __init__(self, per_second: float, *, now: Callable[[], float]) -> None:
        self._per_second = per_second
        self._now = now
        self._buckets = Buckets()

    @property
    def remembered(self) -> int:
        return len(self._buckets.known)

    def take(self, caller: bytes) -> None:
        """One call of this caller. Raises RATE_LIMITED with the time to wait."""
        if self._per_second <= 0:
            return
        now = self._now()
        wait = self._buckets.of(caller, self._per_second, self._per_second * AT_ONCE, now).take(now)
        if wait > 0:
            text = f"this key may call {self._per_second:g} times a second on average; wait and try again"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True, details={"retry_after": round(wait, 3)})


REMEMBER_SECONDS = 5.0
REMEMBER_KEYS = 1024
PROXY_HEADERS = frozenset({b"forwarded", b"via", b"x-real-ip"})
HOW = "send `Authorization: Bearer <key>`; `paddock keys create` on the host's machine makes one"

_AUTHORITY = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]@/]+))(?::[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """Callers that are let in beside the holders of keys, and those who run the host."""

    local_token: str | None = None
    tokens: Tokens | None = None
    origins: Sequence[str] = ()
    """Web pages that may call, without a key too if they are of this very machine."""
    operators: Operators = NO_OPERATORS


class Auth:
    """Finds out who calls. What was looked up is believed for a few seconds."""

    def __init__(
        self,
        keys: ApiKeys,
        callers: Callers | None = None,
        *,
        calls_per_second: float = 0.0,
        streams: OpenStreams | None = None,
        refused: Callable[[AuditRow], None] = lambda _row: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        callers = callers or Callers()
        self.streams = streams or OpenStreams(keys)
        """What callers hold open."""
        self.operators = callers.operators
        self._tokens = callers.tokens
        self._refused = refused
        self._own_pages = frozenset(page.lower().encode() for page in callers.origins if _is_page_of_this_machine(page))
        self._limits = CallerLimits(calls_per_second, now=now)
        self._keys = keys
        self._local_hash = sha256(callers.local_token.encode()).digest() if callers.local_token else None
        self._now = now
        self._known: dict[bytes, tuple[Principal, float]] = {}
        self._keyless_until = 0.0
        self._key_exists = self._tokens is not None  # a host with tokens wants callers to show one

    async def principal(self, scope: Scope) -> Principal:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        try:
            if given:
                principal = await self._by_key(given[0] if len(given) == 1 else b"")
            elif await self._is_keyless():
                principal = _on_this_machine(scope, self._own_pages)
            else:
                raise HostError(ErrorCode.UNAUTHENTICATED, f"this host knows its callers by key: {HOW}")
        except HostError as error:
            if error.code is ErrorCode.UNAUTHENTICATED:
                self._refused(_not_let_in(error))
            raise
        self.streams.guard(scope, principal.credential)
        return principal

    async def admin(self, scope: Scope) -> Principal:
        principal = await self.principal(scope)
        if principal.role != "admin":
            raise HostError(ErrorCode.UNAUTHORIZED, "this needs a key with the role admin")
        return principal

    def key_added(self) -> None:
        """From now on nobody is let in without one."""
        self._key_exists = True

    def key_revoked(self, row: ApiKeyRow) -> None:
        """Forget a revoked key and end everything that was opened with it."""
        self._known.pop(row.key_hash, None)
        self.streams.key_revoked(row.key_id)

    async def _by_key(self, given: bytes) -> Principal:
        scheme, _, key = given.partition(b" ")
        key = key.strip()
        if scheme.lower() != b"bearer" or not key:
            raise HostError(ErrorCode.UNAUTHENTICATED, f"the Authorization header is not understood: {HOW}")
        key_hash = sha256(key).digest()
        if self._local_hash is not None and hmac.compare_digest(key_hash, self._local_hash):
            return DEV
        self._limits.take(key_hash)
        found = self._known.get(key_hash)
        if found is not None and found[1] > self._now():
            return found[0]
        if self._tokens is not None and looks_like_token(key):
            principal, seconds = await self._tokens.principal(key)
            return self._remember(key_hash, self.operators.recognise(principal), seconds)
        return await self._look_up(key_hash)

    async def _look_up(self, key_hash: bytes) -> Principal:
        row = await self._keys.find_key(key_hash)
        if row is None:
            self._known.pop(key_hash, None)
            raise HostError(ErrorCode.UNAUTHENTICATED, f"this key is not known here: {HOW}")
        credential = Credential("key", row.key_id)
        principal = Principal(row.workspace_id, row.user_id, row.role, credential=credential)
        principal = self.operators.recognise(principal, row)
        return self._remember(key_hash, principal, REMEMBER_SECONDS)

    def _remember(self, key_hash: bytes, principal: Principal, seconds: float) -> Principal:
        if len(self._known) >= REMEMBER_KEYS:
            self._known.clear()
        self._known[key_hash] = (principal, self._now() + min(seconds, REMEMBER_SECONDS))
        return principal

    async def _is_keyless(self) -> bool:
        """True while no key exists. Keys made elsewhere are noticed within seconds, our own at once."""
        if not self._key_exists and self._now() >= self._keyless_until:
            self._key_exists = await self._keys.any_key()
            self._keyless_until = self._now() + REMEMBER_SECONDS
        return not self._key_exists


def _not_let_in(error: HostError) -> AuditRow:
    """Return the audit row of a failed sign-in. Such rows are counted, because strangers can cause many."""
    reason = error.message.removesuffix(f": {HOW}")
    return AuditRow(time.time(), "", "", "auth.sign_in", "", "host", str(error.code), reason)


def _on_this_machine(scope: Scope, own_pages: frozenset[bytes]) -> Principal:
    """Let in a caller without a key, if the call comes from this machine itself. Raises UNAUTHENTICATED."""
    refused = _why_not_local(scope, own_pages)
    if refused is None:
        return KEYLESS_DEV
    reason, cure = refused
    text = f"without a key only this machine itself may call, and {reason}: {cure}{HOW}"
    raise HostError(ErrorCode.UNAUTHENTICATED, text)


def _is_page_of_this_machine(origin: str) -> bool:
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and names_loopback(authority.encode())


def _why_not_local(scope: Scope, own_pages: frozenset[bytes]) -> tuple[str, str] | None:
    """Return why a call does not count as local, and what helps beside a key; None if it counts."""
    client: tuple[str, int] | None = scope.get("client")
    given = by_name(scope)
    host, origin = given.get(b"host", b""), given.get(b"origin")
    if client is None or not _is_loopback(client[0]):
        return "the call came from another one", ""
    if not names_loopback(host):
        return "the Host header does not name a loopback address", ""
    if _through_a_proxy(tuple(given)):
        return "the call came through a proxy", ""
    # A page sends no Origin with what it only embeds (pictures, frames, scripts); browsers say then whose page it is.
    foreign = given.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin")
    if foreign if origin is None else origin.lower() not in {_page_of(scope, host), *own_pages}:
        return "the call came from a web page of another origin", "name it in the setting `cors_origins`, or "
    if not _has_safe_body(given, scope["path"]):
        return ("the body is not declared as application/json", "add the header `Content-Type: application/json`, or ")
    return None


@lru_cache(maxsize=256)
def _through_a_proxy(names: tuple[bytes, ...]) -> bool:
    return not PROXY_HEADERS.isdisjoint(names) or any(name.startswith(b"x-forwarded") for name in names)


def _page_of(scope: Scope, host: bytes) -> bytes:
    return b"%b://%b" % (str(scope["scheme"]).encode(), host.lower())


def by_name(scope: Scope) -> dict[bytes, bytes]:
    """Return one value for each header. One that comes more than once counts as empty, so it matches nothing."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        found[name] = b"" if name in found else value
    return found


@lru_cache(maxsize=256)
def names_loopback(host: bytes) -> bool:
    found = _AUTHORITY.fullmatch(host.decode("latin-1"))
    return found is not None and _is_loopback(found[1] or found[2])


@lru_cache(maxsize=256)
def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _has_safe_body(given: Mapping[bytes, bytes], path: str) -> bool:
    """True for JSON, which browsers let no foreign page send unasked, for the form of an upload, and for no body."""
    if given.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in given:
        return True
    kind = given.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind == b"application/json" or (kind == b"multipart/form-data" and path == ATTACHMENTS)
