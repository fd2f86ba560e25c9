"""A group of works as one statement: the fences first, then the rows of those that passed, table by table.

One statement is one round trip and one transaction, so it is there whole or not at all. Works of one session that
follow each other are one chain. A work that does not fit into the group waits for the next.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import StaleOwnerError
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow, ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AgentRow, AuditRow, InboxRow, Row, RunRow, SessionRow, StateRow, TranscriptRow
from paddock.storage.compaction import is_replaced
from paddock.storage.postgres.agents import AGENTS
from paddock.storage.postgres.approvals import ASKED, STEPS
from paddock.storage.postgres.audit import DECISIONS
from paddock.storage.postgres.calls import TOOL_CALLS, USAGE, called_again
from paddock.storage.postgres.conversation import ITEMS, ORDERS
from paddock.storage.postgres.fences import NO_BATCH, Chain, fence_arrays, fence_sql
from paddock.storage.postgres.keys import KEYS
from paddock.storage.postgres.log import COMPACTED, FACTS
from paddock.storage.postgres.runs import RUNS, written_again
from paddock.storage.postgres.state import STATE
from paddock.storage.postgres.tables import Table, Values

MAX_GROUP = 256
MAX_GROUP_BYTES = 4 * 1024 * 1024
"""Payloads in one statement; a single work may be larger."""

TABLES: Mapping[type, Table] = {
    TranscriptRow: ITEMS,
    InboxRow: ORDERS,
    AuditRow: DECISIONS,
    StateRow: STATE,
    ApiKeyRow: KEYS,
    RunRow: RUNS,
    ToolCallRow: TOOL_CALLS,
    ModelUsageRow: USAGE,
    ApprovalRow: ASKED,
    ApprovalStepRow: STEPS,
    AgentRow: AGENTS,
}
PLAIN = frozenset({*TABLES, SessionRow})
"""Rows that need nothing but their place in the statement."""
Again = Callable[[Any, Any], Any]
MERGED: Mapping[type, tuple[Callable[[Any], str], Again]] = {
    RunRow: (attrgetter("run_id"), written_again),
    ToolCallRow: (attrgetter("call_id"), called_again),
}
"""Rows that are written again when they change: one statement may write each of them only once."""


@dataclass(slots=True, eq=False)
class Piece:
    """Something to write. `batch` is None for rows that belong to no session's log."""

    batch: Batch | None
    rows: Sequence[Row | ApiKeyRow]
    error: Exception | None = None

    @property
    def is_empty(self) -> bool:
        return self.batch is None and not self.rows


@dataclass(slots=True, eq=False, kw_only=True)
class Work(Piece):
    """Something to write, and who waits for it."""

    done: asyncio.Future[None]


def is_guarded(row: object) -> bool:
    """Whether a row's order or condition matters, so that it has no place in a group's one statement."""
    return type(row) not in PLAIN or (type(row) is StateRow and row.expected is not None)


def take_group(queue: deque[Work]) -> list[Work]:
    """As many of the waiting works, in order, as fit into one statement."""
    group, last, size = list[Work](), dict[str, Chain](), 0
    while queue and len(group) < MAX_GROUP and size < MAX_GROUP_BYTES:
        if (batch := queue[0].batch) is not None:
            known = last.get(batch.session_id)
            if known is None:
                last[batch.session_id] = Chain(0, batch)
            elif known.takes(batch):
                known.batches.append(batch)
            else:
                break  # of the same session and not after its last: its turn comes when that one's outcome is known
            size += sum(len(fact.payload) for fact in batch.facts)
        group.append(queue.popleft())
    return group


class Group:
    """Pieces on their way into one statement. Guarded rows have no place in it and are left out."""

    def __init__(self, works: Sequence[Piece], host: int | None) -> None:
        self._works = works
        self._host = host
        self._chains: dict[str, Chain] = {}
        self._places: list[int] = []
        self._facts: dict[int, list[Any]] = {}
        self._merged: dict[tuple[int, type, str], Any] = {}
        self._rows: dict[Table, list[Values]] = {}
        for work in works:
            self._add(work)
        self._rows |= {FACTS: self._fact_rows()} if self._facts else {}
        for (place, kind, _), row in self._merged.items():
            self._put(TABLES[kind], place, row)

    @property
    def is_empty(self) -> bool:
        return not self._chains and not self._rows

    def statement(self) -> tuple[str, Sequence[Sequence[Any]]]:
        """The statement and its values. It answers with the places of the chains that passed."""
        arrays, advancing, opening = fence_arrays(list(self._chains.values()), self._host)
        tables = tuple(table for table in _ORDER if self._rows.get(table))
        values = [array for table in tables for array in table.arrays(self._rows[table])]
        return _statement(tables, advancing, opening), [*arrays, *values]

    def settle(self, passed: frozenset[int]) -> None:
        """Mark those whose fence did not hold."""
        for work, place in zip(self._works, self._places, strict=True):
            if work.batch is not None and place not in passed:
                work.error = StaleOwnerError(f"session {work.batch.session_id} has another owner")

    def _add(self, work: Piece) -> None:
        place = NO_BATCH if work.batch is None else self._chain(work.batch)
        self._places.append(place)
        for row in work.rows:
            kind = type(row)
            if kind in MERGED:
                self._merge(kind, place, row)
            elif kind is not SessionRow and not is_guarded(row):
                self._put(TABLES[kind], place, row)

    def _put(self, table: Table, place: int, row: object) -> None:
        self._rows.setdefault(table, []).append((place, *table.read(row)))

    def _merge(self, kind: type, place: int, row: object) -> None:
        key_of, again = MERGED[kind]
        key = (place, kind, key_of(row))
        known = self._merged.get(key)
        self._merged[key] = row if known is None else again(known, row)

    def _chain(self, batch: Batch) -> int:
        chain = self._chains.get(batch.session_id)
        if chain is None:
            chain = self._chains[batch.session_id] = Chain(len(self._chains), batch)
        else:
            chain.batches.append(batch)
        facts = self._facts.setdefault(chain.place, [])
        facts += batch.facts
        if batch.compacted:  # what is replaced within the group is never written
            facts[:] = [fact for fact in facts if not (fact.is_delta and is_replaced(fact, batch.compacted))]
            self._rows.setdefault(COMPACTED, []).extend((chain.place, *one) for one in batch.compacted)
        return chain.place

    def _fact_rows(self) -> list[Values]:
        return [(place, *FACTS.read(fact)) for place, facts in self._facts.items() for fact in facts]


_ORDER = (
    *(FACTS, COMPACTED, ITEMS, ORDERS, RUNS, TOOL_CALLS),
    *(USAGE, ASKED, STEPS, DECISIONS, STATE, AGENTS, KEYS),
)


@cache
def _statement(tables: tuple[Table, ...], advancing: bool, opening: bool) -> str:
    start, free = fence_sql(advancing=advancing, opening=opening)
    parts = [start]
    for table in tables:
        parts.append(table.sql(free))
        free += 1 + len(table.types)
    return "with " + ",\n".join(parts) + "\nselect b from passed"
