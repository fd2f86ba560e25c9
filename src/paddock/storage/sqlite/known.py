"""Which sessions may be on file: a small filter in memory, so that a new session is opened without looking for it.

It errs to one side only: a session on file is never called new. It can promise that because one process owns the file
and every session it writes was claimed first. No queries live here.
"""

from collections.abc import Iterable

BITS = 1 << 23
"""One MiB: with half a million sessions one new one in a hundred is looked for in vain."""
MOST = 200_000
"""Sessions read at start, a matter of tenths of a second. With more on file every session is looked for."""
_MASK = BITS - 1


class KnownSessions:
    """Sessions that may exist, two bits each."""

    def __init__(self) -> None:
        self._bits = bytearray(BITS // 8)
        self._complete = False

    def fill(self, session_ids: Iterable[str]) -> None:
        """Learn all that are on file. Before that every session may be."""
        for session_id in session_ids:
            self.claimed(session_id)
        self._complete = True

    def claimed(self, session_id: str) -> bool:
        """Remember a session that may be written from now on; False when it was certainly not on file before."""
        mixed = hash(session_id)
        one, other = mixed & _MASK, mixed >> 23 & _MASK
        bits = self._bits
        seen = bits[one >> 3] >> (one & 7) & bits[other >> 3] >> (other & 7) & 1
        if not seen:
            bits[one >> 3] |= 1 << (one & 7)
            bits[other >> 3] |= 1 << (other & 7)
        return bool(seen) or not self._complete
