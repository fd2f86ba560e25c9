"""Logs written before digests were salted: each fact gets salts, and the chain is made anew over them. Pure.

A fact whose words were erased has only their plain digest, by which they could be guessed; chance takes its place. What
was damaged before stays damaged: where a link did not hold, the new one does not hold either.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from paddock.rules.log.chain import (
    ANCHOR,
    DIGEST_BYTES,
    ERASED,
    ERASED_DIGEST,
    NO_BYTES,
    SALT_BYTES,
    SALTED,
    Head,
    StoredFact,
    bare,
    digest_of,
    follows,
    link_of,
    salted,
)
from paddock.rules.values import replace

Chance = Callable[[int], bytes]
_encode = msgspec.json.encode


class Resalting:
    """The facts of one log, salted one after the other; its new ends are known when all went through."""

    def __init__(self, head: Head, trimmed: Head, chance: Chance) -> None:
        self._old_head, self._old_trimmed, self._chance = head, trimmed, chance
        self.trimmed = Head(trimmed.seq, chance(DIGEST_BYTES) if trimmed.digest else NO_BYTES)
        self._old_link: bytes = trimmed.digest
        self._link: bytes = self.trimmed.digest
        self._turns: set[str] = set()
        self._erased: dict[str | None, float] = {}

    @property
    def head(self) -> Head:
        is_whole = self._old_link == self._old_head.digest
        return Head(self._old_head.seq, self._link if is_whole else self._chance(DIGEST_BYTES))

    def facts(self, facts: Iterable[StoredFact]) -> Iterator[StoredFact]:
        """Take all facts in order of number; yield those that changed. Deltas have no part in it."""
        for fact in facts:
            if fact.turn_id is not None:
                self._turns.add(fact.turn_id)
            if fact.is_delta:
                continue
            if fact.payload.startswith(ERASED):
                self._erased.setdefault(fact.turn_id, fact.time)
            new = replace(fact, payload=self._salted(self._payload(fact)), metadata=self._salted(fact.metadata))
            new = replace(new, payload_digest=digest_of(new.payload))
            held = follows(fact, self._old_link)
            new = replace(new, digest=link_of(new, self._link) if held else self._chance(DIGEST_BYTES))
            self._old_link, self._link = fact.digest, new.digest
            yield new

    def body_hash(self, kept: bytes, run_id: str, created_at: float) -> bytes:
        """Return what is kept of a request from now on. To be asked after the facts."""
        forgotten = self.trimmed.seq > 0 and run_id not in self._turns
        touched = run_id in self._erased or created_at >= min(self._erased.values(), default=float("inf"))
        return ERASED_DIGEST if forgotten or touched else salted(kept, self._chance(SALT_BYTES))

    def _payload(self, fact: StoredFact) -> bytes:
        """An anchor names the digest that the chain goes on from, which is another now."""
        if fact.kind != ANCHOR or fact.payload.startswith(ERASED):
            return fact.payload
        told: dict[str, Any] = fact.read_payload() or {}
        is_of = (told.get("through"), told.get("digest")) == (self._old_trimmed.seq, self._old_trimmed.digest.hex())
        digest = self.trimmed.digest if is_of else self._chance(DIGEST_BYTES)
        return _encode({**told, "digest": digest.hex()})

    def _salted(self, stored: bytes) -> bytes:
        if not stored:
            return stored
        if stored.startswith(ERASED):
            return ERASED + self._chance(DIGEST_BYTES) + bare(stored)
        return SALTED + self._chance(SALT_BYTES) + stored
