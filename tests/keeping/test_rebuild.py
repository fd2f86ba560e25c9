"""Runs and transcripts follow from the log, byte for byte, and can be made anew from it."""

from pathlib import Path

import apsw
import pytest

from host.scripted import small_house
from keeping.conversations import THREAD, a_lively_conversation, a_turn
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.commands import compare, rebuild

pytestmark = pytest.mark.anyio

TABLES = ("runs", "transcript", "sessions")


async def conversations(directory: Path) -> None:
    store = SqliteStore(directory)
    async with small_house(store) as house:
        await a_lively_conversation(house)
        await a_turn(house, thread="0197a000-0000-7000-8000-000000000002")
    await store.close()


def rows(directory: Path) -> dict[str, list[tuple[object, ...]]]:
    connection = apsw.Connection(str(directory / "paddock.db"))
    return {table: list(connection.execute(f"select * from {table} order by 1, 2")) for table in TABLES}


def change(directory: Path, *statements: str) -> None:
    connection = apsw.Connection(str(directory / "paddock.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


async def test_what_is_stored_is_what_the_log_says(tmp_path: Path) -> None:
    await conversations(tmp_path)
    assert len(rows(tmp_path)["transcript"]) == 10
    assert list(compare(tmp_path)) == []
    assert list(rebuild(tmp_path)) == []


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("delete from transcript where seq > 3", "is missing"),
        ("update transcript set content = content || '!' where role = 'user'", "differs"),
        ("update runs set status = 'completed', code = null where status = 'failed'", "differs"),
        ("delete from runs", "is missing"),
        (
            """
            insert into transcript select session_no, seq + 1000, 'x', run_id, role, item_type, agent_id, content,
              content_json, created_at, metadata, subthread_id from transcript""",
            "is not in the log",
        ),
    ],
)
async def test_tables_that_were_changed_are_found_and_put_right(tmp_path: Path, statement: str, finding: str) -> None:
    await conversations(tmp_path)
    before = rows(tmp_path)
    change(tmp_path, statement)
    found = [difference.sentence for difference in compare(tmp_path)]
    assert found
    assert all(sentence.endswith(finding) for sentence in found)

    assert [difference.sentence for difference in rebuild(tmp_path)] == found
    assert rows(tmp_path) == before
    assert list(compare(tmp_path)) == []


async def test_a_rebuilt_conversation_goes_on_and_is_searched(tmp_path: Path) -> None:
    await conversations(tmp_path)
    change(tmp_path, "delete from transcript", "delete from runs")
    assert list(rebuild(tmp_path))
    store = SqliteStore(tmp_path)
    async with small_house(store) as house:
        await a_turn(house, "once more", "and gladly")
        assert [item.content for item in await store.transcript(THREAD, limit=2)] == ["and gladly", "once more"]
        assert await store.transcript_count(THREAD) == 10
    await store.close()
