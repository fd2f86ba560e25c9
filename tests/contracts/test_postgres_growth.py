"""What is asked again and again of PostgreSQL reads no more of it when there is more."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from contracts.builders import Owner, a_run, said
from contracts.test_calls import used
from contracts.test_postgres import read_by
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.connection import connect
from paddock.storage.postgres.engine import bound
from paddock.storage.postgres.hosts import LEFT
from paddock.storage.tables.calls import SPENT_ON
from postgres_server import a_database, database_of, the_server

pytestmark = pytest.mark.anyio

DAY = 20_000 * 86_400.0
MANY = 5000


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


async def rows_read(address: str, statement: str, values: Sequence[Any]) -> float:
    connection = await connect(address)
    try:
        [[plan]] = await connection.fetch(f"explain (analyze, timing off, format json) {statement}", *values)
        return read_by(json.loads(plan)[0]["Plan"])
    finally:
        connection.terminate()


async def test_what_was_spent_today_is_known_without_reading_every_call(address: str) -> None:
    store = PostgresStore(address)
    await store.open()
    try:
        await store.write([used(f"u{number}", started_at=DAY + number) for number in range(MANY)])
        assert await store.spent_on(DAY, "w", "ann") == (15 * MANY, 0.25 * MANY)
    finally:
        await store.close()
    for who in ("ann", None):
        assert await rows_read(address, bound(SPENT_ON.sql).sql, (DAY, "w", who)) <= 2


async def test_what_a_host_left_is_found_without_looking_at_what_is_open_at_others(address: str) -> None:
    here, gone = (PostgresStore(address, host_id=name) for name in ("here", "gone"))
    await here.open()
    await gone.open()
    try:
        for store, thread in ((here, "at-work"), (gone, "left")):
            owner = await Owner.of(store, thread)
            await owner.write(said("hi"), rows=[a_run(f"run-{thread}", session_id=thread, status="running")])
        assert gone.hosts is not None
        assert here.hosts is not None
        await gone.hosts.leave("host_lost")
        the_server().sql(_open_runs(here.hosts.boot), database_of(address))
        assert [left.session_id for left in await here.hosts.left_behind(limit=10)] == ["left"]
    finally:
        await here.close()
        await gone.close()
    assert await rows_read(address, bound(LEFT.sql).sql, ("host_restarted", 10)) <= 10


def _open_runs(boot: int) -> str:
    """Many more runs that are open at that host."""
    columns = (
        "run_id, session_id, workspace_id, user_id, client_run_id, agent_id, runner_id, status, created_at, first_seq"
    )
    return (
        f'insert into runs ({columns}, last_seq, "grant", usage, boot) '
        f"select 'r' || n, 'at-work', 'w', 'ann', '', 'a', 'r', 'running', 1, 1, 1, '', '', {boot} "
        f"from generate_series(1, {MANY}) n; analyze runs"
    )
