"""A group of works as one statement: the fences first, then the rows of those that passed, table by table.

The fence of every append is one row per session, which says who may write and where the log ends. Batches of one
session that follow each other pass as one chain. A chain whose epoch is outdated, that does not go on from the head, or
whose host was declared gone, does not pass, and nothing of it is written. Rows are locked in order of session, so that
two hosts whose groups meet wait for each other and never in a circle.

One statement is one round trip and one transaction, so it is there whole or not at all. A work that does not fit into
the group waits for the next. Works with rows that depend on what is there are written one after the other, in one
transaction for all that wait together. Each has a savepoint, so one whose condition does not hold fails alone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import groupby
from typing import Any

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import HostError, StaleOwnerError
from paddock.rules.log.chain import DELTA, word_bytes
from paddock.rules.rows.rows import Row, SessionRow, TranscriptRow
from paddock.storage.postgres.connection import GUILTY, Connection
from paddock.storage.postgres.engine import run
from paddock.storage.tables import TABLES, WRITES, is_guarded
from paddock.storage.tables.log import FACTS, is_replaced
from paddock.storage.tables.statements import Values
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the names are our own, values are always bound
MAX_GROUP = 256
MAX_GROUP_BYTES = 4 * 1024 * 1024
"""Payloads in one statement; a single work may be larger."""
NO_BATCH = -1
"""The place of rows that belong to no batch: they always pass."""


class RowType:
    """A composite type of the database: rows of one sort travel as one value, an array of it. That costs the host half
    of what an array for each column does, and the database less as well (docs/decisions/0182).

    Its name ends with a digest of its columns. So hosts of different versions never use the same type for different
    rows, and a type is made once and never changed (`migrate.py`).
    """

    def __init__(self, table: str, names: Sequence[str], kinds: Sequence[str]) -> None:
        self.names = ["b", *names]
        self.attributes = ", ".join(f"{name} {kind}" for name, kind in zip(self.names, ["int", *kinds], strict=True))
        """`b`, the place of the row's batch in its group, and the columns."""
        self.name = f"given_{table}_{blake2b(self.attributes.encode(), digest_size=4).hexdigest()}"

    def given(self, parameter: int) -> str:
        """The rows of one parameter, with `n` for their order."""
        return f"unnest(${parameter}::{self.name}[]) with ordinality as given ({', '.join(self.names)}, n)"


_HEAD = {"epoch": "bigint", "head_seq": "bigint", "head_digest": "bytea", "items": "bigint", "words": "bigint"}
_STATE = {"snapshot_seq": "bigint", "snapshot": "bytea", "host": "bigint", "rests": "boolean"}
_ADVANCE = {"session_id": "text", "before": "bigint", **_HEAD, "time": "double precision", **_STATE}
_OPEN = {
    "session_id": "text",
    "workspace_id": "text",
    "user_id": "text",
    "created_at": "double precision",
    **_HEAD,
    **_STATE,
}
ADVANCING = RowType("advancing", list(_ADVANCE), list(_ADVANCE.values()))
OPENING = RowType("opening", list(_OPEN), list(_OPEN.values()))
_ADVANCED = """
fence as (select * from {given}),
locked as (
  select s.session_no, f.* from sessions as s join fence as f on s.session_id = f.session_id
   order by s.session_id for update of s),
advanced as (
  update sessions as s
     set epoch = f.epoch, head_seq = f.head_seq, head_digest = f.head_digest, item_count = item_count + f.items,
         word_bytes = word_bytes + f.words,
         updated_at = coalesce(f.time, updated_at), snapshot_seq = coalesce(f.snapshot_seq, s.snapshot_seq),
         snapshot = coalesce(f.snapshot, s.snapshot), boot = case when f.rests then null else f.host end
    from locked as f where s.session_no = f.session_no and s.epoch <= f.epoch and s.head_seq = f.before
                       and (f.host is null or exists (select 1 from hosts where boot = f.host and gone is null))
  returning f.b, s.session_no)"""
_OPENED = """
opening as (select * from {given}),
opened as (
  insert into sessions (session_id, workspace_id, user_id, created_at, updated_at, epoch, head_seq, head_digest,
                        item_count, word_bytes, snapshot_seq, snapshot, boot)
  select session_id, workspace_id, user_id, created_at, created_at, epoch, head_seq, head_digest, items, words,
         snapshot_seq, snapshot, case when rests then null else host end from opening
   where host is null or exists (select 1 from hosts where boot = host and gone is null) order by session_id
  on conflict (session_id) do nothing returning session_id, session_no)"""


