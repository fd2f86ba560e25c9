"""Committed facts, sent from host to host: readers elsewhere get them without asking the store.

They are sent after the commit, and only for sessions that another host follows. Each host says which those are when one
is added, and again at each beat. The host that last worked on a newly followed session says how far it is, so that
nothing is missed. Facts that do not arrive are read from the log. A host that has not said for a while what it follows
may follow anything: older releases never say it, and messages may be lost.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import msgspec

from paddock.ports.bus import Bus, Subscription
from paddock.rules.cluster import BEAT_SECONDS
from paddock.rules.log.chain import StoredFact
from paddock.rules.values import Value

SAID_SECONDS = 3 * BEAT_SECONDS
"""Seconds that a host's message about what it follows counts; it repeats it at each beat."""
MAX_SAID = 1024
"""A host that follows more sessions of other hosts says that it follows everything."""


class Follows(Value, frozen=True, array_like=True):
    """Sessions one host follows; None means all of them. `also` adds to what it said before."""

    boot: int
    sessions: Sequence[str] | None
    also: bool = False


def all_of(boot: int, sessions: Collection[str]) -> Follows:
    """Return the message a host sends at each beat."""
    return Follows(boot, list(sessions) if len(sessions) <= MAX_SAID else None)


class _Followed(NamedTuple):
    sessions: set[str] | None
    at: float


class Followed:
    """Sessions that other hosts follow."""

    def __init__(self) -> None:
        self._boots: Sequence[int] = ()
        self._by_host: dict[int, _Followed] = {}
        self._sets: Sequence[set[str]] = ()
        self._anything = False

    def wants(self, session_id: str) -> bool:
        """True when another host may wait for facts of this session."""
        return self._anything or (bool(self._sets) and any(session_id in followed for followed in self._sets))

    def meet(self, boots: Sequence[int], now: float) -> None:
        self._boots = boots
        self._by_host = {boot: known for boot, known in self._by_host.items() if now - known.at <= SAID_SECONDS}
        self._sum_up()

    def hear(self, follows: Follows, now: float) -> Collection[str]:
        """Take in what another host follows. Returns the sessions that it did not follow before."""
        before = self._by_host.get(follows.boot)
        known = before.sessions if before is not None and before.sessions is not None else set[str]()
        if follows.also:
            if before is None or before.sessions is None:
                return follows.sessions or ()  # it gets everything already, because it may follow anything
            new = set(follows.sessions or ()) - known
            self._by_host[follows.boot] = _Followed(known | new, before.at)
            self._sum_up()
            return new
        followed = None if follows.sessions is None else set(follows.sessions)
        self._by_host[follows.boot] = _Followed(followed, now)
        self._sum_up()
        return () if followed is None else followed - known

    def _sum_up(self) -> None:
        known = self._by_host
        self._sets = [one.sessions for one in known.values() if one.sessions]
        self._anything = any(boot not in known or known[boot].sessions is None for boot in self._boots)


DELETED = -1
"""Sent in place of the last number when the session was deleted. Older hosts ignore it."""

HeardFacts = Callable[[Sequence[StoredFact], int], None]
"""Called with committed facts and the last number; without the facts when they were too long to send."""


class _Word(Value, frozen=True, array_like=True):
    last: int
    facts: list[StoredFact]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Word).decode
_decode_follows = msgspec.msgpack.Decoder(Follows).decode


class _Heard:
    def __init__(self, live: "Live", session_id: str, subscription: Subscription) -> None:
        self._live = live
        self._session_id = session_id
        self._subscription = subscription

    async def stop(self) -> None:
        self._live.unfollow(self._session_id)
        await self._subscription.stop()


class Live:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.name = "paddock"
        """Prefix of all subjects, so that several installations may share a bus."""
        self.boot = 0
        """The number of this host."""
        self._followed = Followed()
        self._follows: Counter[str] = Counter()
        self._heard: Subscription | None = None
        self.on_followed: Callable[[Collection[str]], None] = lambda _: None
        """Called with the sessions that another host follows from now on."""

    def subject(self, *parts: str) -> str:
        return ".".join((self.name, *parts))

    def patience(self, quiet: int) -> float:
        """Seconds a reader waits before it reads the log, after so many reads that found nothing."""
        return min(2.0 * 2**quiet, 15.0) if self._bus.healthy() else 0.25

    # --- what is committed here

    def wanted(self, session_id: str) -> bool:
        """True when another host may wait for facts of this session."""
        return self._followed.wants(session_id)

    def send(self, session_id: str, facts: Sequence[StoredFact]) -> None:
        word = _encode((facts[-1].seq, facts))
        if len(word) > self._bus.max_bytes:
            word = _encode((facts[-1].seq, ()))
        self._bus.publish(self._session(session_id), word)

    def send_end(self, session_id: str, end: int) -> None:
        """Send the number of a session's last fact; readers that are behind find the rest in the log."""
        self._bus.publish(self._session(session_id), _encode((end, ())))

    # --- what others commit

    async def listen(self, session_id: str, heard: HeardFacts) -> Subscription:
        def on_word(word: bytes) -> None:
            message = _decode(word)
            heard(message.facts, message.last)

        self._follows[session_id] += 1
        try:
            subscription = await self._bus.subscribe(self._session(session_id), on_word)
        except BaseException:
            self.unfollow(session_id)
            raise
        self._say(Follows(self.boot, [session_id], also=True))
        return _Heard(self, session_id, subscription)

    def unfollow(self, session_id: str) -> None:
        self._follows[session_id] -= 1
        if self._follows[session_id] <= 0:
            del self._follows[session_id]

    # --- who follows what

    async def join(self, boot: int) -> None:
        """Join the hosts under this number."""
        self.boot = boot
        if self._heard is None:
            self._heard = await self._bus.subscribe(self.subject("follows"), self._on_follows)
        self.say_again()

    def meet(self, boots: Sequence[int]) -> None:
        """Set the other hosts, and tell them again what is followed here, because new ones have not heard it."""
        self._followed.meet(boots, asyncio.get_running_loop().time())
        self.say_again()

    def say_again(self) -> None:
        self._say(all_of(self.boot, self._follows))

    def _say(self, follows: Follows) -> None:
        word = _encode(follows)
        if len(word) > self._bus.max_bytes:
            word = _encode(Follows(self.boot, None))
        self._bus.publish(self.subject("follows"), word)

    def _on_follows(self, word: bytes) -> None:
        if new := self._followed.hear(_decode_follows(word), asyncio.get_running_loop().time()):
            self.on_followed(new)

    def _session(self, session_id: str) -> str:
        return f"{self.name}.live.{_name_of(session_id)}"


@lru_cache(maxsize=4096)  # the facts of a run come one after the other
def _name_of(session_id: str) -> str:
    """Return the subject of a session on the bus, whatever characters its id has."""
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
