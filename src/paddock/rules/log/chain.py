"""Numbers and digests of recorded facts: how a session's log proves that nothing in it changed.

Durable facts form a chain, `digest = H(previous, header, H(metadata), H(payload))`, so either can be erased and the
chain still verifies; a log whose beginning was trimmed verifies from its anchor on. Both begin with a salt of their own
that is erased with them, so that a digest which outlives its words cannot be used to guess them. Deltas carry a
checksum of their own, which goes when they are compacted away, and are no link. The chain finds damage, not an
attacker. Pure: no clock, no storage, no chance.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.session.evolve import fold
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.state import SessionState
from paddock.rules.values import Value, replace

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
NO_BYTES = b""
SALTED = b"\x01"
"""How salted bytes begin. The salt follows, then the JSON."""
SALT_BYTES = 16
SALTS_BYTES = 2 * SALT_BYTES
"""Chance that one fact needs: a salt for its payload, one for its metadata."""
DIGEST_BYTES = 32
_BARE = len(SALTED) + SALT_BYTES
ERASED = b"\x00erased:"
"""How erased bytes begin. The digest they had follows, so that the chain still verifies, and then what is left of
them: the shape without the words, so that readers need not know of erasure. What is left is not part of the chain."""
_LEFT = len(ERASED) + DIGEST_BYTES
DELTA = "AGENT_OUTPUT:CHUNK"
"""A piece of a message still being written, as the log names it."""
ANCHOR = "EVENT:LOG_TRIMMED"
"""The fact that says up to which number a log was trimmed, and the digest of the last fact that went."""

SUPPLIED = "CLIENT_SUPPLIED"
"""The event under which something is on record that a client brought along. The host adds it; no session decides it."""


class Head(Value, frozen=True):
    """The end of a session's log: the last number given, and the digest of the last durable fact."""

    seq: int = 0
    digest: bytes = NO_BYTES


class StoredFact(Value, frozen=True):
    """A fact with its number, its bytes and its digest, as the log holds it and readers get it.

    `position` is where readers meet it: its own number, or the number of the first delta it replaced.
    """

    seq: int
    position: int
    kind: str
    target: str
    sender: str
    target_id: str | None
    turn_id: str | None
    trace_id: str | None
    tx_id: str | None
    time: float
    payload: bytes
    metadata: bytes
    digest: bytes
    payload_digest: bytes

    @property
    def is_delta(self) -> bool:
        return self.kind == DELTA

    def read_payload(self) -> Any:
        payload = bare(self.payload)
        return _decode(payload) if payload else None

    def read_metadata(self) -> dict[str, Any]:
        metadata = bare(self.metadata)
        return _decode(metadata) if metadata else {}


def bare(stored: bytes) -> bytes:
    """Return the JSON in stored bytes: without their salt, or what is left of erased ones."""
    if stored.startswith(SALTED):
        return stored[_BARE:]
    return stored[_LEFT:] if stored.startswith(ERASED) else stored


def seal(head: Head, facts: Sequence[Fact], chance: bytes) -> tuple[list[StoredFact], Head]:
    """Give each fact its number, bytes and digest; return them with the new end of the log.

    `chance` is random bytes that nobody else gets, `SALTS_BYTES` for each fact.
    """
    assert len(chance) == SALTS_BYTES * len(facts)
    sealed: list[StoredFact] = []
    seq, link = head.seq, head.digest
    for place, fact in enumerate(facts):
        seq += 1
        stored = _store(seq, link, fact, chance[place * SALTS_BYTES : (place + 1) * SALTS_BYTES])
        if stored.kind != DELTA:
            link = stored.digest
        sealed.append(stored)
    return sealed, Head(seq, link)


_DIGEST_OF_NOTHING = sha256(NO_BYTES).digest()


def digest_of(payload: bytes) -> bytes:
    """The digest of bytes as stored: computed, or left behind by those that were erased."""
    if not payload:
        return _DIGEST_OF_NOTHING
    return payload[len(ERASED) : _LEFT] if payload.startswith(ERASED) else sha256(payload).digest()


def erased(original: bytes, left: Any) -> bytes:
    """Encode what replaces erased bytes: their digest, and the remaining fields."""
    return ERASED + digest_of(original) + _encode(left)


