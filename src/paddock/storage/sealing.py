"""Sealed texts: AES-256-GCM with a key made of the cluster's secret, bound to whom the text belongs."""

import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error

import msgspec

from paddock.ports.definitions import Owner
from paddock.rules.cluster.secret import ClusterSecret, mark_of

PURPOSE = "sealing"
PREFIX = "sealed:1:"
NONCE_BYTES = 12
_canonical = msgspec.json.encode


class Sealer:
    """Implements `ports.secrets.Sealing`."""

    def __init__(self, secret: ClusterSecret) -> None:
        self._keys = {mark_of(key): key for key in reversed(secret.keys(PURPOSE))}
        self._newest = mark_of(secret.key(PURPOSE))

    def seal(self, text: str, owner: Owner) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce, plain = os.urandom(NONCE_BYTES), text.encode("utf-8", "surrogatepass")
        closed = AESGCM(self._keys[self._newest]).encrypt(nonce, plain, _canonical(owner))
        return f"{PREFIX}{self._newest}:{b64encode(nonce + closed).decode()}"

    def opened(self, sealed: str, owner: Owner) -> str | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        mark, _, body = sealed.removeprefix(PREFIX).partition(":")
        key = self._keys.get(mark)
        if key is None:
            return None
        try:
            raw = b64decode(body, validate=True)
            plain = AESGCM(key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], _canonical(owner))
        except (InvalidTag, NotBase64Error, ValueError):
            return None
        return plain.decode("utf-8", "surrogatepass")

    def is_sealed(self, text: str) -> bool:
        return text.startswith(PREFIX)

    def is_current(self, sealed: str) -> bool:
        return sealed.startswith(f"{PREFIX}{self._newest}:")
