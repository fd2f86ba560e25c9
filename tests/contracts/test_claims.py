"""Claims on PostgreSQL: those that come together are one question, and each gets its own answer."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import asyncpg
import pytest

from contracts.builders import SESSION, Owner, said
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres import PostgresStore
from postgres_server import a_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


@asynccontextmanager
async def opened(address: str, name: str = "here") -> AsyncGenerator[PostgresStore]:
    store = PostgresStore(address, host_id=name, url=f"http://{name}")
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sessions each question was about."""
    asked: list[int] = []
    from paddock.storage.postgres.engine import Reader

    plain = Reader.all

    async def all_and_count(self: Reader, sql: str, *values: Any) -> Any:
        if "nextval('epochs')" in sql:
            asked.append(len(values[0]))
        return await plain(self, sql, *values)

    monkeypatch.setattr(Reader, "all", all_and_count)
    return asked


async def test_claims_that_come_together_are_one_question(address: str, questions: list[int]) -> None:
    async with opened(address) as store:
        await (await Owner.of(store)).write(said("known"), rests=True)
        questions.clear()
        claims = await asyncio.gather(*(store.claim(name) for name in (SESSION, "new", "nul\x00", "newer")))
        assert questions == [4]
        assert [claim.head.seq for claim in claims] == [1, 0, 0, 0]
        assert len({claim.epoch for claim in claims}) == 4


async def test_two_claims_of_one_session_are_two_and_the_second_is_newer(address: str, questions: list[int]) -> None:
    async with opened(address) as store:
        first, second, _ = await asyncio.gather(*(store.claim(name) for name in (SESSION, SESSION, "other")))
        assert first.epoch < second.epoch
        assert questions == [2, 1]


async def test_what_comes_while_a_question_is_under_way_shares_the_next(address: str, questions: list[int]) -> None:
    async with opened(address) as store:
        await asyncio.gather(*(store.claim(f"s{n}") for n in range(150)))
        assert sum(questions) == 150
        assert max(questions) == 64


async def test_a_session_that_is_being_changed_keeps_nobody_else_waiting(address: str, questions: list[int]) -> None:
    async with opened(address) as store:
        await (await Owner.of(store)).write(said("known"), rests=True)
        await (await Owner.of(store, "other")).write(said("known"), rests=True)
        questions.clear()
        meddler = await asyncpg.connect(address)
        async with meddler.transaction():
            await meddler.execute("select 1 from sessions where session_id = $1 for update", SESSION)
            held = asyncio.create_task(store.claim(SESSION))
            with anyio.fail_after(20):
                assert (await store.claim("other")).head.seq == 1
                assert (await store.claim("third")).head.seq == 0
            assert not held.done()
        assert (await held).head.seq == 1
        assert questions == [2, 1, 1]
        await meddler.close()


async def test_a_lock_that_nobody_lets_go_of_ends_one_claim_alone(address: str) -> None:
    async with opened(address) as store:
        await (await Owner.of(store)).write(said("known"), rests=True)
        meddler = await asyncpg.connect(address)
        async with meddler.transaction():
            await meddler.execute("select 1 from sessions where session_id = $1 for update", SESSION)
            held, free = await asyncio.gather(store.claim(SESSION), store.claim("free"), return_exceptions=True)
            assert isinstance(held, StorageUnavailableError)
            assert not isinstance(free, BaseException)
        assert (await store.claim(SESSION)).head.seq == 1
        await meddler.close()


async def test_a_claim_that_nobody_waits_for_any_more_disturbs_no_other(address: str) -> None:
    async with opened(address) as store:
        given_up, kept = asyncio.create_task(store.claim("a")), asyncio.create_task(store.claim("b"))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await kept).head.seq == 0
        assert (await store.claim("a")).head.seq == 0


async def test_a_closed_store_refuses_claims_and_leaves_none_waiting(address: str) -> None:
    async with opened(address) as store:
        waiting = [asyncio.create_task(store.claim(f"s{n}")) for n in range(100)]
        await asyncio.sleep(0)
    with anyio.fail_after(30):
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(one, StorageUnavailableError) or not isinstance(one, BaseException) for one in ended)
    with pytest.raises(StorageUnavailableError):
        await store.claim("late")


async def test_a_deleted_session_is_known_as_deleted(address: str) -> None:
    async with opened(address) as store:
        meddler = await asyncpg.connect(address)
        await meddler.execute("insert into tombstones (session_id, deleted_at) values ($1, 0)", SESSION)
        await meddler.close()
        assert (await store.claim(SESSION)).deleted
        assert (await store.look(SESSION)).deleted
        assert not (await store.claim("other")).deleted
