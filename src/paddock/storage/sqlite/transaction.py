"""One transaction for a group of works: each fence first, then the rows, table by table.

A batch whose fence does not hold writes nothing and disturbs nobody. Beginning and committing are the writer's.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

import apsw
import msgspec

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import HostError, StaleOwnerError, cannot_be_stored, exists_already
from paddock.rules.log.chain import DELTA
from paddock.rules.rows.rows import Row
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.engine import run
from paddock.storage.sqlite.fences import chunks, pass_fences
from paddock.storage.tables import TABLES, WRITES, is_guarded
from paddock.storage.tables.log import FACTS, without_replaced
from paddock.storage.tables.statements import Values
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the names are our own, values are always bound
GUILTY = (HostError, apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, ValueError, TypeError, OverflowError)
"""Errors that one work brings on itself; anything else is the disk's and fails the whole group."""
_COMPACT = f"""
delete from facts where session_no = ? and position between ? and ? and turn_id = ? and kind = '{DELTA}'"""


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
    compacted: list[Values] = field(default_factory=list[Values])
    rows: defaultdict[Table, list[Values]] = field(default_factory=lambda: defaultdict(list))
    last: dict[Values, Any] = field(default_factory=dict[Values, Any])
    """The last word on each key of a table is all that counts."""


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
                for row in ordered:
                    run(cursor, WRITES[type(row)](row))
    _write(cursor, pile)
    for work in works:
        if work.deed is not None:
            work.deed(cursor)


def write_apart(connection: Connection, works: Sequence[Work], owners: Mapping[str, int]) -> None:
    """Write the works one at a time within the transaction, so that only the guilty fail."""
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
            pile.facts.append((session_no, *FACTS.read(fact)))
        pile.compacted += [(session_no, first, last, turn_id) for turn_id, first, last in batch.compacted]
    for row in work.rows:
        table = TABLES.get(type(row))
        if table is None or table.gone is not None:
            if is_guarded(row):
                ordered.append(row)
            elif table is not None:
                pile.last[(table, *table.key_of(row))] = row
        elif table.of_session:
            pile.rows[table].append((session_no, *table.read(row)))
        elif table.looked_up is not None:
            pile.rows[table].append((*table.read(row), getattr(row, table.looked_up.field)))
        else:
            pile.rows[table].append(table.read(row))
    return ordered


def _write(cursor: Cursor, pile: _Pile) -> None:
    _insert(cursor, FACTS, pile.facts)
    if pile.compacted:
        cursor.executemany(_COMPACT, pile.compacted)  # after the facts: the deltas may be of this very group
    for table, rows in pile.rows.items():
        _insert(cursor, table, rows)
    for (table, *key), row in pile.last.items():
        if table.gone.of(row):
            cursor.execute(_delete(table), key)
        else:
            cursor.execute(insert_into(table, 1), table.read(row))


def _insert(cursor: Cursor, table: Table, rows: Sequence[Values]) -> None:
    for chunk in chunks(rows):
        cursor.execute(insert_into(table, len(chunk)), tuple(chain.from_iterable(chunk)))


@cache
def insert_into(table: Table, count: int) -> str:
    """One statement for `count` rows: a thread that steps once per row would fight the event loop for each."""
    names, marks = list(table.names), ["?"] * len(table.names)
    if table.of_session:
        names, marks = ["session_no", *names], ["?", *marks]
    if table.looked_up is not None:
        names, marks = [*names, table.looked_up.column], [*marks, table.looked_up.sql.format("?")]
    rows = ", ".join([f"({', '.join(marks)})"] * count)
    return f"insert into {table.name} ({', '.join(names)}) values {rows} {table.on_conflict}"


@cache
def _delete(table: Table) -> str:
    return f"delete from {table.name} where {' and '.join(f'{name} = ?' for name in table.key)}"
