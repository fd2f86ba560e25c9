"""A group of works as one statement: the fences first, then the rows of those that passed, table by table.

One statement is one round trip and one transaction, so it is there whole or not at all. Works of one session that
follow each other are one chain. A work that does not fit into the group waits for the next.

Works with rows that depend on what is there are written one after the other, in one transaction for all that wait
together. Each has a savepoint, so one whose condition does not hold fails alone.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import HostError, StaleOwnerError
from paddock.rules.log.chain import DELTA
from paddock.rules.rows.rows import Row
from paddock.storage.postgres.connection import GUILTY, Connection
from paddock.storage.postgres.engine import run
from paddock.storage.postgres.fences import NO_BATCH, Chain, fence_arrays, fence_sql
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.tables import TABLES, WRITES, is_guarded
from paddock.storage.tables.log import FACTS, is_replaced
from paddock.storage.tables.statements import Values
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the names are our own, values are always bound
MAX_GROUP = 256
MAX_GROUP_BYTES = 4 * 1024 * 1024
"""Payloads in one statement; a single work may be larger."""


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
        self._merged: dict[tuple[int, Part, Values], Any] = {}
        self._rows: dict[Part, list[Values]] = {}
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

    def statement(self) -> tuple[str, Sequence[Sequence[Any]]]:
        """The statement and its values. It answers with the places of the chains that passed."""
        arrays, advancing, opening = fence_arrays(list(self._chains.values()), self._host)
        parts = tuple(part for part in _ORDER if self._rows.get(part))
        values = [array for part in parts for array in part.arrays(self._rows[part])]
        return _statement(parts, advancing, opening), [*arrays, *values]

    def settle(self, passed: frozenset[int]) -> None:
        """Mark those whose fence did not hold."""
        for work, place in zip(self._works, self._places, strict=True):
            if work.batch is not None and place not in passed:
                work.error = StaleOwnerError(f"session {work.batch.session_id} has another owner")

    def _add(self, work: Piece) -> None:
        place = NO_BATCH if work.batch is None else self._chain(work.batch)
        self._places.append(place)
        for row in work.rows:
            part = _PARTS.get(type(row))
            if part is None or is_guarded(row):
                continue
            if part.table.merged is None:
                self._put(part, place, row)
            else:
                self._merge(part, place, row)

    def _put(self, part: "Part", place: int, row: object) -> None:
        self._rows.setdefault(part, []).append((place, *part.table.read(row)))

    def _merge(self, part: "Part", place: int, row: object) -> None:
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


# --- the statement ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """How rows of one table become part of the group's one statement: their columns as arrays, and what is done with
    them. Each of the steps is a statement under a name, in which `{rows}` stands for the rows that may be written:
    their columns, `n` for their order and, where they are of a session, its `session_no`.
    """

    table: Table
    names: Sequence[str]
    kinds: Sequence[str]
    steps: Sequence[tuple[str, str]]

    def arrays(self, rows: Sequence[Values]) -> Iterator[Sequence[Any]]:
        """Turn rows into columns; the first is the place of the batch in its group. Texts are made storable here, so
        that no table can forget it."""
        batches, *columns = zip(*rows, strict=True)
        yield batches
        for kind, column in zip(self.kinds, columns, strict=True):
            yield escaped_column(column) if kind == "text" else column

    def sql(self, first: int) -> str:
        """The steps as common table expressions whose arrays begin at parameter number `first`."""
        arrays = ", ".join(f"${first + index}::{kind}[]" for index, kind in enumerate(["int", *self.kinds]))
        given = f"unnest({arrays}) with ordinality as given (b, {', '.join(self.names)}, n)"
        rows = f"(select passed.session_no, given.* from {given} join passed using (b)) as r"
        return ",\n".join(f"{name} as ({step.format(rows=rows)})" for name, step in self.steps)


def part_of(table: Table) -> Part:
    steps = _last_word(table) if table.gone is not None else [(f"w_{table.name}", _insert(table))]
    return Part(table, table.names, table.kinds, steps)


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


_FACTS = part_of(FACTS)
_COMPACTED = Part(
    FACTS,
    ("turn_id", "first", "last"),
    ("text", "bigint", "bigint"),
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
_PARTS = {row: part_of(table) for row, table in TABLES.items()}
_ORDER = (_FACTS, _COMPACTED, *_PARTS.values())


@cache
def _statement(parts: tuple[Part, ...], advancing: bool, opening: bool) -> str:
    start, free = fence_sql(advancing=advancing, opening=opening)
    steps = [start]
    for part in parts:
        steps.append(part.sql(free))
        free += 1 + len(part.kinds)
    return "with " + ",\n".join(steps) + "\nselect b from passed"


# --- works whose rows depend on what is there ------------------------------------------------------------------------


FAILS_ALONE = (HostError, *GUILTY)


def in_order(works: Iterable[Work]) -> Iterator[tuple[bool, Sequence[Work]]]:
    """Works as they came, in stretches that are all guarded or all not."""
    return ((guarded, list(stretch)) for guarded, stretch in groupby(works, key=needs_guard))


def needs_guard(work: Work) -> bool:
    return any(map(is_guarded, work.rows))


async def write_works(connection: Connection, works: Sequence[Work], host: int | None) -> Sequence[Exception | None]:
    """Why each of them was not written, or None."""
    async with connection.transaction():
        return [await _try(connection, work, host) for work in works]


async def _try(connection: Connection, work: Work, host: int | None) -> Exception | None:
    try:
        async with connection.transaction():  # a savepoint
            await write_rows(connection, work, host)
    except FAILS_ALONE as error:
        return error
    return work.error


async def write_rows(connection: Connection, piece: Piece, host: int | None = None) -> None:
    """All rows of one piece, inside a transaction: the plain ones at once, then the others in order."""
    group = Group([piece], host)
    if not group.is_empty:
        statement, values = group.statement()
        group.settle(frozenset(row[0] for row in await connection.fetch(statement, *values)))
    if piece.error is None:
        for row in piece.rows:
            if is_guarded(row):
                await run(connection, WRITES[type(row)](row))
