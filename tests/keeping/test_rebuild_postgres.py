"""The same on PostgreSQL: logs verify, tables follow from them byte for byte, and an operator puts them right."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from host.scripted import small_house
from keeping.conversations import THREAD, a_lively_conversation, a_turn
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.commands import check, compare, rebuild
from postgres_server import a_database
from warm import Command

TABLES = ("runs", "transcript", "sessions")


@pytest.fixture
def address() -> Iterator[str]:
    """A database with two conversations in it."""
    with a_database() as address:
        asyncio.run(conversations(address))
        yield address


async def conversations(address: str) -> None:
    store = PostgresStore(address)
    async with small_house(store) as house:
        await a_lively_conversation(house)
        await a_turn(house, "with \x00 in it", thread="0197a000-0000-7000-8000-000000000002")
    await store.close()


def in_database(address: str, *statements: str) -> list[list[Any]]:
    async def ask() -> list[list[Any]]:
        connection = await asyncpg.connect(address)
        try:
            return [[tuple(row) for row in await connection.fetch(statement)] for statement in statements]
        finally:
            await connection.close()

    return asyncio.run(ask())


def rows(address: str) -> list[list[Any]]:
    return in_database(address, *(f"select * from {table} order by 1, 2" for table in TABLES))


def told(found: AsyncIterator[Any]) -> list[Any]:
    async def gather() -> list[Any]:
        return [one async for one in found]

    return asyncio.run(gather())


def test_what_is_stored_is_what_the_log_says(address: str) -> None:
    before = rows(address)
    assert len(before[1]) == 10
    assert [damage for _, damage in told(check(address))] == [None, None]
    assert told(compare(address)) == told(rebuild(address)) == []
    assert rows(address) == before


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
def test_tables_that_were_changed_are_found_and_put_right(address: str, statement: str, finding: str) -> None:
    before = rows(address)
    in_database(address, statement)
    found = [difference.sentence for difference in told(compare(address))]
    assert found
    assert all(sentence.endswith(finding) for sentence in found)

    assert [difference.sentence for difference in told(rebuild(address))] == found
    assert rows(address) == before
    assert told(compare(address)) == []


def test_nothing_is_put_right_under_a_host_that_serves(address: str, tmp_path: Path) -> None:
    async def beside_a_host() -> None:
        store = PostgresStore(address, host_id="one", url="http://127.0.0.1:1")
        await store.open()
        try:
            assert [difference async for difference in compare(address)] == []
            with pytest.raises(StorageUnavailableError, match="stop them first, or only compare, with --check"):
                _ = [difference async for difference in rebuild(address)]
        finally:
            assert store.hosts is not None
            await store.hosts.leave("stopped")
            await store.close()

    asyncio.run(beside_a_host())


def test_an_operator_verifies_and_rebuilds_a_database(
    address: str,
    paddock: Command,
    tmp_path: Path,
) -> None:
    env = {"PADDOCK_STORE": address, "PADDOCK_DATA": str(tmp_path)}
    assert paddock("admin", "verify", env=env).stdout == (
        "Looked at 2 conversations and 0 stored files: everything is as it was written.\n"
    )
    in_database(address, "delete from transcript where seq > 3")
    checked = paddock("admin", "rebuild", "--check", env=env)
    assert (checked.returncode, "is missing" in checked.stdout) == (1, True)
    rebuilt = paddock("admin", "rebuild", env=env)
    assert (rebuilt.returncode, "rows were put right" in rebuilt.stdout) == (0, True), rebuilt.stderr
    assert paddock("admin", "rebuild", "--check", env=env).returncode == 0
    in_database(address, "update facts set sender = 'somebody else' where seq = 2")
    verified = paddock("admin", "verify", env=env)
    assert (verified.returncode, f"conversation {THREAD}: fact" in verified.stdout) == (1, True)

    unknown = paddock("admin", "verify", env={**env, "PADDOCK_STORE": "postgresql://127.0.0.1:1/none"})
    assert (unknown.returncode, "store = postgresql" in unknown.stderr) == (2, True), unknown.stderr
