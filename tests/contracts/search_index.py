"""Words for tests of the search index: have a conversation indexed, look into the index, change what it follows."""

import pytest

from contracts.builders import SESSION
from paddock.ports import Store
from paddock.rules.search.queries import TranscriptQuery
from paddock.rules.search.tokens import phrases_of
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.search import PostgresIndex
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.search import SqliteIndex


async def index(store: Store, session_id: str = SESSION) -> None:
    """Have all of a conversation indexed, as a search does when too much is missing to be read item by item."""
    with pytest.MonkeyPatch.context() as patch:
        for one in (SqliteIndex, PostgresIndex):
            patch.setattr(one, "MAX_TAIL", 0)
        await store.search(session_id, TranscriptQuery(phrases_of("anything")))


async def indexed(store: Store, word: str) -> int:
    """Count the items that the index has for a word."""
    if isinstance(store, PostgresStore):
        return (await store.reader.one("select count(*) from search where tokens @> array[$1]", word))[0]
    assert isinstance(store, SqliteStore)
    sql = "select count(*) from search where search match ?"
    return await store.ask(lambda connection: connection.execute(sql, (word,)).fetchone()[0])


async def do(store: Store, statement: str) -> None:
    """Change the database with a statement of SQL."""
    if isinstance(store, PostgresStore):
        await store.perform(lambda connection: connection.execute(statement))
        return
    assert isinstance(store, SqliteStore)

    def execute(cursor: Cursor) -> None:
        cursor.execute(statement)

    await store.perform(execute)
