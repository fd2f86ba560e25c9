"""The keys that sign URLs, in a file only its owner can read. Made on first use, changed by `rotate` while in use.

A key that was replaced still counts until everything it signed has expired; then it is forgotten. A host that finds the
file changed reads it again, so nothing has to be restarted.
"""

import os
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from paddock.rules.access.signatures import SigningKeys
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.values import Value

SECRET_BYTES = 32
RETIRED_SECONDS = 3600.0
"""How long a replaced key still counts: longer than anything signed lasts."""
LOOK_EVERY_SECONDS = 1.0


class _Kept(Value, frozen=True):
    key: str
    secret: str
    retired_at: float | None = None


class _File(Value, frozen=True):
    active: str
    keys: tuple[_Kept, ...]


class KeyFile:
    """The keys as a running host uses them."""

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._clock = clock
        self._now = now
        self._looked = float("-inf")
        self._seen: tuple[int, int] | None = None
        self._keys: SigningKeys | None = None

    def __call__(self) -> SigningKeys:
        if self._keys is None or self._now() - self._looked >= LOOK_EVERY_SECONDS:
            self._look()
        assert self._keys is not None
        return self._keys

    def _look(self) -> None:
        seen = _mark(self._path)
        if self._keys is None or seen != self._seen:
            self._keys = as_keys(read_or_make(self._path), self._clock())
            seen = _mark(self._path)
        self._seen, self._looked = seen, self._now()


def rotate(path: Path, now: float) -> str:
    """A new key signs from now on; its name. Raises StorageUnavailableError."""
    body, name = rotated(content(path), now)
    write(path, body, replace=True)
    return name


def rotated(body: bytes, now: float) -> tuple[bytes, str]:
    """The keys with a new one that signs from now on, and its name."""
    known = msgspec.json.decode(body, type=_File)
    old = [msgspec.structs.replace(one, retired_at=now) if one.key == known.active else one for one in known.keys]
    kept = [one for one in old if one.retired_at is None or now - one.retired_at < RETIRED_SECONDS]
    new = _new()
    return msgspec.json.encode(_File(new.key, (*kept, new))), new.key


def content(path: Path) -> bytes:
    """Read the key file; make it when there is none. Raises StorageUnavailableError."""
    return msgspec.json.encode(read_or_make(path))


def read_or_make(path: Path) -> _File:
    if not path.exists():
        with suppress(FileExistsError):  # another host of the same file was quicker
            write(path, fresh(), replace=False)
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError) as error:
        text = f"the signing keys in {path} cannot be read ({error}); restore the file, or remove it to have new ones"
        raise StorageUnavailableError(text) from error


def fresh() -> bytes:
    """Keys that nothing was signed with yet."""
    first = _new()
    return msgspec.json.encode(_File(first.key, (first,)))


def as_keys(found: _File, now: float) -> SigningKeys:
    counting = [one for one in found.keys if one.retired_at is None or now - one.retired_at < RETIRED_SECONDS]
    return SigningKeys(found.active, {one.key: b64decode(one.secret) for one in counting})


def _new() -> _Kept:
    return _Kept(secrets.token_hex(4), b64encode(secrets.token_bytes(SECRET_BYTES)).decode())


def write(path: Path, body: bytes, *, replace: bool) -> None:
    """Whole or not at all, for its owner's eyes only. Raises FileExistsError when it is there and must stay."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            beside.replace(path)
        else:
            os.link(beside, path)
    except FileExistsError:
        raise
    except OSError as error:
        raise StorageUnavailableError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
