"""Digests of requests that are kept to know a repeated one: salted, because the words they are made of can be erased.

The salt stands beside the digest and goes with it. What is left of an erased one is nothing, which no request equals.
"""

import hmac
from hashlib import sha256

from paddock.rules.log.chain import NO_BYTES, SALT_BYTES

ERASED_DIGEST = NO_BYTES
"""Stands where a digest of erased words stood."""


def salted(digest: bytes, salt: bytes) -> bytes:
    """Return what is stored of a digest. `salt` is `SALT_BYTES` of chance that nothing else uses."""
    return salt + sha256(salt + digest).digest()


def is_salted(kept: bytes, digest: bytes) -> bool:
    """Whether the stored bytes were made of this digest."""
    return kept != ERASED_DIGEST and hmac.compare_digest(kept, salted(digest, kept[:SALT_BYTES]))
