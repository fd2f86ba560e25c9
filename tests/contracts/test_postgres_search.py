"""The search index on PostgreSQL, beyond the contract of all stores: long texts and conversations are in it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from contracts.builders import SESSION, Owner, an_item, said
from contracts.search_index import do, index, indexed
from contracts.test_search import asked, found
from contracts.test_search_index import fill
from paddock.rules.rows.forgetting import SessionGone
from paddock.storage.postgres import PostgresStore, search
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.engine import Ask
from postgres_server import a_database

pytestmark = pytest.mark.anyio
HELD_UP = "select exists (select 1 from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)))"
"""Is anybody waiting for a lock that this connection holds?"""


async def until_held_up(connection: Connection) -> None:
    with anyio.fail_after(30):
        while not await connection.fetchval(HELD_UP):
            await connection.execute("select pg_stat_clear_snapshot()")


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    with a_database() as address:
        plug = PostgresStore(address)
        await plug.open()
        yield plug
        await plug.close()


async def test_an_item_cannot_be_erased_while_its_words_are_on_their_way_into_the_index(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1, content="secret")])
    erased: list[asyncio.Task[None]] = []

    perform = store.reader.perform

    async def then_erase(add: Ask[Any], **more: Any) -> Any:
        async def both(connection: Connection) -> None:
            await add(connection)
            erased.append(asyncio.create_task(do(store, "update transcript set content = ''")))
            await until_held_up(connection)
            assert not erased[0].done()

        monkeypatch.undo()
        return await perform(both, **more)

    monkeypatch.setattr(store.reader, "perform", then_erase)
    await index(store)
    with anyio.fail_after(30):
        await erased[0]
    assert await indexed(store, "secret") == 0


async def test_an_item_that_is_being_erased_stays_out_of_the_index(store: PostgresStore) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1, content="secret"), an_item(2, content="kept")])
    indexing: list[asyncio.Task[None]] = []

    async def erase(connection: Connection) -> None:
        await connection.execute("update transcript set content = '' where seq = 1")
        indexing.append(asyncio.create_task(index(store)))
        await until_held_up(connection)

    await store.perform(erase)
    with anyio.fail_after(30):
        await indexing[0]
    assert (await indexed(store, "secret"), await indexed(store, "kept")) == (0, 1)


async def test_a_deleted_conversation_leaves_nothing_behind(store: PostgresStore) -> None:
    await fill(store, "secret")
    await store.write([SessionGone(SESSION)])
    for table in ("sessions", "transcript", "facts", "search", "search_progress"):
        assert (await store.reader.one(f"select count(*) from {table}"))[0] == 0


async def test_words_are_found_in_texts_of_any_length(store: PostgresStore) -> None:
    many = " ".join(f"w{number}" for number in range(40_000))
    await fill(store, f"{many} blue whale", "x" * 2_000_000, "blue sky, whale")
    assert await found(store, asked("blue")) == [3, 1]
    assert await found(store, asked("blue-whale")) == [1]
    assert await found(store, asked("w39999")) == [1]


async def test_hits_are_found_across_the_stretches_of_a_long_conversation(store: PostgresStore) -> None:
    owner = await Owner.of(store)
    spread = [1, search.STRETCH - 1, search.STRETCH, 3 * search.STRETCH, 5 * search.STRETCH + 7]
    await owner.write(said("hi"), rows=[an_item(seq, content="针 and hay") for seq in spread])
    await index(store)
    assert await found(store, asked("针")) == spread[::-1]
    assert await found(store, asked("hay", limit=2)) == spread[:-3:-1]
