"""The compaction checkpoint: a summary that stands for the beginning of a conversation, kept in its state.

Each builds on the one before, so no message is read twice for it. One that does not fit (made by other code, or for a
conversation that has been cut back since) is ignored: the messages themselves are always there. How a checkpoint is
stored is decided here; when one is made is decided in `memory.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

KEY = "runner.compaction.checkpoint"
VERSION = 1
MAX_SUMMARY_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    summary: str
    covers_until: str
    """Cursor of the last item it stands for."""
    covers_seq: int
    generation: int = 1
    """How many summaries are in it: each was made from the one before and what followed."""

    def to_state(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "summary": self.summary,
            "covers_until": self.covers_until,
            "covers_seq": self.covers_seq,
            "incremental": self.generation > 1,
            "generation": self.generation,
        }


def read_checkpoint(value: object, *, before_seq: int | None) -> Checkpoint | None:
    """The checkpoint in a state value, or None when there is none that fits."""
    if not isinstance(value, dict):
        return None
    said = cast("Mapping[str, Any]", value)
    summary, cursor, seq = said.get("summary"), said.get("covers_until"), said.get("covers_seq")
    if said.get("version") != VERSION or not isinstance(summary, str) or not isinstance(cursor, str):
        return None
    if not summary or len(summary) > MAX_SUMMARY_CHARS or type(seq) is not int or seq < 0:
        return None
    if before_seq is not None and seq >= before_seq:
        return None  # the conversation was cut back behind it
    generation = said.get("generation")
    return Checkpoint(summary, cursor, seq, generation if type(generation) is int else 1)
