"""What one transaction writes for a group of works: each fence first, then the rows, table by table.

A batch whose fence does not hold writes nothing and disturbs nobody. Beginning and committing are the writer's.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import apsw

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError
from paddock.rules.rows import Row, SessionRow, StateRow, TranscriptRow
from paddock.storage.compaction import without_replaced
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.rows import (
    COMPACT,
    DROP_STATE,
    FACTS,
    FENCE,
    FENCE_AND_SNAPSHOT,
    ITEMS,
    OPEN_SESSION,
    SET_STATE,
    TABLES,
    Table,
    Values,
)

GUILTY = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, ValueError, TypeError, OverflowError)
"""Errors that one work brings on itself; anything else is the disk's and fails the whole group."""

MAX_ROWS = 64


@dataclass(slots=True, eq=False)
class Work:
    """Something to write, and who waits for it. `batch` is None for rows that belong to no session's log."""

    batch: Batch | None
    rows: Sequence[Row | ApiKeyRow]
    done: asyncio.Future[None]
    error: Exception | None = None


@dataclass(slots=True)
class _Pile:
    """Values collected from a whole group, so each table is written in one go."""

    facts: list[Values] = field(default_factory=list[Values])
    items: list[Values] = field(default_factory=list[Values])
    compacted: list[Values] = field(default_factory=list[Values])
    state: dict[tuple[str, str], StateRow] = field(default_factory=dict[tuple[str, str], StateRow])
    others: defaultdict[type, list[Values]] = field(default_factory=lambda: defaultdict(list))


def write_group(cursor: Cursor, works: Sequence[Work], owners: Mapping[str, int]) -> None:
    """Write all works whose fence holds; mark the others stale. Raises one of GUILTY when a work cannot be written."""
    pile = _Pile()
    for work in works:
        session_no = _pass_fence(cursor, work.batch, owners) if work.batch else 0
        if session_no is None:
            work.error = StaleOwnerError(f"session {work.batch and work.batch.session_id} has another owner")
        else:
            _collect(pile, work, session_no)
    _write(cursor, pile)


def write_apart(connection: Connection, works: Sequence[Work], owners: Mapping[str, int]) -> None:
    """The same, one work at a time within the transaction, so that only the guilty fail."""
    for work in works:
        work.error = None
        try:
            with connection:  # a savepoint
                write_group(connection.cursor(), [work], owners)
        except apsw.ConstraintError as error:
            work.error = HostError(ErrorCode.CONFLICT, f"this exists already: {error}")
        except GUILTY as error:
            work.error = HostError(ErrorCode.INVALID_ARGUMENT, f"this cannot be stored: {error}")


def _pass_fence(cursor: Cursor, batch: Batch, owners: Mapping[str, int]) -> int | None:
    """The session's number when this batch may be written: its epoch is not outdated and it goes on from the head."""
    opened = next((row for row in batch.rows if type(row) is SessionRow), None)
    if owners.get(batch.session_id, 0) > batch.epoch or (opened is not None and batch.before.seq):
        return None
    sql, values = _advance(batch) if opened is None else _open_session(batch, opened)
    found = cursor.execute(sql, values).fetchone()
    return None if found is None else found[0]


def _advance(batch: Batch) -> tuple[str, Values]:
    after, time = batch.after, batch.facts[-1].time if batch.facts else None
    place = (batch.epoch, after.seq, after.digest, _count_items(batch), time)
    fence = (batch.session_id, batch.epoch, batch.before.seq)
    if batch.snapshot:
        return FENCE_AND_SNAPSHOT, (*place, after.seq, batch.snapshot, *fence)
    return FENCE, (*place, *fence)


def _open_session(batch: Batch, row: SessionRow) -> tuple[str, Values]:
    who = (row.session_id, row.workspace_id, row.user_id, row.created_at, row.created_at)
    place = (batch.epoch, batch.after.seq, batch.after.digest, _count_items(batch))
    return OPEN_SESSION, (*who, *place, batch.after.seq if batch.snapshot else 0, batch.snapshot)


def _count_items(batch: Batch) -> int:
    return sum(type(row) is TranscriptRow for row in batch.rows)


def _collect(pile: _Pile, work: Work, session_no: int) -> None:
    if batch := work.batch:
        for fact in without_replaced(batch.facts, batch.compacted):
            pile.facts.append((session_no, *FACTS.values(fact)))
        pile.compacted += [(session_no, first, last, turn_id) for turn_id, first, last in batch.compacted]
    for row in work.rows:
        kind = type(row)
        if table := TABLES.get(kind):
            pile.others[kind].append(table.values(row))
        elif kind is TranscriptRow:
            pile.items.append((session_no, *ITEMS.values(row)))
        elif isinstance(row, StateRow):
            pile.state[row.scope_key, row.key] = row  # the last word on a key is all that counts


def _write(cursor: Cursor, pile: _Pile) -> None:
    _insert(cursor, FACTS, pile.facts)
    if pile.compacted:
        cursor.executemany(COMPACT, pile.compacted)  # after the facts: the deltas may be of this very group
    _insert(cursor, ITEMS, pile.items)
    for kind, rows in pile.others.items():
        _insert(cursor, TABLES[kind], rows)
    for row in pile.state.values():
        if row.value is None:
            cursor.execute(DROP_STATE, (row.scope_key, row.key))
        else:
            cursor.execute(SET_STATE, (row.scope_key, row.key, row.value, row.updated_at))


def _insert(cursor: Cursor, table: Table, rows: Sequence[Values]) -> None:
    """Write all rows in few statements: sizes are powers of two, so the prepared ones are used again."""
    start = 0
    while left := len(rows) - start:
        count = min(MAX_ROWS, 1 << (left.bit_length() - 1))
        cursor.execute(table.insert(count), tuple(chain.from_iterable(rows[start : start + count])))
        start += count
