"""The tables of one session made anew from its log, and how they differ from what is stored. Pure.

Runs and transcript follow from facts alone, so they can be compared with the log and put right by it. State does not:
runners also write it by host calls, which leave an audit row and no fact.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from paddock.rules.log.chain import StoredFact
from paddock.rules.rows.projection import RunProjection
from paddock.rules.rows.rows import RunRow, SessionRow, TranscriptRow
from paddock.rules.session.recovery import recalled
from paddock.rules.values import Value

Key = TypeVar("Key")
Row = TypeVar("Row")


class Tables(Value, frozen=True):
    """The rows of one session in the tables beside its log."""

    items: Mapping[int, TranscriptRow]
    runs: Mapping[str, RunRow]


class Difference(Value, frozen=True):
    """A row that is not what the log says. `stored` None: it is missing; `told` None: the log knows nothing of it."""

    session_id: str
    stored: TranscriptRow | RunRow | None
    told: TranscriptRow | RunRow | None

    @property
    def sentence(self) -> str:
        row = self.told or self.stored
        what = f"run {row.run_id}" if isinstance(row, RunRow) else f"item {row.seq if row else 0}"
        how = "is missing" if self.stored is None else "is not in the log" if self.told is None else "differs"
        return f"conversation {self.session_id}: {what} {how}"


def tables_of(session: SessionRow, facts: Iterable[StoredFact]) -> Tables:
    """The rows that follow from these facts, which are in order of number; deltas lead to none."""
    projection = RunProjection(session, {})
    items: dict[int, TranscriptRow] = {}
    runs: dict[str, RunRow] = {}
    for stored in facts:
        if stored.is_delta:
            continue
        for row in projection.rows(stored.seq, recalled(stored)):
            if isinstance(row, TranscriptRow):
                items[row.seq] = row
            elif isinstance(row, RunRow):
                runs[row.run_id] = row
    return Tables(items, runs)


def differences(session_id: str, stored: Tables, told: Tables) -> list[Difference]:
    """Compare stored rows with those made from the log, byte for byte."""
    return [
        *(Difference(session_id, *pair) for pair in _unequal(stored.items, told.items)),
        *(Difference(session_id, *pair) for pair in _unequal(stored.runs, told.runs)),
    ]


def _unequal(stored: Mapping[Key, Row], told: Mapping[Key, Row]) -> Iterable[tuple[Row | None, Row | None]]:
    for key in dict.fromkeys((*stored, *told)):
        if stored.get(key) != told.get(key):
            yield stored.get(key), told.get(key)
