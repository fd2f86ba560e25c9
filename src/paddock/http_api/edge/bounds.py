"""Bounds of connections: how long a request may take to arrive, how large its head may be, how many connections
there are, and how much of unfinished requests they hold. Pure; a connection obeys.

A cap alone would let strangers keep every place. So when there are too many, the one that was idle for longest goes
first, and after the idle ones whoever has left an answer unread for longest; when unfinished requests hold too much,
the one that began first goes, first of all of a caller who holds more than a share. Not here: how large a body may be,
which each door says, and how long an answer may take, which a stream decides.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol


class Arriving(Enum):
    """The part of a request that is still to come."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Patience:
    head_seconds: float = 20.0
    """From the first byte, or from connecting, to the end of the head."""
    body_seconds: float = 30.0
    """What any body may take; a longer one must keep the pace."""
    body_bytes_per_second: int = 1024
    """On average. A telephone with one bar is faster; whoever drips on purpose is not."""
    reader_seconds: float = 300.0
    """How long a client may take nothing at all of an answer that waits for it."""
    look_seconds: float = 5.0
    """How often a connection is looked at; a limit may be overstepped by so much."""
    max_head_bytes: int = 64 * 1024
    max_headers: int = 100

    def is_over(self, arriving: Arriving, seconds: float, size: int) -> bool:
        """Tell if a request is given up, by its age and by how much of it has come."""
        match arriving:
            case Arriving.HEAD:
                return seconds > self.head_seconds
            case Arriving.BODY:
                return seconds > self.body_seconds and size < seconds * self.body_bytes_per_second
            case Arriving.NOTHING:
                return False


PATIENCE = Patience()


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


@dataclass(slots=True)
class _Unfinished:
    """Members with a request on its way, in the order they began, and the bytes that came of it."""

    sizes: OrderedDict[Member, int] = field(default_factory=OrderedDict[Member, int])
    total: int = 0

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
        self.idle: OrderedDict[Member, None] = OrderedDict()
        self._unread: OrderedDict[Member, None] = OrderedDict()
        self._lingering: set[Member] = set()
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
        """Register a new connection, one of so many; return False if it must go."""
        self.idle[member] = None
        if connections + len(self._lingering) <= self._most:
            return True
        oldest = next(iter(self.idle))
        if oldest is not member:
            del self.idle[oldest]
            oldest.leave_idle()
        elif self._unread:
            self._unread.popitem(last=False)[0].leave_unread()
        elif self._unfinished.sizes:
            self._send_away(next(iter(self._unfinished.sizes)))
        else:
            del self.idle[member]
        return member in self.idle

    def is_idle(self, member: Member) -> None:
        self.idle[member] = None

    def is_busy(self, member: Member) -> None:
        self.idle.pop(member, None)

    def is_unread(self, member: Member) -> None:
        """More waits to be sent to it than its system takes."""
        self._unread[member] = None

    def is_read(self, member: Member) -> None:
        self._unread.pop(member, None)

    def left(self, member: Member, *, lingers: bool = False) -> None:
        """Forget a connection: it is closed, or it `lingers` until its client has read why it will be."""
        (self._lingering.add if lingers else self._lingering.discard)(member)
        self.idle.pop(member, None)
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
