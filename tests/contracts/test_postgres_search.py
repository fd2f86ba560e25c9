"""The search index on PostgreSQL: what is deleted or erased is gone from it, long texts and conversations are in it."""

import asyncio
from collections.abc import AsyncIterator

import anyio
import pytest

from contracts.builders import SESSION, Owner, an_item, said
from contracts.test_search import asked, found
from paddock.rules.rows.forgetting import SessionGone
from paddock.storage.postgres import PostgresStore, search
from paddock.storage.postgres.connection import Connection
from postgres_server import a_database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    with a_database() as address:
        plug = PostgresStore(address)
        await plug.open()
        yield plug
        await plug.close()


async def fill(store: PostgresStore, *texts: str) -> Owner:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(seq, content=text) for seq, text in enumerate(texts, 1)])
    await index(store)
    return owner


async def index(store: PostgresStore) -> None:
    assert store._indexing is not None
    await store._indexing.catch_up(SESSION)


async def do(store: PostgresStore, statement: str) -> None:
    await store.perform(lambda connection: connection.execute(statement))


async def indexed(store: PostgresStore, word: str) -> int:
    return (await store.reader.one("select count(*) from search where tokens @> array[$1]", word))[0]


async def test_a_deleted_item_leaves_the_index(store: PostgresStore) -> None:
    await fill(store, "secret1 天气", "secret2 天气", "secret3 天气")
    assert await indexed(store, "secret2") == 1
    await do(store, "delete from transcript where seq = 2")
    assert await indexed(store, "secret2") == 0
    assert await found(store, asked("天气")) == [3, 1]


async def test_an_erased_item_leaves_the_index_and_does_not_come_back(store: PostgresStore) -> None:
    await fill(store, "secret1", "secret2")
    await do(store, "update transcript set content = '' where seq = 2")
    await index(store)
    assert (await indexed(store, "secret2"), await indexed(store, "secret1")) == (0, 1)
    assert await found(store, asked("secret2")) == []


async def test_a_changed_item_is_found_by_its_new_words_only(store: PostgresStore) -> None:
    await fill(store, "one", "two", "three")
    await do(store, "update transcript set content = 'renamed' where seq = 2")
    for _ in range(2):
        assert await found(store, asked("renamed")) == [2]
        assert await found(store, asked("two")) == []
        assert await found(store, asked("three")) == [3]
        await index(store)


async def test_an_item_cannot_be_erased_while_its_words_are_on_their_way_into_the_index(store: PostgresStore) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1, content="secret")])
    erased: list[asyncio.Task[None]] = []

    async def add(connection: Connection) -> None:
        await search.add_part(connection, SESSION, 10)
        erased.append(asyncio.create_task(do(store, "update transcript set content = ''")))
        await asyncio.wait(erased, timeout=0.2)
        assert not erased[0].done()

    await store.perform(add)
    with anyio.fail_after(30):
        await erased[0]
    assert await indexed(store, "secret") == 0


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


async def test_a_growing_conversation_is_indexed_in_the_background(store: PostgresStore) -> None:
    owner = await Owner.of(store)
    for start in range(1, 401, 100):
        await owner.write(said("hi"), rows=[an_item(seq, content="word") for seq in range(start, start + 100)])
    with anyio.fail_after(30):
        while await indexed(store, "word") < 256:
            await anyio.sleep(0.01)
