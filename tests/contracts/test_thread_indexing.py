"""When conversations get into the index they are found by: late, all of them, and never more than may stay there."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from contracts.builders import an_item, said
from contracts.test_thread_search import asked, enough_patience, found, hold
from paddock.rules.rows.forgetting import ItemErased
from paddock.rules.rows.rows import SessionDetailsRow
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.search import PostgresIndex
from paddock.storage.search import threads
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.search import SqliteIndex
from postgres_server import a_database

pytestmark = pytest.mark.anyio
__all__ = ["enough_patience"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    plug = SqliteStore(tmp_path)
    await plug.open()
    yield plug
    await plug.close()


async def indexed(store: SqliteStore, word: str) -> int:
    sql = "select count(*) from thread_search where thread_search match ?"
    return await store.ask(lambda connection: connection.execute(sql, (word,)).fetchone()[0])


async def test_nothing_is_indexed_before_somebody_looks_and_then_only_what_is_theirs(store: SqliteStore) -> None:
    await hold(store, "anns", "needle")
    await hold(store, "bobs", "needle", user_id="bob")
    assert await indexed(store, "needle") == 0
    assert await found(store, "hay") == []
    assert await indexed(store, "needle") == 1


async def test_a_restart_forgets_nothing(store: SqliteStore) -> None:
    owner = await hold(store, "one", "first")
    assert await found(store, "first") == ["one"]
    await owner.write(said("more"), rows=[an_item(2, "one", "second")])
    await store.write([SessionDetailsRow("one", title="third")])
    await store.close()
    await store.open()
    assert [await found(store, word) for word in ("first", "second", "third")] == [["one"]] * 3


async def test_more_conversations_than_can_be_remembered_are_looked_for(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_FRESH", 3)
    monkeypatch.setattr(SqliteIndex, "CONVERSATIONS", 2)
    monkeypatch.setattr(SqliteIndex, "MESSAGES", 4)
    assert await found(store, "needle") == []
    names = [f"session-{number}" for number in range(9)]
    for name in names:
        await hold(store, name, "needle", *["hay"] * 6)
    assert await found(store, "needle") == names[::-1]


async def test_a_search_answers_from_what_is_there_and_says_so_while_the_rest_follows(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hold(store, "one", "needle")
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", 0.0)
    early = await store.find_sessions(asked("needle"))
    assert early.complete is False  # whatever of it was there by then
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", 30.0)
    assert await found(store, "needle") == ["one"]


async def test_a_disk_that_takes_nothing_more_still_lets_find_what_is_indexed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await hold(store, "one", "needle")
    assert await found(store, "needle") == ["one"]
    await owner.write(said("more"), rows=[an_item(2, "one", "later")])

    def full(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteIndex, "add", full)
        answer = await store.find_sessions(asked("needle"))
        assert ([one.summary.session_id for one in answer.threads], answer.complete) == (["one"], False)
    assert await found(store, "later") == ["one"]


async def test_erased_words_and_old_titles_leave_the_index_at_once(store: SqliteStore) -> None:
    await hold(store, "one", "secret", "kept")
    await store.write([SessionDetailsRow("one", title="Hidden")])
    assert await found(store, "secret") == ["one"]
    await store.write([ItemErased("one", 1, "", b"", b"{}"), SessionDetailsRow("one", title="")])
    assert (await indexed(store, "secret"), await indexed(store, "hidden"), await indexed(store, "kept")) == (0, 0, 1)


async def test_what_another_host_wrote_is_found_and_a_long_conversation_to_its_beginning() -> None:
    with a_database() as address:
        here, there = PostgresStore(address), PostgresStore(address)
        await here.open()
        await there.open()
        await hold(there, "long", "needle", *(f"line {number}" for number in range(150)))
        assert await found(here, "needle") == ["long"]
        await hold(there, "next", "needle")
        assert await found(here, "needle") == ["next", "long"]
        assert await found(there, "line 149") == ["long"]
        await there.close()
        await here.close()


async def test_many_conversations_are_found_page_by_page_across_all_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.storage.postgres.search.THREADS", 2)
    monkeypatch.setattr("paddock.storage.postgres.search.WIDTHS", (1, 2))
    monkeypatch.setattr(PostgresIndex, "CONVERSATIONS", 3)
    with a_database() as address:
        store = PostgresStore(address)
        await store.open()
        names = [f"session-{number}" for number in range(11)]
        for name in names:
            await hold(store, name, "needle in hay", "the needle")
        assert await found(store, "needle") == names[::-1]
        first = await store.find_sessions(asked("needle in", limit=4))
        rest = await found(store, "needle in", before=first.threads[-1].summary.number)
        assert [one.summary.session_id for one in first.threads] + rest == names[::-1]
        await store.close()
