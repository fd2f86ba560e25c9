"""Looks over a whole database: logs that verify, tables that are what the logs say; and puts the tables right.

On a connection of its own. What only looks sees each conversation in one state of the database, so hosts may go on;
what puts right is for a database that no host serves, and locks each conversation while it is at it.
"""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from paddock.rules.log.chain import Damage, Head, StoredFact, verify
from paddock.rules.rows.rebuilding import Difference, Tables, differences, tables_of
from paddock.rules.rows.rows import RunRow, SessionRow, TranscriptRow
from paddock.storage.postgres.connection import AWAY, Connection, connect, unavailable
from paddock.storage.postgres.conversation import ITEM, ITEMS
from paddock.storage.postgres.log import FACT, fact_of
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.postgres.ownership import refuse_while_served
from paddock.storage.postgres.runs import RUN, RUNS
from paddock.storage.walk import Walk

PAGE = 500
_LOOKING = "begin isolation level repeatable read read only"
_SESSIONS = "select session_no from sessions where session_no > $1 order by session_no limit $2"
_PLACE = """
select session_id, workspace_id, user_id, created_at, head_seq, head_digest, trimmed_seq, trimmed_digest
  from sessions where session_no = $1"""
_FACTS = f"select {FACT} from facts where session_no = $1 and seq > $2 order by seq limit $3"
_ITEMS = f"select {ITEM} from transcript where session_no = $1 order by seq"
_RUNS = f"""
select {RUN} from runs where session_id = $1 and last_seq > $3 and run_id in (
  select turn_id from facts where session_no = $2 and turn_id is not null union
  select run_id from inbox where session_no = $2)"""
_HASHES = """
select sha256 from (select sha256 from artifacts union select sha256 from storage) as kept
 where sha256 > $1 order by sha256 limit $2"""


def _insert(table: str, columns: str) -> str:
    count = len(columns.split(", "))
    return f"insert into {table} ({columns}) values ({', '.join(f'${number + 1}' for number in range(count))})"


_ADD_ITEM = _insert("transcript", f"session_no, {ITEM}")
_ADD_RUN = _insert("runs", RUN)
_INDEX_AGAIN = (
    "delete from search where session_no = $1",
    "delete from search_progress where session_no = $1",
    "delete from thread_search where session_no = $1",
    "delete from thread_search_progress where session_no = $1",
    "update sessions set item_count = (select count(*) from transcript where session_no = $1) where session_no = $1",
)
"""The index is filled late and by itself; it only has to be told that it knows nothing of this conversation."""


class _Place(SessionRow, frozen=True):
    """A session with its number and the ends of its log."""

    session_no: int = 0
    head: Head = Head()
    trimmed: Head = Head()


async def check(address: str) -> AsyncIterator[tuple[str, Damage | None]]:
    """Every session, with the first damage of its log or None."""
    async with _connected(address) as connection:
        async for number in _numbers(connection):
            async with _transaction(connection, _LOOKING):
                place, facts = await _place(connection, number), await _facts(connection, number)
            if place is not None:
                walk = Walk(iter(facts), place.head, place.trimmed)
                yield place.session_id, verify(walk, start=place.trimmed.digest) or walk.damage()


async def compare(address: str) -> AsyncIterator[Difference]:
    """Every row that is not what the log says."""
    async with _connected(address) as connection:
        async for number in _numbers(connection):
            async with _transaction(connection, _LOOKING):
                found = await _compared(connection, number)
            for difference in found:
                yield difference


async def rebuild(address: str) -> AsyncIterator[Difference]:
    """The same, and each conversation is put right, in one transaction, before its differences are told.

    Raises StorageUnavailableError while a host serves the database.
    """
    await bring_up_to_date(address)
    async with _connected(address) as connection:
        await refuse_while_served(connection, "stop them first, or only compare, with --check")
        async for number in _numbers(connection):
            async with _transaction(connection, "begin"):
                await connection.fetch("select 1 from sessions where session_no = $1 for update", number)
                found = await _compared(connection, number)
                await _put_right(connection, number, found)
            for difference in found:
                yield difference


async def needed_bytes(address: str) -> AsyncIterator[str]:
    """The hash of everything that an artifact or a storage area needs."""
    async with _connected(address) as connection:
        last = ""
        while page := await connection.fetch(_HASHES, last, PAGE):
            for row in page:
                yield row[0]
            last = page[-1][0]


# --- one conversation ------------------------------------------------------------------------------------------------


async def _numbers(connection: Connection) -> AsyncIterator[int]:
    last = -1
    while page := await connection.fetch(_SESSIONS, last, PAGE):
        for row in page:
            yield row[0]
        last = page[-1][0]


async def _place(connection: Connection, number: int) -> _Place | None:
    found = await connection.fetchrow(_PLACE, number)
    if found is None:
        return None  # deleted since it was listed
    return _Place(*found[:4], session_no=number, head=Head(*found[4:6]), trimmed=Head(*found[6:8]))


async def _facts(connection: Connection, number: int) -> list[StoredFact]:
    facts: list[StoredFact] = []
    while page := await connection.fetch(_FACTS, number, facts[-1].seq if facts else 0, PAGE):
        facts += map(fact_of, page)
    return facts


async def _compared(connection: Connection, number: int) -> Sequence[Difference]:
    place = await _place(connection, number)
    if place is None:
        return ()
    told = tables_of(place, await _facts(connection, number))
    return differences(place.session_id, await _stored(connection, place), told)


async def _stored(connection: Connection, place: _Place) -> Tables:
    session_id, number = place.session_id, place.session_no
    items = [TranscriptRow(session_id, *row) for row in await connection.fetch(_ITEMS, number)]
    runs = [RunRow(*row) for row in await connection.fetch(_RUNS, session_id, number, place.trimmed.seq)]
    return Tables({item.seq: item for item in items}, {run.run_id: run for run in runs})


async def _put_right(connection: Connection, number: int, found: Sequence[Difference]) -> None:
    for difference in found:
        for row in (difference.stored, difference.told):
            if isinstance(row, RunRow):
                await connection.execute("delete from runs where run_id = $1", row.run_id)
            elif row is not None:
                await connection.execute("delete from transcript where session_no = $1 and seq = $2", number, row.seq)
        told = difference.told
        if isinstance(told, RunRow):
            await connection.execute(_ADD_RUN, *RUNS.read(told))
        elif told is not None:
            await connection.execute(_ADD_ITEM, number, *ITEMS.read(told))
    if any(isinstance(row, TranscriptRow) for one in found for row in (one.stored, one.told)):
        for statement in _INDEX_AGAIN:
            await connection.execute(statement, number)


# --- the connection --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _connected(address: str) -> AsyncGenerator[Connection]:
    connection = await connect(address)
    try:
        yield connection
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()


@asynccontextmanager
async def _transaction(connection: Connection, begin: str) -> AsyncGenerator[None]:
    """Whoever stops in the middle has changed nothing: the connection ends with the command."""
    await connection.execute(begin)
    yield
    await connection.execute("commit")
