"""Signed webhooks, both ways, by the Standard Webhooks convention: HMAC-SHA256 over id, time and body. Pure.

`webhook-id` names the message and stays the same when it is sent again, `webhook-timestamp` is when it was sent,
`webhook-signature` has one or more `v1,<base64>`.
"""

import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from hashlib import sha256

WINDOW_SECONDS = 300.0
"""How far a message's time may be off: an older one is a replay, a newer one a wrong clock."""
MAX_SIGNATURES = 8


def key_of(secret: str) -> bytes:
    """The bytes to sign with. Raises ValueError for a whsec_ that is no base64."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix("whsec_"), validate=True)
    except Base64Error as error:
        raise ValueError("what follows whsec_ must be base64") from error


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return f"v1,{b64encode(hmac.digest(key, signed, sha256)).decode()}"


def headers_for(key: bytes, message_id: str, now: float, body: bytes) -> Mapping[str, str]:
    """Return the headers of a signed message."""
    stamp = int(now)
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": signature(key, message_id, stamp, body),
    }


def is_signed(key: bytes, headers: Mapping[str, str], body: bytes) -> bool:
    """Check the signatures of a message, in constant time."""
    message_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not message_id or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        return False
    expected = signature(key, message_id, int(stamp), body).encode()
    given = headers.get("webhook-signature", "").split()[:MAX_SIGNATURES]
    matches = [hmac.compare_digest(expected, one.encode("utf-8", "replace")) for one in given]
    return any(matches)


def is_fresh(headers: Mapping[str, str], now: float) -> bool:
    """Check the age of a message whose signature is valid."""
    return abs(int(headers["webhook-timestamp"]) - now) <= WINDOW_SECONDS
