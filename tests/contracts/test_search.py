"""What every store promises about search: everything committed is seen, newest first, and all stores agree."""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.builders import SESSION, Owner, an_item, said
from contracts.conftest import PLUGS, open_plug
from paddock.ports import Store
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.queries import TranscriptQuery
from paddock.rules.search.tokens import phrases_of
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


def asked(query: str, **more: Any) -> TranscriptQuery:
    return TranscriptQuery(phrases_of(query), **more)


async def fill(store: Store, items: Sequence[TranscriptRow], session_id: str = SESSION) -> Owner:
    owner = await Owner.of(store, session_id)
    await owner.write(said("hi"), rows=items)
    return owner


async def found(store: Store, query: TranscriptQuery, session_id: str = SESSION) -> list[int]:
    return [row.seq for row in await store.search(session_id, query)]


def talk(*texts: str, session_id: str = SESSION) -> list[TranscriptRow]:
    return [an_item(seq, session_id, text) for seq, text in enumerate(texts, 1)]


async def test_the_newest_hits_come_first_and_are_whole_items(store: Store) -> None:
    items = talk("今天天气很好", "no weather here", "天气预报：下雨", "The weather is fine")
    await fill(store, items)
    assert await store.search(SESSION, asked("天气")) == [items[2], items[0]]
    assert await found(store, asked("WEATHER")) == [4, 2]
    assert await found(store, asked("weather", limit=1)) == [4]
    assert await found(store, asked("雨")) == [3]


async def test_only_the_conversation_asked_for_is_searched(store: Store) -> None:
    await fill(store, talk("needle"))
    await fill(store, talk("hay", "needle", session_id="other"), "other")
    assert await found(store, asked("needle")) == [1]
    assert await found(store, asked("needle"), "other") == [2]
    assert await found(store, asked("needle"), "unknown") == []


async def test_what_was_just_written_is_found(store: Store) -> None:
    owner = await fill(store, talk("one"))
    for seq in range(2, 6):
        await owner.write(said("more"), rows=[an_item(seq, content=f"word{seq}")])
        assert await found(store, asked(f"word{seq}")) == [seq]


async def test_filters_cut_down_what_is_found(store: Store) -> None:
    kinds = [("user", "message"), ("assistant", "message"), ("assistant", "tool_call"), ("tool", "tool_result")]
    items = [
        replace(an_item(seq, content="word"), role=role, item_type=kind, created_at=float(seq))
        for seq, (role, kind) in enumerate(kinds, 1)
    ]
    await fill(store, items)
    assert await found(store, asked("word", roles=frozenset({"assistant", "tool"}))) == [4, 3, 2]
    assert await found(store, asked("word", kinds=frozenset({("assistant", "message")}))) == [2]
    assert await found(store, asked("word", kinds=frozenset())) == []
    assert await found(store, asked("word", after=1.0, before=4.0)) == [3, 2]


@pytest.mark.parametrize(
    "query", ['"', "%", "word*", "word OR other", "a:b", "(word", "NEAR(word other)", "-word", "'"]
)
async def test_nothing_in_a_query_is_an_operator(store: Store, query: str) -> None:
    await fill(store, talk("word", "other"))
    expected = [1] if query in {"word*", "(word", "-word"} else []
    assert await found(store, asked(query)) == expected


async def test_a_long_conversation_is_searched_to_its_beginning(store: Store) -> None:
    """More items than are ever read one by one, so an index must have them; then more, and a tail beside the index."""
    items = [an_item(seq, content="针" if seq % 500 == 1 else f"第{seq}句话") for seq in range(1, 1201)]
    owner = await fill(store, items)
    assert await found(store, asked("针")) == [1001, 501, 1]
    assert await found(store, asked("第7句话")) == [7]
    await owner.write(said("more"), rows=[an_item(1201, content="又一根针")])
    assert await found(store, asked("针")) == [1201, 1001, 501, 1]
    assert await found(store, asked("针", limit=2)) == [1201, 1001]


words = st.sampled_from(
    ["天气", "北京天气", "气", "hello", "Hello World", "100%", "c++", "é", "你好，世界", "🎉", "x_y"]
)
texts = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=12)


@given(texts=texts, queries=st.lists(words, min_size=1, max_size=4), cut=st.integers(0, 12))
@settings(max_examples=25, deadline=None)
def test_an_index_changes_no_answer(texts: list[str], queries: list[str], cut: int) -> None:
    """Each plug, with the first `cut` items pushed into its index if it has one, answers like a scan."""

    async def answers(plug: str, directory: Path) -> list[list[int]]:
        with open_plug(plug, directory) as store:
            await store.open()
            items = talk(*texts)
            owner = await fill(store, items[:cut])
            if (indexing := getattr(store, "history", None)) is not None:
                await indexing.catch_up(SESSION)
            await owner.write(said("more"), rows=items[cut:])
            told = [await found(store, asked(query)) for query in queries]
            await store.close()
        return told

    async def everybody() -> list[list[list[int]]]:
        with tempfile.TemporaryDirectory() as directory:
            return list(await asyncio.gather(*(answers(plug, Path(directory) / plug) for plug in PLUGS)))

    newest_first = talk(*texts)[::-1]
    scanned = [[row.seq for row in asked(query).scan(newest_first)] for query in queries]
    assert anyio.run(everybody) == [scanned] * len(PLUGS)
