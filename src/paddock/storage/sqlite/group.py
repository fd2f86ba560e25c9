"""One transaction for a group of works: each fence first, then the rows, table by table.

A batch whose fence does not hold writes nothing and disturbs nobody. Beginning and committing are the writer's.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any

import apsw
import msgspec

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import HostError, StaleOwnerError, cannot_be_stored, exists_already
from paddock.rules.log.chain import DELTA, word_bytes
from paddock.rules.rows.rows import Row, SessionRow, TranscriptRow
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.engine import run
from paddock.storage.tables import TABLES, WRITES, is_guarded
from paddock.storage.tables.log import FACTS, without_replaced
from paddock.storage.tables.statements import Values
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the names are our own, values are always bound
SIZES = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Rows in one statement: so few sizes that all stay prepared, so many that most groups need two at most."""
_OPEN = """
insert into sessions (session_id, workspace_id, user_id, created_at, updated_at,
                      epoch, head_seq, head_digest, item_count, word_bytes, snapshot_seq, snapshot)
values {rows}
on conflict (session_id) do nothing returning session_id, session_no"""

_ADVANCE = """
with batch (session_id, epoch, before, head_seq, head_digest, items, words, time, snapshot_seq, snapshot)
  as (values {rows})
update sessions
   set epoch = batch.epoch, head_seq = batch.head_seq, head_digest = batch.head_digest,
       item_count = item_count + batch.items, word_bytes = word_bytes + batch.words,
       updated_at = coalesce(batch.time, updated_at),
       snapshot_seq = coalesce(batch.snapshot_seq, sessions.snapshot_seq),
       snapshot = coalesce(batch.snapshot, sessions.snapshot)
  from batch
 where sessions.session_id = batch.session_id and sessions.epoch <= batch.epoch and sessions.head_seq = batch.before
returning session_id, session_no"""


def chunks(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """All rows in few parts, each of a size that there is a statement for."""
    start = 0
    for size in SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def pass_fences(cursor: Cursor, batches: Sequence[Batch], owners: Mapping[str, int]) -> Sequence[int | None]:
    """The session's number for each batch that may be written, None for each that may not."""
    numbers: list[int | None] = []
    wave: dict[str, Batch] = {}
    for batch in batches:
        if batch.session_id in wave:  # its turn comes after the batch before it
            numbers += _pass_wave(cursor, wave, owners)
            wave = {}
        wave[batch.session_id] = batch
    return [*numbers, *_pass_wave(cursor, wave, owners)]


def _pass_wave(cursor: Cursor, wave: Mapping[str, Batch], owners: Mapping[str, int]) -> Sequence[int | None]:
    """At most one batch per session."""
    opening: list[Values] = []
    advancing: list[Values] = []
    for session_id, batch in wave.items():
        if owners.get(session_id, 0) > batch.epoch:
            continue
        opened, items = None, 0
        for row in batch.rows:
            if type(row) is TranscriptRow:
                items += 1
            elif type(row) is SessionRow:
                opened = row
        if opened is None:
            advancing.append(_advance(batch, items))
        elif not batch.before.seq:
            opening.append(_open(batch, opened, items))
    passed = {**_execute(cursor, _OPEN, opening), **_execute(cursor, _ADVANCE, advancing)}
    return [passed.get(session_id) for session_id in wave]


def _execute(cursor: Cursor, statement: str, rows: Sequence[Values]) -> Mapping[str, int]:
    passed: dict[str, int] = {}
    for chunk in chunks(rows):
        found = cursor.execute(_for(statement, len(chunk), len(chunk[0])), tuple(chain.from_iterable(chunk)))
        passed.update(found.fetchall())
    return passed


@cache
def _for(statement: str, count: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return statement.format(rows=", ".join([row] * count))


def _advance(batch: Batch, items: int) -> Values:
    after, time = batch.after, batch.facts[-1].time if batch.facts else None
    snapshot = (after.seq, batch.snapshot) if batch.snapshot else (None, None)
    words = word_bytes(batch.facts)
    return batch.session_id, batch.epoch, batch.before.seq, after.seq, after.digest, items, words, time, *snapshot


def _open(batch: Batch, row: SessionRow, items: int) -> Values:
    who = (row.session_id, row.workspace_id, row.user_id, row.created_at, row.created_at)
    place = (batch.epoch, batch.after.seq, batch.after.digest, items, word_bytes(batch.facts))
    return *who, *place, batch.after.seq if batch.snapshot else 0, batch.snapshot


GUILTY = (HostError, apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, ValueError, TypeError, OverflowError)
"""Errors that one work brings on itself; anything else is the disk's and fails the whole group."""
_COMPACT = f"""
delete from facts where session_no = ? and position between ? and ? and turn_id = ? and kind = '{DELTA}'"""


class QueuedWrite(msgspec.Struct, eq=False):
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


def write_group(cursor: Cursor, works: Sequence[QueuedWrite], owners: Mapping[str, int]) -> None:
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


def write_apart(connection: Connection, works: Sequence[QueuedWrite], owners: Mapping[str, int]) -> None:
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


def _collect(pile: _Pile, work: QueuedWrite, session_no: int) -> list[Row | ApiKeyRow]:
    """Put a work's rows on the pile; those whose order or condition matters are given back."""
    ordered: list[Row | ApiKeyRow] = []
    if batch := work.batch:
        facts = without_replaced(batch.facts, batch.compacted) if batch.compacted else batch.facts
        for fact in facts:
            pile.facts.append((session_no, *FACTS.read(fact)))
        pile.compacted += [(session_no, first, last, turn_id) for turn_id, first, last in batch.compacted]
    for row in work.rows:
        table = TABLES.get(type(row))
        if table is None:
            if type(row) in WRITES:
                ordered.append(row)
        elif table.gone is not None:
            if is_guarded(row):
                ordered.append(row)
            else:
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
