"""What is looked up: a few connections that read committed data, and never hold a transaction open.

A connection that was lost is replaced, and the question asked once more: a restart of the database between two
questions is nobody's business. Every wait has an end.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from paddock.storage.postgres.connection import ANSWER_SECONDS, AWAY, LOST, Connection, Pool, open_pool, unavailable

MAX_CONNECTIONS = 8
IDLE_SECONDS = 300
_Answer = TypeVar("_Answer")
_Ask = Callable[[Connection], Awaitable[_Answer]]


class Reader:
    """Answers questions about what is committed."""

    def __init__(self, pool: Pool, address: str) -> None:
        self._pool = pool
        self._address = address

    @classmethod
    async def open(cls, address: str) -> "Reader":
        return cls(await open_pool(address, most=MAX_CONNECTIONS, idle_seconds=IDLE_SECONDS), address)

    def close(self) -> None:
        self._pool.terminate()  # nothing is under way that anybody waits for

    async def one(self, sql: str, *values: Any) -> Any:
        """The first row, or None."""
        return await self._ask(lambda connection: connection.fetchrow(sql, *values))

    async def all(self, sql: str, *values: Any) -> Sequence[Any]:
        return await self._ask(lambda connection: connection.fetch(sql, *values))

    async def _ask(self, ask: _Ask[_Answer]) -> _Answer:
        try:
            try:
                return await self._ask_once(ask)
            except TimeoutError:
                raise  # asking again would only double the wait
            except LOST:
                return await self._ask_once(ask)
        except AWAY as error:
            raise unavailable(error, self._address) from error

    async def _ask_once(self, ask: _Ask[_Answer]) -> _Answer:
        async with self._pool.acquire(timeout=ANSWER_SECONDS) as connection:
            try:
                return await ask(connection)
            except TimeoutError:
                connection.terminate()  # it may never answer again
                raise


class HasReader(Protocol):
    """What a family of reads needs of the store it is part of."""

    @property
    def reader(self) -> Reader: ...
