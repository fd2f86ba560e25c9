"""The search index of the embedded store, beyond the contract of all stores."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from contracts.builders import Owner, an_item, said
from contracts.search_index import do, index, indexed
from contracts.test_search import asked, found
from paddock.storage.sqlite.search import mark_of
from stores import QuickStore, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[QuickStore]:
    async with opened(QuickStore()) as store:
        yield store


async def test_every_item_carries_the_mark_of_its_conversation_and_no_text_can_have_it(store: QuickStore) -> None:
    items = [an_item(seq, content=f"secret{seq} 天气") for seq in (1, 2, 3)]
    await (await Owner.of(store)).write(said("hi"), rows=items)
    await (await Owner.of(store, "next")).write(said("hi"), rows=[an_item(1, "next", f"{mark_of(1)} 天气")])
    await index(store)
    await index(store, "next")
    assert (await indexed(store, f'"{mark_of(1)}"'), await indexed(store, f'"{mark_of(2)}"')) == (3, 1)
    assert await found(store, asked(mark_of(1))) == []
    assert await found(store, asked(mark_of(1)), "next") == [1]
    assert await found(store, asked("secret1 天气"), "next") == []


async def test_an_item_erased_on_its_way_into_the_index_stays_out(
    store: QuickStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[an_item(1, content="secret1"), an_item(2, content="kept")])
    write = type(store.engine).do

    async def late(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        await do(store, "update transcript set content = '' where seq = 1")
        return await write(*given, **more)

    monkeypatch.setattr(type(store.engine), "do", late)
    await index(store)
    assert (await indexed(store, "secret1"), await indexed(store, "kept")) == (0, 1)
