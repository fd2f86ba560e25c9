"""What one transaction writes for a group of works: each fence first, then the rows, table by table.

A batch whose fence does not hold writes nothing and disturbs nobody. Beginning and committing are the writer's.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import apsw
import msgspec
from msgspec.structs import astuple

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import HostError, StaleOwnerError, cannot_be_stored, exists_already
from paddock.rules.rows.rows import AgentRow, InboxRow, Row, StateRow, TranscriptRow
from paddock.storage.compaction import without_replaced
from paddock.storage.sqlite import approvals
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.fences import pass_fences
from paddock.storage.sqlite.kept import WRITES, set_if_expected
from paddock.storage.sqlite.rows import (
    COMPACT,
    DROP_AGENT,
    DROP_STATE,
    FACTS,
    ITEMS,
    ORDERS,
    SET_AGENT,
    SET_STATE,
    TABLES,
    Table,
    Values,
    chunks,
)

WRITTEN: Mapping[type, Table] = {**TABLES, **approvals.TABLES}
"""Rows that are written as they are; the others need their session's number or are joined first."""
GUILTY = (HostError, apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, ValueError, TypeError, OverflowError)
"""Errors that one work brings on itself; anything else is the disk's and fails the whole group."""


class Work(msgspec.Struct, eq=False):
    """Something to write, and who waits for it. `batch` is None for rows that belong to no session's log."""

    batch: Batch | None
    rows: Sequence[Row | ApiKeyRow]
    done: asyncio.Future[None]
    error: Exception | None = None
    deed: Callable[[Cursor], None] | None = None
    """What a table of its own needs beyond plain rows: done after them, in the same transaction."""
    fold: bool = False
    """Empty the write-ahead log after this commit."""


@dataclass(slots=True)
class _Pile:
    """Values collected from a whole group, so each table is written in one go."""

    facts: list[Values] = field(default_factory=list[Values])
    items: list[Values] = field(default_factory=list[Values])
    orders: list[Values] = field(default_factory=list[Values])
    compacted: list[Values] = field(default_factory=list[Values])
    state: dict[tuple[str, str], StateRow] = field(default_factory=dict[tuple[str, str], StateRow])
    agents: list[AgentRow] = field(default_factory=list[AgentRow])
    others: defaultdict[type, list[Values]] = field(default_factory=lambda: defaultdict(list))


def write_group(cursor: Cursor, works: Sequence[Work], owners: Mapping[str, int]) -> None:
    """Write all works whose fence holds; mark the others stale. Raises one of GUILTY when a work cannot be written."""
    pile = _Pile()
    numbers = iter(pass_fences(cursor, [work.batch for work in works if work.batch], owners))
    for work in works:
        session_no = next(numbers) if work.batch else 0
        if session_no is None:
            work.error = StaleOwnerError(f"session {work.batch and work.batch.session_id} has another owner")
        else:
            ordered = _collect(pile, work, session_no)
            if ordered:  # after all that was collected before them
                _write(cursor, pile)
                pile = _Pile()
                _write_in_order(cursor, ordered)
    _write(cursor, pile)
    for work in works:
        if work.deed is not None:
            work.deed(cursor)


def write_apart(connection: Connection, works: Sequence[Work], owners: Mapping[str, int]) -> None:
    """The same, one work at a time within the transaction, so that only the guilty fail."""
    for work in works:
        work.error = None
        try:
            with connection:  # a savepoint
                write_group(connection.cursor(), [work], owners)
        except HostError as error:
            work.error = error
        except apsw.ConstraintError as error:
            work.error = exists_already(str(error))
        except GUILTY as error:
            work.error = cannot_be_stored(error)


def _collect(pile: _Pile, work: Work, session_no: int) -> list[Row | ApiKeyRow]:
    """Put a work's rows on the pile; those whose order or condition matters are given back."""
    ordered: list[Row | ApiKeyRow] = []
    if batch := work.batch:
        for fact in without_replaced(batch.facts, batch.compacted):
            pile.facts.append((session_no, *FACTS.values(fact)))
        pile.compacted += [(session_no, first, last, turn_id) for turn_id, first, last in batch.compacted]
    for row in work.rows:
        kind = type(row)
        if table := WRITTEN.get(kind):
            pile.others[kind].append(table.values(row))
        elif kind is TranscriptRow:
            pile.items.append((session_no, *ITEMS.values(row)))
        elif kind is InboxRow:
            pile.orders.append((session_no, *ORDERS.values(row)))
        elif isinstance(row, StateRow) and row.expected is None:
            pile.state[row.scope_key, row.key] = row  # the last word on a key is all that counts
        elif isinstance(row, AgentRow):
            pile.agents.append(row)
        elif kind in WRITES or isinstance(row, StateRow):
            ordered.append(row)
    return ordered


def _write_in_order(cursor: Cursor, rows: Sequence[Row | ApiKeyRow]) -> None:
    for row in rows:
        WRITES.get(type(row), set_if_expected)(cursor, row)


def _write(cursor: Cursor, pile: _Pile) -> None:
    _insert(cursor, FACTS, pile.facts)
    if pile.compacted:
        cursor.executemany(COMPACT, pile.compacted)  # after the facts: the deltas may be of this very group
    _insert(cursor, ITEMS, pile.items)
    _insert(cursor, ORDERS, pile.orders)
    for kind, rows in pile.others.items():
        _insert(cursor, WRITTEN[kind], rows)
    for row in pile.state.values():
        if row.value is None:
            cursor.execute(DROP_STATE, (row.scope_key, row.key))
        else:
            cursor.execute(SET_STATE, (row.scope_key, row.key, row.value, row.updated_at))
    for agent in pile.agents:
        if agent.body:
            cursor.execute(SET_AGENT, astuple(agent))
        else:
            cursor.execute(DROP_AGENT, (agent.workspace_id, agent.agent_id))


def _insert(cursor: Cursor, table: Table, rows: Sequence[Values]) -> None:
    for chunk in chunks(rows):
        cursor.execute(table.insert(len(chunk)), tuple(chain.from_iterable(chunk)))
