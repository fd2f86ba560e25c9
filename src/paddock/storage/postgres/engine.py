"""Executes on PostgreSQL what `storage/tables` states for both databases."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import Reader
from paddock.storage.tables import CHANGES
from paddock.storage.tables.statements import Bound, Change, Query, Row, bind


@cache
def _bound(sql: str) -> Bound:
    return bind(sql, mark="$", typed=True)


class PostgresEngine:
    """Asks over one of the connections that read."""

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        statement = _bound(query.sql)
        found = await self._reader().one(statement.sql, *statement.values_in(given))
        return None if found is None else query.row(*found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = _bound(query.sql)
        return [query.row(*found) for found in await self._reader().all(statement.sql, *statement.values_in(given))]


async def _write(changes: Sequence[tuple[Change, Bound]], connection: Connection, row: object) -> None:
    for change, statement in changes:
        change.check(await connection.fetch(statement.sql, *statement.values_of(row)))


WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    kind: partial(_write, [(change, _bound(change.sql)) for change in changes]) for kind, changes in CHANGES.items()
}
