"""All connections of a host together: how many there are, and how much of unfinished requests they hold.

A cap alone would let strangers keep every place. So when there are too many, the one that was idle for longest goes
first, and after the idle ones whoever has left an answer unread for longest; when unfinished requests hold too much,
the one that began first goes, first of all of a caller who holds more than a share. How slow a
single request may be is said in `patience`.
"""

from collections import OrderedDict
from typing import Protocol

MOST = 12_000
BODY_BYTES = 512 * 1024 * 1024
SHARE = 4
"""One caller's unfinished requests hold at most this part of it; whoever shows no key is one caller."""


class Member(Protocol):
    """One connection."""

    @property
    def caller(self) -> int:
        """Whose request is on its way: the same number for the same key, 0 without one."""
        ...

    def leave_idle(self) -> None:
        """Make room for somebody who came later."""
        ...

    def leave_unread(self) -> None:
        """Make room: the client takes nothing of an answer that waits for it."""
        ...

    def leave_unfinished(self) -> None:
        """Give back what its unfinished request holds."""
        ...


class _Unfinished:
    """Members with a request on its way, in the order they began, and the bytes that came of it."""

    def __init__(self) -> None:
        self.sizes: OrderedDict[Member, int] = OrderedDict()
        self.total = 0

    def set(self, member: Member, size: int) -> None:
        self.total += size - self.sizes.get(member, 0)
        self.sizes[member] = size

    def drop(self, member: Member) -> None:
        self.total -= self.sizes.pop(member, 0)


class Crowd:
    def __init__(self, most: int = MOST, body_bytes: int = BODY_BYTES) -> None:
        self._most = most
        self._body_bytes = body_bytes
        self._share = body_bytes // SHARE
        self._idle: OrderedDict[Member, None] = OrderedDict()
        self._unread: OrderedDict[Member, None] = OrderedDict()
        self._unfinished = _Unfinished()
        self._by_caller: dict[int, _Unfinished] = {}
        self._caller_of: dict[Member, int] = {}

    @property
    def unfinished_bytes(self) -> int:
        return self._unfinished.total

    @property
    def unread(self) -> int:
        """How many clients take nothing of an answer at the moment."""
        return len(self._unread)

    def came(self, member: Member, connections: int) -> bool:
        """Whether a new connection, one of so many now, may stay."""
        self._idle[member] = None
        if connections <= self._most:
            return True
        oldest = next(iter(self._idle))
        if oldest is not member:
            del self._idle[oldest]
            oldest.leave_idle()
        elif self._unread:
            self._unread.popitem(last=False)[0].leave_unread()
        elif self._unfinished.sizes:
            self._send_away(next(iter(self._unfinished.sizes)))
        else:
            del self._idle[member]
        return member in self._idle

    def is_idle(self, member: Member) -> None:
        self._idle[member] = None

    def is_busy(self, member: Member) -> None:
        self._idle.pop(member, None)

    def is_unread(self, member: Member) -> None:
        """More waits to be sent to it than its system takes."""
        self._unread[member] = None

    def is_read(self, member: Member) -> None:
        self._unread.pop(member, None)

    def left(self, member: Member) -> None:
        self._idle.pop(member, None)
        self._unread.pop(member, None)
        self.is_whole(member)

    def holds(self, member: Member, size: int) -> None:
        """A request is on its way, and so many bytes of it came."""
        caller = self._caller_of.setdefault(member, member.caller)
        theirs = self._by_caller.setdefault(caller, _Unfinished())
        self._unfinished.set(member, size)
        theirs.set(member, size)
        while theirs.total > self._share and len(theirs.sizes) > 1:
            self._send_away(next(iter(theirs.sizes)))
        while self._unfinished.total > self._body_bytes:
            self._send_away(next(iter(self._unfinished.sizes)))

    def is_whole(self, member: Member) -> None:
        """Its request came in full, or comes no more."""
        caller = self._caller_of.pop(member, None)
        if caller is None:
            return
        self._unfinished.drop(member)
        theirs = self._by_caller[caller]
        theirs.drop(member)
        if not theirs.sizes:
            del self._by_caller[caller]

    def _send_away(self, member: Member) -> None:
        self.is_whole(member)
        member.leave_unfinished()
