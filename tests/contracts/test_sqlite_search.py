"""The search index of the embedded store: what is deleted or erased is gone from it, and what changed is found anew."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.builders import SESSION, Owner, an_item, said
from contracts.test_search import asked, found
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.search import mark_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    plug = SqliteStore(tmp_path)
    await plug.open()
    owner = await Owner.of(plug)
    await owner.write(said("hi"), rows=[an_item(seq, content=f"secret{seq} 天气") for seq in range(1, 4)])
    await index(plug)
    yield plug
    await plug.close()


async def index(store: SqliteStore) -> None:
    assert store._indexing is not None
    await store._indexing.catch_up(SESSION)


async def do(store: SqliteStore, *statements: str) -> None:
    def all_of_them(cursor: Cursor) -> None:
        for one in statements:
            cursor.execute(one)

    await store.perform(all_of_them)


async def indexed(store: SqliteStore, word: str) -> int:
    assert store._pool is not None
    sql = "select count(*) from search where search match ?"
    return await store._pool.ask(lambda connection: connection.execute(sql, (word,)).fetchone()[0])


async def test_a_deleted_item_leaves_the_index(store: SqliteStore) -> None:
    assert await indexed(store, "secret2") == 1
    await do(store, "delete from transcript where seq = 2")
    assert await indexed(store, "secret2") == 0
    assert await found(store, asked("天气")) == [3, 1]


async def test_an_erased_item_leaves_the_index_and_does_not_come_back(store: SqliteStore) -> None:
    await do(store, "update transcript set content = '' where seq = 2")
    await index(store)
    assert await indexed(store, "secret2") == 0
    assert await found(store, asked("secret2")) == []


async def test_a_changed_item_is_found_by_its_new_words_only(store: SqliteStore) -> None:
    await do(store, "update transcript set content = 'renamed' where seq = 2")
    assert await found(store, asked("renamed")) == [2]
    await index(store)
    assert await found(store, asked("renamed")) == [2]
    assert await found(store, asked("secret2")) == []
    assert await found(store, asked("secret3")) == [3]


async def test_a_deleted_conversation_leaves_nothing_behind(store: SqliteStore) -> None:
    await do(store, "delete from transcript", "delete from facts", "delete from sessions")
    assert await indexed(store, "天气") == 0
    owner = await Owner.of(store, "next")
    await owner.write(said("hi"), rows=[an_item(1, "next", "fresh")])
    assert await found(store, asked("fresh"), "next") == [1]


async def test_every_item_carries_the_mark_of_its_conversation_and_no_text_can_have_it(store: SqliteStore) -> None:
    owner = await Owner.of(store, "next")
    await owner.write(said("hi"), rows=[an_item(1, "next", f"{mark_of(1)} 天气")])
    assert store._indexing is not None
    await store._indexing.catch_up("next")
    assert (await indexed(store, f'"{mark_of(1)}"'), await indexed(store, f'"{mark_of(2)}"')) == (3, 1)
    assert await found(store, asked(mark_of(1))) == []
    assert await found(store, asked(mark_of(1)), "next") == [1]
    assert await found(store, asked("secret1 天气"), "next") == []


async def test_an_item_erased_on_its_way_into_the_index_stays_out(tmp_path: Path) -> None:
    from paddock.storage.sqlite import search

    store = SqliteStore(tmp_path)
    await store.open()
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1, content="secret1"), an_item(2, content="kept")])
    assert store._pool is not None
    part = await store._pool.ask(lambda connection: search.next_part(connection, SESSION, 10))
    await do(store, "update transcript set content = '' where seq = 1")
    assert part is not None
    await store.perform(part.write)
    assert (await indexed(store, "secret1"), await indexed(store, "kept")) == (0, 1)
    await store.close()


async def test_a_growing_conversation_is_indexed_in_the_background(tmp_path: Path) -> None:
    import anyio

    store = SqliteStore(tmp_path)
    await store.open()
    owner = await Owner.of(store)
    for start in range(1, 401, 100):
        await owner.write(said("hi"), rows=[an_item(seq, content="word") for seq in range(start, start + 100)])
    with anyio.fail_after(30):
        while await indexed(store, "word") < 256:
            await anyio.sleep(0.01)
    await store.close()


async def test_an_unfinished_index_goes_on_after_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.open()
    await (await Owner.of(store)).write(said("hi"), rows=[an_item(seq, content=f"w{seq}") for seq in range(1, 201)])
    await store.close()
    await store.open()
    assert await found(store, asked("w1")) == [1]
    await index(store)
    assert await indexed(store, "w1") == 1
    assert await found(store, asked("w200")) == [200]
    await store.close()
