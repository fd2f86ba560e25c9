"""The chain finds a changed byte, a dropped fact and a swapped pair, and survives compaction and erasure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.builders import delta, finished, said
from paddock.rules.chain import ERASED, Head, StoredFact, seal, verify
from paddock.rules.values import replace


def a_log() -> list[StoredFact]:
    facts, _ = seal(Head(), [said("one"), said("two"), delta("th"), delta("ree"), finished("three", 3), said("four")])
    return facts


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
    first, head = seal(Head(), [said("one"), delta("x")])
    second, end = seal(head, [said("two")])
    assert seal(Head(), [said("one"), delta("x"), said("two")]) == ([*first, *second], end)
