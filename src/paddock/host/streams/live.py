"""Words that were just committed, from host to host: readers elsewhere get them without asking the store.

Sent after the commit, never before, and only of conversations that another host follows: each says which those are when
one is added and again at each beat. Who last worked on a conversation that is followed from now on says how far it is,
so that nothing falls in between. What does not arrive is read from the log.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec

from paddock.host.streams.followed import Followed, Follows, all_of
from paddock.ports.bus import Bus, Subscription
from paddock.rules.log.chain import StoredFact
from paddock.rules.values import Value

DELETED = -1
"""Said in place of the last number: the conversation is no more. A host that does not know the word passes it over."""

HeardFacts = Callable[[Sequence[StoredFact], int], None]
"""What was committed, and its last number; without the facts when they were too long to send."""


class _Word(Value, frozen=True, array_like=True):
    last: int
    facts: list[StoredFact]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Word).decode
_decode_follows = msgspec.msgpack.Decoder(Follows).decode


class _Heard:
    """One conversation that is followed here, until stopped."""

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
        """What all subjects begin with, so that several installations may share a bus."""
        self.boot = 0
        """The number of this host."""
        self._followed = Followed()
        self._follows: Counter[str] = Counter()
        self._heard: Subscription | None = None
        self.on_followed: Callable[[Collection[str]], None] = lambda _: None
        """Told which conversations another host follows from now on."""

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
            said = _decode(word)
            heard(said.facts, said.last)

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
        """Be one of the hosts, under this number."""
        self.boot = boot
        if self._heard is None:
            self._heard = await self._bus.subscribe(self.subject("follows"), self._on_follows)
        self.say_again()

    def meet(self, boots: Sequence[int]) -> None:
        """These are the others. Each is told again what is followed here, for whoever has not heard it."""
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


@lru_cache(maxsize=4096)  # the words of a run come one after the other
def _name_of(session_id: str) -> str:
    """Subject of a session on the bus, whatever characters its id has."""
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
