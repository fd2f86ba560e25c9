"""Several hosts on one store: which of them serve, by the database's clock alone, and the secret they share. Pure.

A host shows that it is there by a beat. One that was silent for the length of its lease is declared gone, once and for
good: it owns nothing any more, and must come back under another number. A host that was away from the database itself
has nothing to say about others until it has watched them for as long as a lease.

Nothing is done with the secret itself: each purpose has a key of its own that is made of it, so that what one of them
gives away says nothing about the others. After a rotation the newest is used, and older ones still open what they
closed.
"""

import hmac
from collections.abc import Iterable, Sequence
from hashlib import sha256

from paddock.rules.errors import RunCode
from paddock.rules.values import Value

LEASE_SECONDS = 10.0
BEAT_SECONDS = 2.0
SURE_SECONDS = LEASE_SECONDS - 1.0
"""A host counts on its own lease a moment less than others grant it."""
AWAY_SECONDS = LEASE_SECONDS - BEAT_SECONDS - 1.0
"""A host whose own beats lie further apart was away itself, or the database was: others may have been just as long."""
LOST: RunCode = "host_lost"
SHUT_DOWN: RunCode = "host_shutdown"
RESTARTED: RunCode = "host_restarted"
WHY: dict[RunCode, str] = {
    LOST: "the host of this run was lost while it was in progress",
    SHUT_DOWN: "the host of this run was stopped while it was in progress",
    RESTARTED: "the host restarted while this run was in progress",
}
"""What a run's end says, by why its host is gone."""


def why_gone(left: str) -> tuple[RunCode, str]:
    """Return the code and the sentence for a run whose host is gone."""
    return (left, WHY[left]) if left in WHY else (LOST, WHY[LOST])


class KnownHost(Value, frozen=True):
    """One host as the database sees it."""

    boot: int
    host_id: str
    url: str
    silent_seconds: float
    gone: str | None = None
    settled: bool = False


def lapsed(peers: Iterable[KnownHost], me: int, *, watched_seconds: float) -> Sequence[int]:
    """Hosts to declare gone. `watched_seconds`: how long both we and the database have been there without a break."""
    if watched_seconds < LEASE_SECONDS:
        return ()
    silent = [peer for peer in peers if peer.gone is None and peer.silent_seconds > LEASE_SECONDS]
    return [peer.boot for peer in silent if peer.boot != me]


def others(peers: Iterable[KnownHost], me: int) -> Sequence[KnownHost]:
    return [peer for peer in peers if peer.gone is None and peer.boot != me]


def unsettled(peers: Iterable[KnownHost]) -> Sequence[int]:
    """Return the boots of hosts that are gone and whose sessions still need recovery."""
    return [peer.boot for peer in peers if peer.gone is not None and not peer.settled]


def housekeeper(peers: Iterable[KnownHost]) -> int | None:
    """The one host that does what one is enough for: the one that has been there longest."""
    return min((peer.boot for peer in peers if peer.gone is None), default=None)


def was_away(silent_seconds: float) -> bool:
    """Return true if a host without a beat for this long may have missed the others' decisions."""
    return silent_seconds > AWAY_SECONDS


def store_offset(offset: float, store_time: float, asked_at: float, answered_at: float) -> float:
    """Estimate how far the store's clock is ahead of a steady one. The store read its clock between the question and
    the answer: the earlier estimate stays where it fits that, else it moves as little as possible."""
    return min(max(offset, store_time - answered_at), store_time - asked_at)


def is_sure(silent_seconds: float) -> bool:
    """Return true if a host that last beat this long ago may still act for its sessions."""
    return silent_seconds < SURE_SECONDS


MARK_DIGITS = 12


class ClusterSecret(Value, frozen=True):
    """The secret and those before it, the newest first; `source` says where it came from, for a person."""

    parts: tuple[bytes, ...]
    source: str

    def key(self, purpose: str) -> bytes:
        return derived(self.parts[0], purpose)

    def keys(self, purpose: str) -> Sequence[bytes]:
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
