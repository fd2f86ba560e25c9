"""Words that were just committed, from host to host: readers elsewhere get them without asking the store.

Sent after the commit, never before, and only while there are other hosts. What does not arrive is read from the log.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec

from paddock.ports.bus import Bus, Subscription
from paddock.rules.chain import StoredFact
from paddock.rules.values import Value

HeardFacts = Callable[[Sequence[StoredFact], int], None]
"""What was committed, and its last number; without the facts when they were too long to send."""


class _Word(Value, frozen=True, array_like=True):
    last: int
    facts: list[StoredFact]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Word).decode


class Live:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.name = "paddock"
        """What all subjects begin with, so that several installations may share a bus."""
        self.others = False
        """Whether there is another host at all."""

    def subject(self, *parts: str) -> str:
        return ".".join((self.name, *parts))

    def patience(self, quiet: int) -> float:
        """How long a reader waits for a word before it looks into the log, after so many looks that found nothing."""
        return min(2.0 * 2**quiet, 15.0) if self._bus.healthy() else 0.25

    def send(self, session_id: str, facts: Sequence[StoredFact]) -> None:
        word = _encode((facts[-1].seq, facts))
        if len(word) > self._bus.max_bytes:
            word = _encode((facts[-1].seq, ()))
        self._bus.publish(self._session(session_id), word)

    async def listen(self, session_id: str, heard: HeardFacts) -> Subscription:
        def on_word(word: bytes) -> None:
            said = _decode(word)
            heard(said.facts, said.last)

        return await self._bus.subscribe(self._session(session_id), on_word)

    def _session(self, session_id: str) -> str:
        return f"{self.name}.live.{_name_of(session_id)}"


@lru_cache(maxsize=4096)  # the words of a run come one after the other
def _name_of(session_id: str) -> str:
    """What a subject may hold, whatever the session is called."""
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
