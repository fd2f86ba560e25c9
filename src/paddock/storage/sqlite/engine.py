"""Executes on SQLite what `storage/tables` states for every database.

A point read is asked where it is needed. Questions that may take longer are asked on threads, few at a time, with an
end, each over a reading connection of its own.
"""

import json
import re
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import apsw

from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow
from paddock.storage.sqlite.connection import Connection, Cursor, open_reader, unavailable
from paddock.storage.tables.statements import (
    Answer,
    Bound,
    Query,
    Row,
    Values,
    Work,
    bind,
    in_dialect,
)

THREADS = 2
QUESTION_SECONDS = 5.0
LOOK_EVERY = 10_000
"""SQLite's own steps between two looks at the clock: about a millisecond."""


class ReaderPool:
    """Connections are opened when they are needed and kept. A question sees one state of the database throughout."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._idle: list[Connection] = []
        self._limiter = anyio.CapacityLimiter(THREADS)
        self._closed = False

    async def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The answer, or HostError(DEADLINE_EXCEEDED) when it takes too long."""
        return await anyio.to_thread.run_sync(self._answer, question, limiter=self._limiter)

    def close(self) -> None:
        """Idle connections at once; one that is still asked closes when it has answered."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _answer(self, question: Callable[[Connection], Answer]) -> Answer:
        try:
            with self._borrowed() as connection, _at_most(connection, QUESTION_SECONDS), connection:
                return question(connection)
        except apsw.InterruptError as error:
            text = f"the search took more than {QUESTION_SECONDS:g} s; ask for rarer words, or less with filters"
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, text) from error
        except apsw.Error as error:
            raise unavailable(error) from error

    @contextmanager
    def _borrowed(self) -> Generator[Connection]:
        if self._closed:
            raise StorageUnavailableError("the store is closed")
        connection = self._idle.pop() if self._idle else open_reader(self._directory)
        try:
            yield connection
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)


@contextmanager
def _at_most(connection: Connection, seconds: float) -> Generator[None]:
    until = time.monotonic() + seconds
    raw = cast("apsw.Connection", connection)
    raw.set_progress_handler(lambda: time.monotonic() > until, LOOK_EVERY)
    try:
        yield
    finally:
        raw.set_progress_handler(None)


WORDS = {"greatest(": "max(", "no_bytes()": "x''"}
_LIST = re.compile(r"= any\((\?\d+)\)")
_EACH = re.compile(r"\beach\((\?\d+)\)")


@cache
def bound(sql: str) -> Bound:
    statement = bind(in_dialect(sql, "sqlite", WORDS).strip(), mark="?", typed=False)
    sql = _LIST.sub(r"in (select value from json_each(\1))", statement.sql)
    return replace(statement, sql=_EACH.sub(r"json_each(\1)", sql))


def values_of(statement: Bound, given: Any) -> Values:
    values = statement.values(given)
    if not statement.lists:
        return values
    return tuple(
        json.dumps(one) if place in statement.lists and one is not None else one for place, one in enumerate(values)
    )


def run(cursor: Connection | Cursor, work: Work[Answer]) -> Answer:
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
    statement = bound(sql)
    return cursor.execute(statement.sql, values_of(statement, given)).fetchall()


@dataclass(frozen=True)
class SqliteEngine:
    """Asks where it is asked from: a point read takes microseconds. What may take longer is asked on a thread."""

    reader: Callable[[], Connection]
    pool: Callable[[], ReaderPool]
    perform: Callable[[Callable[[Cursor], None], Sequence[AuditRow]], Awaitable[None]]

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        found = self._execute(query, given).fetchone()
        return None if found is None else query.read(found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        try:
            return [query.read(found) for found in self._execute(query, given).fetchall()]
        except apsw.Error as error:
            raise unavailable(error) from error

    async def long(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = bound(query.sql)
        values = values_of(statement, given)
        found = await self.pool().ask(lambda connection: connection.execute(statement.sql, values).fetchall())
        return [query.read(row) for row in found]

    async def ask(self, work: Callable[[], Work[Answer]]) -> Answer:
        return await self.pool().ask(lambda connection: run(connection, work()))

    async def do(
        self,
        work: Callable[[], Work[Answer]],
        rows: Sequence[AuditRow] = (),
        *,
        durably: bool = True,  # noqa: ARG002 - here every commit is
    ) -> Answer:
        answers: list[Answer] = []

        def deed(cursor: Cursor) -> None:
            answers[:] = [run(cursor, work())]

        await self.perform(deed, rows)
        return answers[0]

    def _execute(self, query: Query[Any], given: dict[str, Any]) -> Cursor:
        statement = bound(query.sql)
        try:
            return self.reader().execute(statement.sql, values_of(statement, given))
        except apsw.Error as error:
            raise unavailable(error) from error
