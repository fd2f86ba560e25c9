"""The chain finds a changed byte, a dropped fact and a swapped pair, and survives compaction and erasure."""

from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.builders import delta, finished, said
from paddock.host.ids import random_bytes
from paddock.rules.log.chain import (
    ERASED,
    SALTS_BYTES,
    Head,
    Resalting,
    StoredFact,
    bare,
    digest_of,
    erased,
    link_of,
    seal,
    verify,
)
from paddock.rules.values import replace


def a_log() -> list[StoredFact]:
    facts = [said("one"), said("two"), delta("th"), delta("ree"), finished("three", 3), said("four")]
    return seal(Head(), facts, random_bytes(SALTS_BYTES * len(facts)))[0]


def test_an_untouched_log_verifies() -> None:
    assert verify(a_log()) is None


@pytest.mark.parametrize("column", ["kind", "target", "sender", "target_id", "turn_id", "trace_id", "tx_id"])
def test_a_changed_word_of_a_header_is_found(column: str) -> None:
    log = a_log()
    log[1] = replace(log[1], **{column: "changed"})
    found = verify(log)
    assert found is not None
    assert found.seq == 2


@given(place=st.sampled_from([0, 1, 2, 3, 4, 5]), index=st.integers(0, 9), bit=st.integers(0, 7))
def test_a_flipped_bit_of_a_payload_is_found_where_it_is(place: int, index: int, bit: int) -> None:
    log = a_log()
    payload = bytearray(log[place].payload)
    payload[index] ^= 1 << bit
    log[place] = replace(log[place], payload=bytes(payload))
    found = verify(log)
    assert found is not None
    assert found.seq == place + 1


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_dropped_durable_fact_is_found(place: int) -> None:
    log = a_log()
    del log[place]
    assert verify(log) is not None


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 4), (0, 5)])
def test_a_swapped_pair_is_found(one: int, other: int) -> None:
    log = a_log()
    log[one], log[other] = log[other], log[one]
    assert verify(log) is not None


def test_compaction_keeps_the_chain_whole() -> None:
    assert verify(fact for fact in a_log() if not fact.is_delta) is None


def test_an_erased_payload_keeps_the_chain_whole() -> None:
    log = a_log()
    log[1] = replace(log[1], payload=ERASED + log[1].payload_digest)
    assert verify(log) is None
    assert log[1].read_payload() is None


def test_a_log_sealed_in_parts_is_the_log_sealed_at_once() -> None:
    salts = random_bytes(SALTS_BYTES * 3)
    first, head = seal(Head(), [said("one"), delta("x")], salts[: SALTS_BYTES * 2])
    second, end = seal(head, [said("two")], salts[SALTS_BYTES * 2 :])
    assert seal(Head(), [said("one"), delta("x"), said("two")], salts) == ([*first, *second], end)


def test_equal_words_have_different_digests_and_the_salt_goes_with_the_words() -> None:
    one, other = (seal(Head(), [said("4711")], random_bytes(SALTS_BYTES))[0][0] for _ in range(2))
    assert one.read_payload() == other.read_payload() == {"text": "4711"}
    assert one.payload_digest != other.payload_digest
    left = erased(one.payload, {"text": ""})
    assert one.payload[1:17] not in left
    guesses = [{"text": f"{number:04d}"} for number in range(10_000)]
    assert not any(sha256(msgspec.json.encode(guess)).digest() in left for guess in guesses)


# --- logs from before there were salts --------------------------------------------------------------------------------


def an_old_log() -> tuple[list[StoredFact], Head]:
    """A log as it was written before: nothing is salted, and the second fact is erased."""
    facts: list[StoredFact] = []
    link = b""
    for fact in a_log():
        plain = replace(fact, payload=bare(fact.payload), metadata=bare(fact.metadata))
        plain = replace(plain, payload_digest=digest_of(plain.payload))
        plain = replace(plain, digest=plain.payload_digest if fact.is_delta else link_of(plain, link))
        link = link if fact.is_delta else plain.digest
        facts.append(plain)
    facts[1] = replace(facts[1], payload=erased(facts[1].payload, {"text": ""}))
    return facts, Head(facts[-1].seq, link)


def resalted(facts: list[StoredFact], head: Head) -> tuple[list[StoredFact], Head]:
    work = Resalting(head, Head(), random_bytes)
    new = {fact.seq: fact for fact in work.facts(facts)}
    return [new.get(fact.seq, fact) for fact in facts], work.head


def test_an_old_log_is_salted_and_verifies_and_says_what_it_said() -> None:
    old, head = an_old_log()
    assert verify(old) is None
    new, end = resalted(old, head)
    assert verify(new) is None
    assert end == Head(head.seq, new[-1].digest)
    assert [fact.read_payload() for fact in new] == [fact.read_payload() for fact in old]
    assert [fact.read_metadata() for fact in new] == [fact.read_metadata() for fact in old]
    kept = b"".join(fact.payload + fact.metadata + fact.digest for fact in new if not fact.is_delta)
    assert not any(fact.digest in kept or digest_of(fact.payload) in kept for fact in old)


@pytest.mark.parametrize("place", [0, 4, 5])
def test_an_old_log_that_was_damaged_stays_so_where_it_was(place: int) -> None:
    old, head = an_old_log()
    old[place] = replace(old[place], payload=b'{"text":"forged"}', payload_digest=digest_of(b'{"text":"forged"}'))
    before, after = verify(old), verify(resalted(old, head)[0])
    assert before is not None
    assert after is not None
    assert after.seq == before.seq


def test_an_old_log_whose_end_is_missing_still_ends_before_its_head() -> None:
    old, head = an_old_log()
    new, end = resalted(old[:-1], head)
    assert new[-1].digest != end.digest
