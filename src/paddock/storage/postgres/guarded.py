"""Works whose rows depend on what is there: written one after the other, in one transaction for all that wait together.

Each has a savepoint, so one whose condition does not hold fails alone. Everything else is written by `group.py`.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from paddock.rules.errors import HostError
from paddock.rules.rows.rows import StateRow
from paddock.storage.postgres import engine
from paddock.storage.postgres.automations import JOB_WRITES
from paddock.storage.postgres.connection import GUILTY, Connection
from paddock.storage.postgres.deliveries import DELIVERY_WRITES
from paddock.storage.postgres.group import Group, Piece, Work, is_guarded
from paddock.storage.postgres.keeping import FORGETTING
from paddock.storage.postgres.kept import KEPT_WRITES, set_if_expected
from paddock.storage.postgres.people import PEOPLE_WRITES
from paddock.storage.postgres.sessions import SESSION_WRITES

FAILS_ALONE = (HostError, *GUILTY)
WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    **KEPT_WRITES,
    **SESSION_WRITES,
    **FORGETTING,
    **PEOPLE_WRITES,
    **JOB_WRITES,
    **DELIVERY_WRITES,
    **engine.WRITES,
    StateRow: set_if_expected,
}
"""How each row is written whose order or condition matters. A condition that does not hold raises HostError."""


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
                await WRITES[type(row)](connection, row)
