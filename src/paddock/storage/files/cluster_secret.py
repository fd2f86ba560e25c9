"""The cluster's secret, and texts that are sealed with it.

It comes from the environment, or from a file in the data directory that only its owner reads. Both have the same form:
the secret, and behind commas those it replaced, which are for reading only. Sealed texts are AES-256-GCM with a key
made of the secret, bound to whom the text belongs.
"""

import os
import secrets
import stat
from base64 import b64decode, b64encode
from binascii import Error as NotBase64Error
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from paddock.ports.definitions import Owner
from paddock.rules.cluster import ClusterSecret, mark_of
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files.signing_keys import write

VARIABLE = "PADDOCK_SECRET"
FILE_NAME = "cluster-secret"
LEAST_CHARACTERS = 32


def find(data: Path, environ: Mapping[str, str] | None = None) -> ClusterSecret:
    """Return the secret; without one in the environment it is made in the data directory, once. Raises
    StorageUnavailableError."""
    told = (os.environ if environ is None else environ).get(VARIABLE)
    if told:
        return _read(told, VARIABLE)
    path = data / FILE_NAME
    with suppress(FileExistsError):
        if not path.exists():
            write(path, f"{_new()}\n".encode(), replace=False)
    return _of_file(path)


def is_there(data: Path, environ: Mapping[str, str] | None = None) -> bool:
    return bool((os.environ if environ is None else environ).get(VARIABLE)) or (data / FILE_NAME).exists()


def rotate(data: Path) -> ClusterSecret:
    """Make a new secret in the file; those before it stay behind it. Raises StorageUnavailableError."""
    known = find(data, {})
    text = ",".join([_new(), *(part.decode() for part in known.parts)])
    write(data / FILE_NAME, f"{text}\n".encode(), replace=True)
    return _of_file(data / FILE_NAME)


def _of_file(path: Path) -> ClusterSecret:
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            path.chmod(0o600)
        return _read(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise StorageUnavailableError(f"the cluster's secret in {path} cannot be read: {error}") from error


def _read(text: str, source: str) -> ClusterSecret:
    parts = [part.strip() for part in text.split(",")]
    if any(len(part) < LEAST_CHARACTERS for part in parts):
        least = f"it must have {LEAST_CHARACTERS} characters or more, and so must those before it, behind commas"
        raise StorageUnavailableError(f"the cluster's secret in {source} is too short to be safe: {least}")
    return ClusterSecret(tuple(part.encode() for part in parts), source)


def _new() -> str:
    return secrets.token_urlsafe(32)


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
