"""Which deltas a finished message stands for. Pure; every storage plug asks the same question."""

from collections.abc import Sequence

from paddock.rules.log.chain import StoredFact

Ranges = Sequence[tuple[str, int, int]]
"""(turn_id, first, last) of replaced deltas, both ends included."""


def without_replaced(facts: Sequence[StoredFact], compacted: Ranges) -> Sequence[StoredFact]:
    """What of a batch is worth writing: deltas replaced by a message of the very same batch are not."""
    if not compacted:
        return facts
    return [fact for fact in facts if not (fact.is_delta and is_replaced(fact, compacted))]


def is_replaced(delta: StoredFact, compacted: Ranges) -> bool:
    return any(delta.turn_id == turn_id and first <= delta.seq <= last for turn_id, first, last in compacted)
