"""Ids the host mints, for runs, messages and transactions, and the chance they are made of. Nothing else makes them."""

import hmac
import os
import time
from hashlib import sha1, sha256
from uuid import UUID

STOCK_BYTES = 4096


class _Chance:
    """Random bytes, asked of the system for many ids at once: each question lets another thread in, and then the event
    loop has to win the interpreter back."""

    def __init__(self) -> None:
        self._stock = b""
        self._used = 0
        os.register_at_fork(after_in_child=self._forget)

    def draw(self, count: int) -> bytes:
        """So many random bytes, given to nobody else."""
        first, self._used = self._used, self._used + count
        if self._used > len(self._stock):
            self._stock, first, self._used = os.urandom(max(STOCK_BYTES, count)), 0, count
        return self._stock[first : self._used]

    def _forget(self) -> None:
        """A copy of this process must not mint the same ids."""
        self._stock = b""


_chance = _Chance()


def chance(count: int) -> bytes:
    """So many random bytes, given to nobody else: for salts."""
    return _chance.draw(count)


def new_id() -> str:
    """A time-ordered UUID (version 7), so that ids sort by when they were made."""
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    digits = _chance.draw(10).hex()
    return f"{stamp[:8]}-{stamp[8:]}-7{digits[:3]}-{_VARIANTS[digits[3]]}{digits[4:7]}-{digits[7:19]}"


def id_of(name: str, space: UUID) -> str:
    """The UUID of a name (version 5): always the same, as the library's `uuid5` gives it, at a tenth of the price."""
    digits = sha1(space.bytes + name.encode(), usedforsecurity=False).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:32]}"


def keyed_id(name: str, key: bytes) -> str:
    """The UUID (version 8) that whoever has the key makes of a name: always the same, and known to nobody else."""
    digits = hmac.digest(key, name.encode("utf-8", "surrogatepass"), sha256).hex()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:32]}"


_VARIANTS = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