def _store(seq: int, link: bytes, fact: Fact, salts: bytes) -> StoredFact:
    kind, payload, metadata, position = fact.kind, NO_BYTES, NO_BYTES, seq
    payload_digest, is_delta = _DIGEST_OF_NOTHING, kind == DELTA
    if fact.metadata:
        metadata = _encode(fact.metadata) if is_delta else SALTED + salts[SALT_BYTES:] + _encode(fact.metadata)
        position = fact.metadata.get("first_seq", seq)
    if fact.payload is not None:
        payload = _encode(fact.payload) if is_delta else SALTED + salts[:SALT_BYTES] + _encode(fact.payload)
        payload_digest = sha256(payload).digest()
    about = (fact.target, fact.sender, fact.target_id, fact.turn_id, fact.trace_id, fact.tx_id, fact.time)
    digest = payload_digest if is_delta else _link(link, (seq, kind, *about), metadata, payload_digest)
    return StoredFact(seq, position, kind, *about, payload, metadata, digest, payload_digest)


def _link(previous: bytes, header: tuple[object, ...], metadata: bytes, payload_digest: bytes) -> bytes:
    about = digest_of(metadata) if metadata else NO_BYTES
    return sha256(previous + _encode(header) + about + payload_digest).digest()


class Damage(Value, frozen=True):
    """A place where the log is not what was written."""

    seq: int
    what: str


def verify(facts: Iterable[StoredFact], *, start: bytes = NO_BYTES) -> Damage | None:
    """Walk the chain in order of number; the first damage found, or None."""
    link = start
    for fact in facts:
        if digest_of(fact.payload) != fact.payload_digest:
            return Damage(fact.seq, "payload differs from its digest")
        if fact.is_delta:
            if fact.digest != fact.payload_digest:
                return Damage(fact.seq, "delta differs from its checksum")
            continue
        if not follows(fact, link):
            return Damage(fact.seq, "digest does not follow from the fact before it")
        link = fact.digest
    return None


def follows(fact: StoredFact, previous: bytes) -> bool:
    """Return true if a durable fact was written right after the fact with this digest."""
    return link_of(fact, previous) == fact.digest


def link_of(fact: StoredFact, previous: bytes) -> bytes:
    """Return the digest of a durable fact that stands after the one of this digest."""
    about = (fact.target, fact.sender, fact.target_id, fact.turn_id, fact.trace_id, fact.tx_id, fact.time)
    return _link(previous, (fact.seq, fact.kind, *about), fact.metadata, fact.payload_digest)


def word_bytes(facts: Iterable[StoredFact]) -> int:
    """Count the bytes that facts take from a quota. Deltas are free: the finished message replaces them."""
    return sum(len(fact.payload) for fact in facts if fact.kind != DELTA)


ERASED_DIGEST = NO_BYTES
"""Stands where a digest of erased words stood."""


def salted(digest: bytes, salt: bytes) -> bytes:
    """Return what is stored of a digest. `salt` is `SALT_BYTES` of chance that nothing else uses."""
    return salt + sha256(salt + digest).digest()


def is_salted(kept: bytes, digest: bytes) -> bool:
    return kept != ERASED_DIGEST and hmac.compare_digest(kept, salted(digest, kept[:SALT_BYTES]))


ABSENT = ""
"""The version of a value that does not exist."""


def version_of(value: bytes | None) -> str:
    return ABSENT if value is None else sha256(value).hexdigest()[:24]


def check_version(expected: str | None, value: bytes | None, key: str) -> None:
    """Raise CONFLICT when a value is not the one its writer read; None expects nothing."""
    if expected is None or expected == version_of(value):
        return
    text = f"the value of {key[:64]!r} has changed since it was read; read it again and decide anew"
    raise HostError(ErrorCode.CONFLICT, text, retryable=True, details={"version": version_of(value)})


def restore(state: SessionState, facts: Iterable[StoredFact]) -> SessionState:
    """The state after these facts, which are in order of number."""
    return fold(state, map(recalled, facts))


def recalled(stored: StoredFact) -> Fact:
    event, _, subtype = stored.kind.partition(":")
    return Fact(
        Event(event),
        subtype,
        Target(stored.target),
        stored.sender,
        stored.target_id,
        stored.turn_id,
        stored.trace_id,
        stored.tx_id,
        stored.read_payload(),
        stored.read_metadata(),
        stored.time,
    )


# --- logs written before digests were salted ------------------------------------------------------------------------


Chance = Callable[[int], bytes]


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
