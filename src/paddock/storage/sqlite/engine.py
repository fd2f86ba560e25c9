"""Executes on SQLite what `storage/tables` states for every database."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import apsw

from paddock.rules.rows.rows import AuditRow
from paddock.storage.sqlite.connection import Connection, Cursor, unavailable
from paddock.storage.sqlite.pool import ReaderPool
from paddock.storage.tables.statements import (
    Answer,
    Bound,
    Query,
    Row,
    SizedQuery,
    Values,
    Work,
    bind,
    in_dialect,
)

WORDS = {"greatest(": "max(", "no_bytes()": "x''"}
_LIST = re.compile(r"= any\((\?\d+)\)")


@cache
def bound(sql: str) -> Bound:
    statement = bind(in_dialect(sql, "sqlite", WORDS).strip(), mark="?", typed=False)
    return replace(statement, sql=_LIST.sub(r"in (select value from json_each(\1))", statement.sql))


def values_of(statement: Bound, given: Any) -> Values:
    values = statement.values(given)
    if not statement.lists:
        return values
    return tuple(json.dumps(one) if place in statement.lists else one for place, one in enumerate(values))


def run(cursor: Connection | Cursor, work: Work[Answer]) -> Answer:
    """Take a work to its end, within whatever transaction this is."""
    try:
        step = next(work)
        while True:
            statement = bound(step.sql)
            if statement.sql:
                step = work.send(cursor.execute(statement.sql, values_of(statement, step.given)).fetchall())
            else:  # something that only others have to do
                step = work.send(())
    except StopIteration as done:
        return done.value


def rows_of(cursor: Connection | Cursor, sql: str, **given: Any) -> list[Values]:
    """The rows that one statement finds."""
    statement = bound(sql)
    return cursor.execute(statement.sql, values_of(statement, given)).fetchall()


class SqliteEngine:
    """Asks where it is asked from: a point read takes microseconds. What may take longer is asked on a thread."""

    def __init__(
        self,
        reader: Callable[[], Connection],
        pool: Callable[[], ReaderPool],
        perform: Callable[[Callable[[Cursor], None], Sequence[AuditRow]], Awaitable[None]],
    ) -> None:
        self._reader = reader
        self._pool = pool
        self._perform = perform

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        found = self._execute(query, given).fetchone()
        return None if found is None else query.read(found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        try:
            return [query.read(found) for found in self._execute(query, given).fetchall()]
        except apsw.Error as error:
            raise unavailable(error) from error

    async def some(self, query: SizedQuery[Row], room: int, **given: Any) -> Sequence[Row]:
        rows: list[Row] = []
        try:
            for found in self._execute(query, given):
                rows.append(query.read(found))
                room -= query.size_of(rows[-1])
                if room < 0:
                    break
        except apsw.Error as error:
            raise unavailable(error) from error
        return rows

    async def long(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = bound(query.sql)
        values = values_of(statement, given)
        found = await self._pool().ask(lambda connection: connection.execute(statement.sql, values).fetchall())
        return [query.read(row) for row in found]

    async def ask(self, work: Callable[[], Work[Answer]]) -> Answer:
        return await self._pool().ask(lambda connection: run(connection, work()))

    async def do(self, work: Callable[[], Work[Answer]], rows: Sequence[AuditRow] = ()) -> Answer:
        answers: list[Answer] = []

        def deed(cursor: Cursor) -> None:
            answers[:] = [run(cursor, work())]

        await self._perform(deed, rows)
        return answers[0]

    def _execute(self, query: Query[Any], given: dict[str, Any]) -> Cursor:
        statement = bound(query.sql)
        try:
            return self._reader().execute(statement.sql, values_of(statement, given))
        except apsw.Error as error:
            raise unavailable(error) from error
