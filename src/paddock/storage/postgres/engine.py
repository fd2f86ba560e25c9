"""Executes on PostgreSQL what `storage/tables` states for every database."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

from paddock.rules.rows.rows import AuditRow
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import Ask, Reader
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.tables.statements import Answer, Bound, Query, Row, SizedQuery, Values, Work, bind, in_dialect

WORDS = {"no_bytes()": "''::bytea"}
# The bytes of a row are known without reading a long one; each row comes with those of all before it.
_WITHIN = """
select * from (
  select *, sum({sized}) over (order by {order} rows between unbounded preceding and 1 preceding) as taken
    from ({rows}) as page) as counted
 where coalesce(taken, 0) <= :room order by {order}"""


@cache
def bound(sql: str) -> Bound:
    return bind(in_dialect(sql, "postgres", WORDS).strip(), mark="$", typed=True)


def values_of(statement: Bound, given: Any) -> Values:
    values = statement.values(given)
    if not statement.lists:
        return values
    return tuple(_list(one, statement.lists.get(place)) for place, one in enumerate(values))


def _list(value: Any, kind: str | None) -> Any:
    if kind is None or value is None:
        return value
    return escaped_column(list(value)) if kind == "text" else list(value)


async def run(connection: Connection, work: Work[Answer]) -> Answer:
    """Take a work to its end, within whatever transaction this is."""
    try:
        step = next(work)
        while True:
            statement = bound(step.sql)
            if statement.sql:
                step = work.send(await connection.fetch(statement.sql, *values_of(statement, step.given)))
            else:  # something that only others have to do
                step = work.send(())
    except StopIteration as done:
        return done.value


async def rows_of(connection: Connection, sql: str, **given: Any) -> Sequence[Any]:
    """The rows that one statement finds."""
    statement = bound(sql)
    return await connection.fetch(statement.sql, *values_of(statement, given))


class PostgresEngine:
    """Asks over one of the connections that read."""

    def __init__(
        self, reader: Callable[[], Reader], perform: Callable[[Ask[Any], Sequence[AuditRow]], Awaitable[Any]]
    ) -> None:
        self._reader = reader
        self._perform = perform

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        statement = bound(query.sql)
        found = await self._reader().one(statement.sql, *values_of(statement, given))
        return None if found is None else query.read(found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = bound(query.sql)
        return [query.read(found) for found in await self._reader().all(statement.sql, *values_of(statement, given))]

    async def some(self, query: SizedQuery[Row], room: int, **given: Any) -> Sequence[Row]:
        statement = bound(_WITHIN.format(sized=query.sized, order=query.order, rows=query.sql))
        found = await self._reader().all(statement.sql, *values_of(statement, {**given, "room": room}))
        return [query.read(row[:-1]) for row in found]

    async def long(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        found = await self._reader().ask(lambda connection: rows_of(connection, query.sql, **given))
        return [query.read(row) for row in found]

    async def ask(self, work: Callable[[], Work[Answer]]) -> Answer:
        return await self._reader().ask(lambda connection: run(connection, work()))

    async def do(self, work: Callable[[], Work[Answer]], rows: Sequence[AuditRow] = ()) -> Answer:
        return await self._perform(lambda connection: run(connection, work()), rows)