class Chain:
    """Batches of one session, each going on where the one before it ended: they pass the fence together."""

    def __init__(self, place: int, batch: Batch) -> None:
        self.place = place
        self.batches = [batch]
        self.opened = next((row for row in batch.rows if type(row) is SessionRow), None)

    def takes(self, batch: Batch) -> bool:
        last = self.batches[-1]
        goes_on = batch.epoch == last.epoch and batch.before == last.after
        return goes_on and not any(type(row) is SessionRow for row in batch.rows)

    def fence(self, host: int | None) -> tuple[RowType, Values] | None:
        """The values of its fence; None when it opens a session and does not begin at the start of its log."""
        first, last = self.batches[0], self.batches[-1]
        row, (seq, snapshot) = self.opened, self._snapshot()
        if row is None:
            start = self.place, first.session_id, first.before.seq
            return ADVANCING, (*start, *self._head(), self._time(), seq, snapshot, host, last.rests)
        if first.before.seq:
            return None
        start = self.place, row.session_id, row.workspace_id, row.user_id, row.created_at
        return OPENING, (*start, *self._head(), seq or 0, snapshot or b"", host, last.rests)

    def _head(self) -> Values:
        last = self.batches[-1]
        items = sum(type(row) is TranscriptRow for batch in self.batches for row in batch.rows)
        words = sum(word_bytes(batch.facts) for batch in self.batches)
        return last.epoch, last.after.seq, last.after.digest, items, words

    def _time(self) -> float | None:
        return next((batch.facts[-1].time for batch in reversed(self.batches) if batch.facts), None)

    def _snapshot(self) -> tuple[int | None, bytes | None]:
        found = next((batch for batch in reversed(self.batches) if batch.snapshot), None)
        return (found.after.seq, found.snapshot) if found else (None, None)


@dataclass(frozen=True, slots=True, eq=False)
class WrittenRows:
    """How rows of one table become part of the group's one statement.

    Each of the steps is a statement under a name, in which `{rows}` stands for the rows that may be written: their
    columns, `n` for their order and, where they are of a session, its `session_no`.
    """

    table: Table
    type: RowType
    steps: Sequence[tuple[str, str]]

    def sql(self, parameter: int) -> str:
        """The steps as common table expressions over the rows of this parameter."""
        rows = f"(select passed.session_no, given.* from {self.type.given(parameter)} join passed using (b)) as r"
        return ",\n".join(f"{name} as ({step.format(rows=rows)})" for name, step in self.steps)


def _written(table: Table) -> WrittenRows:
    steps = _last_word(table) if table.gone is not None else [(f"w_{table.name}", _insert(table))]
    return WrittenRows(table, RowType(table.name, table.names, table.kinds), steps)


def _insert(table: Table) -> str:
    names = ["session_no", *table.names] if table.of_session else list(table.names)
    values = list(names)
    if table.looked_up is not None:
        names.append(table.looked_up.column)
        values.append(table.looked_up.sql.format(f"r.{table.looked_up.field}"))
    start = f"insert into {table.name} ({', '.join(names)}) select {', '.join(values)}"
    return f"{start} from {{rows}} order by {table.order} {table.on_conflict}"


def _last_word(table: Table) -> Sequence[tuple[str, str]]:
    """Only the last row on each key counts, and it may take away what is there."""
    assert table.gone is not None
    name, columns, keys, gone = table.name, table.columns, ", ".join(table.key), table.gone.sql
    same = " and ".join(f"{name}.{column} = last.{column}" for column in table.key)
    put = f"insert into {name} ({columns}) select {columns} from last_{name}"
    return [
        (f"last_{name}", f"select distinct on ({keys}) {columns} from {{rows}} order by {keys}, n desc"),
        (f"d_{name}", f"delete from {name} using last_{name} as last where {same} and last.{gone}"),
        (f"w_{name}", f"{put} where not ({gone}) order by {keys} {table.on_conflict}"),
    ]


_FACTS = _written(FACTS)
_COMPACTED = WrittenRows(
    FACTS,
    RowType("compacted", ["turn_id", "first", "last"], ["text", "bigint", "bigint"]),
    [
        (
            "w_compacted",
            f"""
delete from facts using {{rows}}
 where facts.session_no = r.session_no and facts.position between r.first and r.last and facts.turn_id = r.turn_id
   and facts.kind = '{DELTA}'""",
        )
    ],
)
_TABLES = {row: _written(table) for row, table in TABLES.items()}
_ORDER = (_FACTS, _COMPACTED, *_TABLES.values())
ROW_TYPES: Mapping[str, str] = {
    one.name: one.attributes for one in (ADVANCING, OPENING, *(written.type for written in _ORDER))
}
"""The types that the database must have, by name."""


@cache
def _statement(fences: tuple[RowType, ...], parts: tuple[WrittenRows, ...]) -> str:
    steps, passed = list[str](), [f"select {NO_BATCH}, null::bigint"]
    for parameter, fence in enumerate(fences, 1):
        sql, answer = _FENCES[fence]
        steps.append(sql.format(given=fence.given(parameter)))
        passed.append(answer)
    steps.append(f"passed (b, session_no) as ({' union all '.join(passed)})")
    steps += [part.sql(parameter) for parameter, part in enumerate(parts, len(fences) + 1)]
    return "with " + ",\n".join(steps) + "\nselect b from passed"


