"""Signatures of our own: a key has a name, so that keys can be changed while what they signed still counts. Pure."""

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from paddock.rules.values import Value

_canonical = msgspec.json.Encoder().encode


class SigningKeys(Value, frozen=True):
    """The keys that count, by name; the active one signs."""

    active: str
    secrets: Mapping[str, bytes]


def signed(keys: SigningKeys, parts: Sequence[str | int]) -> tuple[str, str]:
    """The name of the key, and the signature of these parts in this order."""
    return keys.active, _signature(keys.secrets[keys.active], parts)


def is_signed(keys: SigningKeys, key: str, signature: str, parts: Sequence[str | int]) -> bool:
    """Whether one of our keys made this signature. Takes equally long for every wrong one."""
    secret = keys.secrets.get(key)
    if secret is None:
        return False
    return hmac.compare_digest(_signature(secret, parts).encode(), signature.encode("utf-8", "surrogatepass"))


def _signature(secret: bytes, parts: Sequence[str | int]) -> str:
    return hmac.new(secret, _canonical(parts), sha256).hexdigest()
