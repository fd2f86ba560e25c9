"""What every store promises about finding conversations: by title and by what was said, only one's own."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.builders import Owner, a_session, an_item, said
from contracts.conftest import PLUGS, open_plug
from paddock.ports import Store
from paddock.rules.rows.forgetting import ItemErased, LogTrimmed, SessionGone
from paddock.rules.rows.rows import LeftBehindRow, SessionDetailsRow, SessionRow
from paddock.rules.search.queries import FoundThreads, ThreadQuery, thread_phrases
from paddock.rules.search.tokens import contains_all
from paddock.rules.values import replace
from paddock.storage.search import threads

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def enough_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take longer than people like to wait."""
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", 30.0)


def asked(query: str, **more: Any) -> ThreadQuery:
    whose: dict[str, Any] = {"workspace_id": "workspace", "user_id": "ann"}
    return ThreadQuery(phrases=thread_phrases(query), **{**whose, **more})


async def hold(store: Store, name: str, *texts: str, **whose: str) -> Owner:
    """A conversation in which these things were said."""
    owner = await Owner.of(store, name)
    items = [an_item(seq, name, text) for seq, text in enumerate(texts, 1)]
    row = replace(a_session(name), **whose)
    batch = owner.batch(*(said(text) for text in texts or ["hi"]), rows=items)
    rows = [row if isinstance(one, SessionRow) else one for one in batch.rows]
    await store.append(replace(batch, rows=rows))
    owner.head = batch.after
    return owner


def names(found: FoundThreads) -> list[str]:
    assert found.complete
    return [one.summary.session_id for one in found.threads]


async def found(store: Store, query: str, **more: Any) -> list[str]:
    return names(await store.find_sessions(asked(query, **more)))


async def test_a_conversation_is_found_by_what_was_said_the_newest_first_with_the_newest_message(store: Store) -> None:
    await hold(store, "one", "The weather in Oslo", "It rains", "More weather")
    await hold(store, "two", "今天天气很好", "no weather here")
    await hold(store, "three", "Nothing of it")
    answer = await store.find_sessions(asked("WEATHER"))
    assert [(one.summary.session_id, one.item and one.item.seq) for one in answer.threads] == [("two", 2), ("one", 3)]
    assert await found(store, "天气") == ["two"]
    assert await found(store, "气") == ["two"]
    assert await found(store, "weather oslo") == ["one"]
    assert await found(store, "rains oslo") == []


async def test_a_conversation_is_found_by_its_title_as_it_is_now(store: Store) -> None:
    await hold(store, "one", "hello")
    assert await found(store, "taxes") == []
    await store.write([SessionDetailsRow("one", title="Taxes 2026 报税")])
    answer = await store.find_sessions(asked("taxes"))
    assert [(one.summary.title, one.item) for one in answer.threads] == [("Taxes 2026 报税", None)]
    assert await found(store, "报税") == ["one"]
    await store.write([SessionDetailsRow("one", title="Holidays")])
    assert await found(store, "taxes") == []
    assert await found(store, "holidays") == ["one"]
    await store.write([SessionDetailsRow("one", title="")])
    assert await found(store, "holidays") == []


async def test_a_title_that_was_given_before_anything_was_looked_for_is_found(store: Store) -> None:
    await hold(store, "one", "hello")
    await store.write([SessionDetailsRow("one", title="Taxes")])
    assert await found(store, "tax") == ["one"]


async def test_the_last_word_may_be_a_beginning_of_three_letters(store: Store) -> None:
    await hold(store, "one", "The budget of Zürich, budgetary")
    assert await found(store, "bud") == ["one"]
    assert await found(store, "budge") == ["one"]
    assert await found(store, "the zur") == ["one"]
    assert await found(store, "bu") == []
    assert await found(store, "bud ") == []
    assert await found(store, "bud the") == []
    assert await found(store, "of-zur") == ["one"]
    assert await found(store, "the-budget of") == ["one"]


async def test_nobody_finds_what_is_not_theirs(store: Store) -> None:
    await hold(store, "mine", "needle")
    await hold(store, "bobs", "needle", user_id="bob")
    await hold(store, "elsewhere", "needle", workspace_id="elsewhere")
    await store.write([SessionDetailsRow(name, title="needle") for name in ("mine", "bobs", "elsewhere")])
    assert await found(store, "needle") == ["mine"]
    assert await found(store, "needle", user_id="bob") == ["bobs"]
    assert await found(store, "needle", workspace_id="elsewhere") == ["elsewhere"]
    assert await found(store, "needle", workspace_id="elsewhere", user_id="bob") == []


