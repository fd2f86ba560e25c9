"""Credentials and signatures: how a caller was let in, signed addresses, and signed webhooks. Pure.

Webhooks are signed both ways by the Standard Webhooks convention, HMAC-SHA256 over id, time and body: `webhook-id`
names the message and stays the same when it is sent again, `webhook-timestamp` is when it was sent, `webhook-signature`
has one or more `v1,<base64>`.
"""

import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from paddock.rules.values import Value


class Credential(Value, frozen=True):
    kind: Literal["host", "key", "token", "keyless"] = "host"
    """`host`: the host itself vouches for them, for as long as it runs."""
    key_id: str = ""
    ends_at: float | None = None

    def written(self) -> str:
        """Text for a signed address; empty where the host itself vouches."""
        match self.kind:
            case "key":
                return f"k.{self.key_id}"
            case "token":
                return f"t.{int(self.ends_at or 0)}"
            case "keyless":
                return "n."
            case "host":
                return ""


HOST = Credential()
KEYLESS = Credential("keyless")


def read_credential(written: str) -> Credential | None:
    """Parse the text that `Credential.written` makes; None for anything else."""
    if not written:
        return HOST
    kind, dot, value = written.partition(".")
    if kind == "k" and dot and value:
        return Credential("key", value)
    if kind == "t" and value.isdecimal() and value.isascii() and len(value) < 16:
        return Credential("token", ends_at=float(value))
    return KEYLESS if written == "n." else None


def why_over(given: Credential, *, now: float, live_keys: Collection[str], keyless: bool) -> str | None:
    """Return why the credential is no longer valid, None while it is. `live_keys` are the keys that are not revoked."""
    match given.kind:
        case "key" if given.key_id not in live_keys:
            return "the key that opened this was revoked"
        case "token" if given.ends_at is not None and now >= given.ends_at:
            return "the token that opened this has expired"
        case "keyless" if not keyless:
            return "this was opened without a key, and callers are known by key now"
        case _:
            return None


_canonical = msgspec.json.Encoder().encode


class SigningKeys(Value, frozen=True):
    """The keys that count, by name; the active one signs."""

    active: str
    secrets: Mapping[str, bytes]


def signed(keys: SigningKeys, parts: Sequence[str | int]) -> tuple[str, str]:
    """The name of the key, and the signature of these parts in this order."""
    return keys.active, _signature(keys.secrets[keys.active], parts)


def is_signed(keys: SigningKeys, key: str, signature: str, parts: Sequence[str | int]) -> bool:
    """Check a signature against our keys, in constant time."""
    secret = keys.secrets.get(key)
    if secret is None:
        return False
    return hmac.compare_digest(_signature(secret, parts).encode(), signature.encode("utf-8", "surrogatepass"))


def _signature(secret: bytes, parts: Sequence[str | int]) -> str:
    return hmac.new(secret, _canonical(parts), sha256).hexdigest()


WEBHOOK_WINDOW_SECONDS = 300.0
"""How far a message's time may be off: an older one is a replay, a newer one a wrong clock."""
MAX_SIGNATURES = 8


def webhook_key(secret: str) -> bytes:
    """The bytes to sign with. Raises ValueError for a whsec_ that is no base64."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix("whsec_"), validate=True)
    except Base64Error as error:
        raise ValueError("what follows whsec_ must be base64") from error


def webhook_signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}"


def webhook_headers(key: bytes, message_id: str, now: float, body: bytes) -> Mapping[str, str]:
    stamp = int(now)
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": webhook_signature(key, message_id, stamp, body),
    }


def is_signed_webhook(key: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Check the signatures of a message, in constant time."""
    message_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    expected = webhook_signature(key, message_id, int(stamp), body).encode()
    given = headers.get("webhook-signature", "").split()[:MAX_SIGNATURES]
    matches = [hmac.compare_digest(expected, one.encode("utf-8", "replace")) for one in given]
    return any(matches)


def is_fresh_webhook(headers: Mapping[str, str], now: float) -> bool:
    """Check the age of a message whose signature is valid."""
    return abs(int(headers["webhook-timestamp"]) - now) <= WEBHOOK_WINDOW_SECONDS
