"""Callers that somebody else vouches for: signed tokens (JWT), by a shared secret or by the keys of an issuer.

A secret verifies HMAC signatures only and published keys verify public-key signatures only, so that nobody can sign
with what is public. Tokens without an end, or for another audience, are refused. Nothing of a token is kept or logged.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import anyio.to_thread
import msgspec
import structlog

from paddock.host.people.principals import DEV, Principal
from paddock.ports.definitions import PersonRole
from paddock.rules.access.signatures import Credential
from paddock.rules.agents.addresses import is_private_way
from paddock.rules.errors import ErrorCode, HostError

LEEWAY_SECONDS = 30
"""How far the clocks of issuer and host may be apart."""
LATEST = 1e12
"""Seconds since 1970 that are a time; what is beyond is no number to reckon with."""
MAX_TOKEN_BYTES = 16 * 1024
MAX_NAME = 128
BY_SECRET = ("HS256", "HS384", "HS512")
BY_KEYS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")

FindKeys = Callable[[str | None], Awaitable[Mapping[str, Any]]]
"""The issuer's published keys (a JSON Web Key Set); the name of a key that must be among them, if it can be helped."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Required claims of a token, and the claims that name its owner."""

    issuer: str | None = None
    audience: str | None = None
    workspace_claim: str | None = None
    """The claim that names the workspace; without it everybody belongs to the default one."""
    role_claim: str | None = None
    """The claim that makes administrators, by holding `admin`; without it nobody is one."""


@dataclass(eq=False, repr=False)
class Tokens:
    rules: TokenRules
    _: KW_ONLY
    secret: bytes | None = None
    keys: FindKeys | None = None
    clock: Callable[[], float] = time.time

    async def principal(self, token: bytes) -> tuple[Principal, float]:
        """Return the principal of a token and the seconds it is valid. Raises UNAUTHENTICATED with the reason."""
        if len(token) > MAX_TOKEN_BYTES:
            raise _refused("it is too long")
        claims = await self._verified(token.decode("latin-1"))
        now = self.clock()
        ends = _check_times(claims, now)
        self._check_origin(claims)
        return self._owner(claims, Credential("token", ends_at=ends)), ends - now

    async def _verified(self, token: str) -> Mapping[str, Any]:
        from joserfc import jws  # 60 ms to import: only hosts that know callers by token pay it
        from joserfc.errors import JoseError

        try:
            header = jws.extract_compact(token.encode()).headers()
            key, allowed = await self._key_for(header)
            payload = jws.deserialize_compact(token, key, algorithms=list(allowed)).payload
            claims = _object(payload)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise _refused("its signature does not hold") from error
        return claims

    async def _key_for(self, header: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        from joserfc.jwk import KeySet, OctKey

        algorithm = header.get("alg")
        if self.secret is not None and algorithm in BY_SECRET:
            return OctKey.import_key(self.secret), BY_SECRET
        if self.keys is not None and algorithm in BY_KEYS:
            kid = header.get("kid")
            found = await self.keys(kid if isinstance(kid, str) else None)
            return KeySet.import_key_set(cast("Any", found)), BY_KEYS
        raise _refused("it is signed in a way this host does not take")

    def _check_origin(self, claims: Mapping[str, Any]) -> None:
        rules = self.rules
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise _refused("another issuer made it")
        meant = claims.get("aud")
        audiences = cast("list[object]", meant) if isinstance(meant, list) else [meant]
        if rules.audience is not None and rules.audience not in audiences:
            raise _refused("it is meant for another audience")

    def _owner(self, claims: Mapping[str, Any], credential: Credential) -> Principal:
        rules = self.rules
        workspace = DEV.workspace_id if rules.workspace_claim is None else _name(claims, rules.workspace_claim)
        given = claims.get(rules.role_claim) if rules.role_claim is not None else None
        roles = cast("list[object]", given) if isinstance(given, list) else [given]
        role: PersonRole = "admin" if "admin" in roles else "user"
        return Principal(workspace, _name(claims, "sub"), role, credential=credential)


def looks_like_token(given: bytes) -> bool:
    """Three parts: keys of ours have none."""
    return given.count(b".") == 2


def _object(payload: bytes | None) -> Mapping[str, Any]:
    import msgspec

    return msgspec.json.decode(payload or b"", type=dict[str, Any])


def _check_times(claims: Mapping[str, Any], now: float) -> float:
    ends, begins = claims.get("exp"), claims.get("nbf", 0)
    if not _is_time(ends) or not _is_time(begins):
        raise _refused("it does not say when it ends (exp)")
    if now >= cast("float", ends) + LEEWAY_SECONDS:
        raise _refused("it has expired")
    if now < cast("float", begins) - LEEWAY_SECONDS:
        raise _refused("it is not valid yet")
    return cast("float", ends) + LEEWAY_SECONDS


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LATEST


def _name(claims: Mapping[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not value.isprintable():
        raise _refused(f"its claim {claim} is not a name of 1 to {MAX_NAME} characters")
    return value


def _refused(why: str) -> HostError:
    return HostError(ErrorCode.UNAUTHENTICATED, f"this token is not accepted: {why}")


# --- the keys of an issuer --------------------------------------------------------------------------------------------


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
    """Fetch the keys from the source, or from the address in it if it is an issuer's configuration."""
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