async def test_pages_follow_each_other_and_archived_ones_are_as_in_the_list(store: Store) -> None:
    for number in range(5):
        await hold(store, f"session-{number}", "needle " * (number + 1), "another needle")
    await store.write([SessionDetailsRow("session-3", archived=True)])
    first = await store.find_sessions(asked("needle", limit=2))
    assert names(first) == ["session-4", "session-3"]
    rest = await found(store, "needle", before=first.threads[-1].summary.number, limit=9)
    assert rest == ["session-2", "session-1", "session-0"]
    assert await found(store, "needle", archived=True) == ["session-3"]
    assert await found(store, "needle", archived=False, limit=2) == ["session-4", "session-2"]


async def test_a_word_said_a_hundred_times_in_one_conversation_hides_no_other(store: Store) -> None:
    await hold(store, "first", "needle")
    await hold(store, "long", *(f"needle {number}" for number in range(150)))
    await hold(store, "last", "needle")
    assert await found(store, "needle") == ["last", "long", "first"]
    assert await found(store, "needle 0") == ["long"]


async def test_what_is_said_after_a_search_is_found_by_the_next(store: Store) -> None:
    owner = await hold(store, "one", "hello")
    other = await hold(store, "two", "hello", user_id="bob")
    for seq in range(2, 5):
        await owner.write(said("more"), rows=[an_item(seq, "one", f"word{seq}")])
        await other.write(said("more"), rows=[an_item(seq, "two", f"word{seq}")])
        assert await found(store, f"word{seq}") == ["one"]
    assert await found(store, "word3", user_id="bob") == ["two"]


async def test_tools_are_no_part_of_what_was_said(store: Store) -> None:
    owner = await hold(store, "one", "hello")
    told = replace(an_item(2, "one", "needle"), role="tool", item_type="tool_result")
    await owner.write(said("more"), rows=[told])
    assert await found(store, "needle") == []


async def test_what_an_edit_left_behind_is_not_found_but_what_came_before_it_is(store: Store) -> None:
    owner = await hold(store, "one", "needle old", "needle new")
    await owner.write(said("edit"), rows=[LeftBehindRow("one", 2, 2)])
    answer = await store.find_sessions(asked("needle"))
    assert [one.item and one.item.seq for one in answer.threads] == [1]
    assert await found(store, "new") == []


async def test_what_was_erased_trimmed_or_deleted_is_not_found(store: Store) -> None:
    await hold(store, "erased", "needle")
    trimmed = await hold(store, "trimmed", "needle", "hay")
    await hold(store, "deleted", "needle")
    assert await found(store, "needle") == ["deleted", "trimmed", "erased"]
    await store.write([ItemErased("erased", 1, "", b"", b"{}")])
    await store.write([LogTrimmed("trimmed", 1, trimmed.head.digest)])
    await store.write([SessionGone("deleted")])
    assert await found(store, "needle") == []
    assert await found(store, "hay") == ["trimmed"]


async def test_punctuation_finds_nothing_and_nothing_in_a_query_is_an_operator(store: Store) -> None:
    await hold(store, "one", "word")
    assert await found(store, "...") == []
    for query in ('"', "word OR other", "word* -other", "NEAR(word other)", "'", "a:b", "@word"):
        assert await found(store, query) == []
    assert await found(store, "(word") == ["one"]


words = st.sampled_from(
    [
        "天气",
        "北京天气",
        "气",
        "hello",
        "Hello World",
        "100%",
        "c++",
        "é",
        "你好，世界",
        "🎉",
        "x_y",
        "hel",
        "worldwide",
    ]
)
talks = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4)


@given(held=st.lists(talks, min_size=1, max_size=4), queries=st.lists(words, min_size=1, max_size=4))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_store_finds_what_a_scan_finds(held: list[list[str]], queries: list[str]) -> None:
    async def answers(plug: str, directory: Path) -> list[list[Any]]:
        with open_plug(plug, directory) as store:
            await store.open()
            for number, texts in enumerate(held):
                await hold(store, f"session-{number}", *texts)
            told = [await store.find_sessions(asked(query)) for query in queries]
            await store.close()
        return [[(one.summary.session_id, one.item) for one in answer.threads] for answer in told]

    async def everybody() -> list[list[list[Any]]]:
        with tempfile.TemporaryDirectory() as directory:
            return list(await asyncio.gather(*(answers(plug, Path(directory) / plug) for plug in PLUGS)))

    scanned = [scan(held, asked(query)) for query in queries]
    assert anyio.run(everybody) == [scanned] * len(PLUGS)


def scan(held: list[list[str]], query: ThreadQuery) -> list[Any]:
    """What looking at every conversation finds, the newest first, each with its newest words that match."""
    found: list[Any] = []
    for number, texts in reversed(list(enumerate(held))):
        name = f"session-{number}"
        items = [an_item(seq, name, text) for seq, text in enumerate(texts, 1)]
        said_last = next((row for row in reversed(items) if contains_all(row.content, query.phrases)), None)
        if said_last is not None:
            found.append((name, said_last))
    return found
