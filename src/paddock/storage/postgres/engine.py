"""Executes on PostgreSQL what `storage/tables` states for every database, over a few connections that read.

A transaction is opened only for questions whose statements must see the same state: beginning and ending one costs as
much as asking twice. A connection that was lost is replaced, and the question asked once more: a restart of the
database between two questions is nobody's business. Every wait has an end.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

import anyio

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.storage.postgres.connection import (
    ANSWER_SECONDS,
    AWAY,
    LOST,
    Connection,
    Pool,
    escaped_column,
    open_pool,
    terminate,
    unavailable,
)
from paddock.storage.postgres.silence import Silence
from paddock.storage.tables.statements import Answer, Bound, Query, Row, Values, Work, bind, in_dialect

MAX_CONNECTIONS = 8
QUESTION_SECONDS = 5
"""How long a question may take that people wait for."""
IDLE_SECONDS = 300
GIVE_UP_SECONDS = 2.0
"""How long a transaction that is given up may take to say so; its connection is ended then."""
Ask = Callable[[Connection], Awaitable[Answer]]
_ONE_STATE = "begin isolation level repeatable read read only"
_DURABLY = "begin; set local synchronous_commit = 'on'"


class Reader:
    """Answers questions about what is committed."""

    def __init__(self, pool: Pool, address: str, silence: Silence) -> None:
        self._pool = pool
        self._address = address
        self._silence = silence

    @classmethod
    async def open(cls, address: str, silence: Silence) -> "Reader":
        return cls(await open_pool(address, most=MAX_CONNECTIONS, idle_seconds=IDLE_SECONDS), address, silence)

    def close(self) -> None:
        self._pool.terminate()  # nothing is under way that anybody waits for

    async def one(self, sql: str, *values: Any) -> Any:
        return await self._ask(lambda connection: connection.fetchrow(sql, *values))

    async def all(self, sql: str, *values: Any) -> Sequence[Any]:
        return await self._ask(lambda connection: connection.fetch(sql, *values))

    async def ask(self, question: Ask[Answer]) -> Answer:
        """The answer to a question of several statements: each sees what is committed when it is asked.

        Raises HostError(DEADLINE_EXCEEDED) when it takes too long.
        """
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                return await self._ask(question)
        except TimeoutError as error:
            text = f"the search took more than {QUESTION_SECONDS} s; ask for rarer words, or less with filters"
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, text) from error

    async def ask_one_state(self, question: Ask[Answer]) -> Answer:
        """Ask statements that must all see one state of the database."""
        return await self._ask(lambda connection: _within(_ONE_STATE, connection, question))

    async def perform(self, deed: Ask[Answer], *, durably: bool = True) -> Answer:
        """Do something in a transaction. Never tried again once begun, because it may have happened."""
        self._silence.refuse()
        try:
            async with self._pool.acquire(timeout=ANSWER_SECONDS) as connection:
                work = _within(_DURABLY if durably else "begin", connection, deed)
                return await self._silence.watch(connection, work)
        except AWAY as error:
            raise unavailable(error, self._address) from error

    async def _ask(self, ask: Ask[Answer]) -> Answer:
        try:
            try:
                return await self._ask_once(ask)
            except TimeoutError:
                raise  # asking again would only double the wait
            except LOST:
                return await self._ask_once(ask)
        except AWAY as error:
            raise unavailable(error, self._address) from error

    async def _ask_once(self, ask: Ask[Answer]) -> Answer:
        self._silence.refuse()
        async with self._pool.acquire(timeout=ANSWER_SECONDS) as connection:
            try:
                return await self._silence.watch(connection, ask(connection))
            except LOST:
                terminate(connection)
                raise


async def _within(begin: str, connection: Connection, work: Ask[Answer]) -> Answer:
    """The work as one transaction; a connection that cannot end it is thrown away."""
    await connection.execute(begin)
    try:
        answer = await work(connection)
        await connection.execute("commit")
    except BaseException as error:
        with anyio.move_on_after(GIVE_UP_SECONDS, shield=True) as giving_up:
            await _give_up(connection, error)
        if giving_up.cancelled_caught:
            terminate(connection)
        raise
    return answer


async def _give_up(connection: Connection, error: BaseException) -> None:
    if isinstance(error, LOST) or connection.is_closed():
        terminate(connection)
        return
    try:
        await connection.execute("rollback")
    except AWAY:
        terminate(connection)


WORDS = {"no_bytes()": "''::bytea"}
_EACH = re.compile(r"\beach\((\$\d+::\w+\[\])\)")


@cache
def bound(sql: str) -> Bound:
    statement = bind(in_dialect(sql, "postgres", WORDS).strip(), mark="$", typed=True)
    return replace(statement, sql=_EACH.sub(r"unnest(\1) as each (value)", statement.sql))


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
    statement = bound(sql)
    return await connection.fetch(statement.sql, *values_of(statement, given))


class Perform(Protocol):
    async def __call__(self, deed: Ask[Answer], rows: Sequence[AuditRow], *, durably: bool) -> Answer: ...


class PostgresEngine:
    """Asks over one of the connections that read."""

    def __init__(self, reader: Callable[[], Reader], perform: Perform) -> None:
        self._reader = reader
        self._perform = perform

    async def one(self, query: Query[Row], **given: Any) -> Row | None:
        statement = bound(query.sql)
        found = await self._reader().one(statement.sql, *values_of(statement, given))
        return None if found is None else query.read(found)

    async def all(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        statement = bound(query.sql)
        return [query.read(found) for found in await self._reader().all(statement.sql, *values_of(statement, given))]

    async def long(self, query: Query[Row], **given: Any) -> Sequence[Row]:
        found = await self._reader().ask(lambda connection: rows_of(connection, query.sql, **given))
        return [query.read(row) for row in found]

    async def ask(self, work: Callable[[], Work[Answer]]) -> Answer:
        return await self._reader().ask(lambda connection: run(connection, work()))

    async def do(
        self, work: Callable[[], Work[Answer]], rows: Sequence[AuditRow] = (), *, durably: bool = True
    ) -> Answer:
        return await self._perform(lambda connection: run(connection, work()), rows, durably=durably)
