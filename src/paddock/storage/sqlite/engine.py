"""Executes on SQLite what `storage/tables` states for both databases."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import Reader
from paddock.storage.tables import CHANGES
from paddock.storage.tables.statements import Bound, Change, Query, Row, Values, bind


@cache
def _bound(sql: str) -> Bound:
    return bind(sql, mark="?", typed=False)


class SqliteEngine:
    """Asks where it is asked from: a point read takes microseconds."""

    def __init__(self, reader: Callable[[], Reader]) -> None:
        self._reader = reader

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        statement = _bound(query.sql)
        found = self._reader().one(statement.sql, statement.values_in(given))
        return None if found is None else _made(query, found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = _bound(query.sql)
        return [_made(query, found) for found in self._reader().all(statement.sql, statement.values_in(given))]


def _made(query: Query[Row], found: Values) -> Row:
    if not query.truths:
        return query.row(*found)
    values = list(found)
    for place in query.truths:
        values[place] = bool(values[place])
    return query.row(*values)


def _write(changes: Sequence[tuple[Change, Bound]], cursor: Cursor, row: object) -> None:
    for change, statement in changes:
        answer = cursor.execute(statement.sql, statement.values_of(row)).fetchone()
        change.check(answer)


WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    kind: partial(_write, [(change, _bound(change.sql)) for change in changes]) for kind, changes in CHANGES.items()
}
