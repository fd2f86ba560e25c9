"""Which conversations somebody follows at another host, as the hosts say themselves. No I/O, no clock.

What nobody follows elsewhere need not be said there. A host that has not said for a while what it follows may follow
anything: one of an older release never says it, and what another said may have been lost.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from paddock.rules.cluster.leases import BEAT_SECONDS
from paddock.rules.values import Value

SAID_SECONDS = 3 * BEAT_SECONDS
"""How long a host is believed to follow only what it said; it says it again at each beat."""
MAX_SAID = 1024
"""A host that follows more of other hosts' conversations says that it follows everything."""


class Follows(Value, frozen=True, array_like=True):
    """Sessions one host follows; None means all of them. `also` adds to what it said before."""

    boot: int
    sessions: Sequence[str] | None
    also: bool = False


def all_of(boot: int, sessions: Collection[str]) -> Follows:
    """Message a host sends at each beat."""
    return Follows(boot, list(sessions) if len(sessions) <= MAX_SAID else None)


class _Said(NamedTuple):
    sessions: set[str] | None
    at: float


class Followed:
    """Sessions that other hosts follow."""

    def __init__(self) -> None:
        self._boots: Sequence[int] = ()
        self._said: dict[int, _Said] = {}
        self._sets: Sequence[set[str]] = ()
        self._anything = False

    def wants(self, session_id: str) -> bool:
        """True when another host may wait for facts of this session."""
        return self._anything or (bool(self._sets) and any(session_id in said for said in self._sets))

    def meet(self, boots: Sequence[int], now: float) -> None:
        """These are the other hosts."""
        self._boots = boots
        self._said = {boot: said for boot, said in self._said.items() if now - said.at <= SAID_SECONDS}
        self._sum_up()

    def hear(self, follows: Follows, now: float) -> Collection[str]:
        """One of them says what it follows. The conversations it did not follow before."""
        before = self._said.get(follows.boot)
        known = before.sessions if before is not None and before.sessions is not None else set[str]()
        if follows.also:
            if before is None or before.sessions is None:
                return follows.sessions or ()  # it may follow anything, so it gets everything already
            new = set(follows.sessions or ()) - known
            self._said[follows.boot] = _Said(known | new, before.at)
            self._sum_up()
            return new
        said = None if follows.sessions is None else set(follows.sessions)
        self._said[follows.boot] = _Said(said, now)
        self._sum_up()
        return () if said is None else said - known

    def _sum_up(self) -> None:
        said = self._said
        self._sets = [one.sessions for one in said.values() if one.sessions]
        self._anything = any(boot not in said or said[boot].sessions is None for boot in self._boots)
