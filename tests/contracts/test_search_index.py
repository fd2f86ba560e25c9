"""The search index of every store: what is deleted or erased is gone from it, and what changed is found anew."""

import anyio
import pytest

from contracts.builders import SESSION, Owner, an_item, said
from contracts.search_index import do, index, indexed
from contracts.test_search import asked, found
from paddock.ports import Store
from paddock.rules.rows.forgetting import SessionGone

pytestmark = pytest.mark.anyio


async def fill(store: Store, *texts: str) -> Owner:
    """A conversation with these messages, all of them in the index."""
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(seq, content=text) for seq, text in enumerate(texts, 1)])
    await index(store)
    return owner


async def test_a_deleted_item_leaves_the_index(store: Store) -> None:
    await fill(store, "secret1 天气", "secret2 天气", "secret3 天气")
    assert await indexed(store, "secret2") == 1
    await do(store, "delete from transcript where seq = 2")
    assert await indexed(store, "secret2") == 0
    assert await found(store, asked("天气")) == [3, 1]


async def test_an_erased_item_leaves_the_index_and_does_not_come_back(store: Store) -> None:
    await fill(store, "secret1", "secret2")
    await do(store, "update transcript set content = '' where seq = 2")
    await index(store)
    assert (await indexed(store, "secret2"), await indexed(store, "secret1")) == (0, 1)
    assert await found(store, asked("secret2")) == []


async def test_a_changed_item_is_found_by_its_new_words_only(store: Store) -> None:
    await fill(store, "one", "two", "three")
    await do(store, "update transcript set content = 'renamed' where seq = 2")
    for _ in range(2):
        assert await found(store, asked("renamed")) == [2]
        assert await found(store, asked("two")) == []
        assert await found(store, asked("three")) == [3]
        await index(store)


async def test_a_deleted_conversation_leaves_the_index_and_its_words_do_not_come_back(store: Store) -> None:
    await fill(store, "secret 天气")
    await store.write([SessionGone(SESSION)])
    while await store.purge():
        pass
    assert (await indexed(store, "secret"), await indexed(store, "天气")) == (0, 0)
    owner = await Owner.of(store, "next")
    await owner.write(said("hi"), rows=[an_item(1, "next", "fresh")])
    assert await found(store, asked("fresh"), "next") == [1]
    assert await found(store, asked("secret"), "next") == []


async def test_a_growing_conversation_is_indexed_in_the_background(store: Store) -> None:
    owner = await Owner.of(store)
    for start in range(1, 401, 100):
        await owner.write(said("hi"), rows=[an_item(seq, content="word") for seq in range(start, start + 100)])
    with anyio.fail_after(30):
        while await indexed(store, "word") < 256:
            await anyio.sleep(0.01)


async def test_an_unfinished_index_goes_on_after_a_restart(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(seq, content=f"w{seq}") for seq in range(1, 201)])
    await store.close()
    await store.open()
    assert await found(store, asked("w1")) == [1]
    await index(store)
    assert await indexed(store, "w1") == 1
    assert await found(store, asked("w200")) == [200]