_FENCES = {
    ADVANCING: (_ADVANCED, "select b, session_no from advanced"),
    OPENING: (_OPENED, "select b, session_no from opened join opening using (session_id)"),
}


@dataclass(slots=True, eq=False)
class ToWrite:
    """Something to write. `batch` is None for rows that belong to no session's log."""

    batch: Batch | None
    rows: Sequence[Row | ApiKeyRow]
    error: Exception | None = None

    @property
    def is_empty(self) -> bool:
        return self.batch is None and not self.rows


@dataclass(slots=True, eq=False, kw_only=True)
class QueuedWrite(ToWrite):
    """Something to write, and who waits for it."""

    done: asyncio.Future[None]


def take_group(queue: deque[QueuedWrite]) -> list[QueuedWrite]:
    """As many of the waiting works, in order, as fit into one statement."""
    group, last, size = list[QueuedWrite](), dict[str, Chain](), 0
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

    def __init__(self, works: Sequence[ToWrite], host: int | None) -> None:
        self._works = works
        self._host = host
        self._chains: dict[str, Chain] = {}
        self._places: list[int] = []
        self._facts: dict[int, list[Any]] = {}
        self._merged: dict[tuple[int, WrittenRows, Values], Any] = {}
        self._rows: dict[WrittenRows, list[Values]] = {}
        for work in works:
            self._add(work)
        for place, facts in self._facts.items():
            for fact in facts:
                self._put(_FACTS, place, fact)
        for (place, part, _), row in self._merged.items():
            self._put(part, place, row)

    @property
    def is_empty(self) -> bool:
        return not self._chains and not self._rows

    def statement(self) -> tuple[str, Sequence[Sequence[Values]]]:
        """The statement and its values. It answers with the places of the chains that passed."""
        fences: dict[RowType, list[Values]] = {one: [] for one in _FENCES}
        for chain in self._chains.values():
            if (fence := chain.fence(self._host)) is not None:
                fences[fence[0]].append(fence[1])
        needed = tuple(one for one in fences if fences[one])
        parts = tuple(part for part in _ORDER if part in self._rows)
        return _statement(needed, parts), [*(fences[one] for one in needed), *(self._rows[part] for part in parts)]

    def settle(self, passed: frozenset[int]) -> None:
        for work, place in zip(self._works, self._places, strict=True):
            if work.batch is not None and place not in passed:
                work.error = StaleOwnerError(f"session {work.batch.session_id} has another owner")

    def _add(self, work: ToWrite) -> None:
        place = NO_BATCH if work.batch is None else self._chain(work.batch)
        self._places.append(place)
        for row in work.rows:
            part = _TABLES.get(type(row))
            if part is None or is_guarded(row):
                continue
            if part.table.merged is None:
                self._put(part, place, row)
            else:
                self._merge(part, place, row)

    def _put(self, part: WrittenRows, place: int, row: object) -> None:
        self._rows.setdefault(part, []).append((place, *part.table.read(row)))

    def _merge(self, part: WrittenRows, place: int, row: object) -> None:
        """One statement may write each of these rows only once."""
        key = (place, part, part.table.key_of(row))
        known = self._merged.get(key)
        assert part.table.merged is not None
        self._merged[key] = row if known is None else part.table.merged(known, row)

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
            self._rows.setdefault(_COMPACTED, []).extend((chain.place, *one) for one in batch.compacted)
        return chain.place


# --- works whose rows depend on what is there ------------------------------------------------------------------------


FAILS_ALONE = (HostError, *GUILTY)


def in_order(works: Iterable[QueuedWrite]) -> Iterator[tuple[bool, Sequence[QueuedWrite]]]:
    """Works as they came, in stretches that are all guarded or all not."""
    return ((guarded, list(stretch)) for guarded, stretch in groupby(works, key=needs_guard))


def needs_guard(work: QueuedWrite) -> bool:
    return any(map(is_guarded, work.rows))


async def write_works(
    connection: Connection, works: Sequence[QueuedWrite], host: int | None
) -> Sequence[Exception | None]:
    """Why each of them was not written, or None."""
    async with connection.transaction():
        return [await _try(connection, work, host) for work in works]


async def _try(connection: Connection, work: QueuedWrite, host: int | None) -> Exception | None:
    try:
        async with connection.transaction():  # a savepoint
            await write_rows(connection, work, host)
    except FAILS_ALONE as error:
        return error
    return work.error


async def write_rows(connection: Connection, piece: ToWrite, host: int | None = None) -> None:
    """All rows of one piece, inside a transaction: the plain ones at once, then the others in order."""
    group = Group([piece], host)
    if not group.is_empty:
        statement, values = group.statement()
        group.settle(frozenset(row[0] for row in await connection.fetch(statement, *values)))
    if piece.error is None:
        for row in piece.rows:
            if is_guarded(row):
                await run(connection, WRITES[type(row)](row))
