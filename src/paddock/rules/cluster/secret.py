"""The one secret that all hosts of an installation share: what it is for, and how it is told by. Pure.

Nothing is done with the secret itself: each purpose has a key of its own that is made of it, so that what one of them
gives away says nothing about the others. After a rotation the newest is used, and older ones still open what they
closed.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256

from paddock.rules.values import Value

MARK_DIGITS = 12


class ClusterSecret(Value, frozen=True):
    """The secret and those before it, the newest first; `source` says where it came from, for a person."""

    parts: tuple[bytes, ...]
    source: str

    def key(self, purpose: str) -> bytes:
        """Return the key that is used for a purpose from now on."""
        return derived(self.parts[0], purpose)

    def keys(self, purpose: str) -> Sequence[bytes]:
        """Return the keys for a purpose, the newest first."""
        return [derived(part, purpose) for part in self.parts]

    @property
    def mark(self) -> str:
        """Return what the newest is told by. It can be shown and stored."""
        return mark_of(self.key("mark"))

    @property
    def marks(self) -> frozenset[str]:
        return frozenset(map(mark_of, self.keys("mark")))


def derived(part: bytes, purpose: str) -> bytes:
    return hmac.digest(part, f"paddock:{purpose}".encode(), sha256)


def mark_of(key: bytes) -> str:
    return hmac.digest(key, b"mark", sha256).hex()[:MARK_DIGITS]
