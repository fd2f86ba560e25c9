"""Who waits for PostgreSQL: a statement that takes its time is left alone, words that were lost are not waited for."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from paddock.rules.agents.addresses import each_machine
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.connection import ANSWER_SECONDS, Connection, connect
from patience import at_most
from postgres_server import USER, Server, a_database, database_of, new_server, the_server
from walk.detour import Detour

pytestmark = [pytest.mark.anyio, pytest.mark.spec("http/silent-database")]


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


@asynccontextmanager
async def a_store(address: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(address)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def test_a_statement_that_takes_its_time_is_left_alone(address: str) -> None:
    async def slowly(connection: Connection) -> int:
        await connection.fetchval("select pg_sleep(4)")
        return await connection.fetchval("select 7")

    async with a_store(address) as store:
        asked = [store.reader.one("select 7 from pg_sleep(4)"), store.perform(slowly)]
        found, done = await asyncio.gather(*asked)
        assert (found[0], done) == (7, 7)


async def test_a_question_whose_connection_carries_nothing_any_more_is_answered_over_another(address: str) -> None:
    way = Detour(the_server().home / ".s.PGSQL.5432")
    try:
        async with a_store(f"postgresql://{USER}@127.0.0.1:{way.port}/{database_of(address)}") as store:
            way.swallow()
            began = time.monotonic()
            found = await store.reader.one("select 7")
            assert found[0] == 7
            assert time.monotonic() - began < ANSWER_SECONDS
    finally:
        way.close()


async def test_a_server_that_answers_nobody_is_refused_at_once_when_that_is_known_until_it_answers() -> None:
    server = new_server()
    try:
        async with a_store(server.new_database()) as store:
            server.signal_all(signal.SIGSTOP)
            with pytest.raises(StorageUnavailableError):
                await store.reader.one("select 7")
            assert not store.healthy()
            began = time.monotonic()
            with pytest.raises(StorageUnavailableError, match="does not answer in time"):
                await store.reader.one("select 7")
            assert time.monotonic() - began < at_most(0.2)
            server.signal_all(signal.SIGCONT)
            async with asyncio.timeout(30):
                while not store.healthy():
                    await asyncio.sleep(0.05)
                while await _asked(store) != 7:
                    await asyncio.sleep(0.05)
    finally:
        _let_go(server)


async def _asked(store: PostgresStore) -> int | None:
    try:
        return (await store.reader.one("select 7"))[0]
    except StorageUnavailableError:
        return None


def _let_go(server: Server) -> None:
    server.signal_all(signal.SIGCONT)
    server.let_go()


@pytest.mark.parametrize(
    ("address", "machines"),
    [
        ("postgresql://u:p@one:1,two:2/db?x=1", ["postgresql://u:p@one:1/db?x=1", "postgresql://u:p@two:2/db?x=1"]),
        (
            "postgresql://u@/db?host=one,two&port=1",
            ["postgresql://u@/db?host=one&port=1", "postgresql://u@/db?host=two&port=1"],
        ),
        ("postgresql://u@/db?host=/a", ["postgresql://u@/db?host=/a"]),
        ("postgresql://one/db", ["postgresql://one/db"]),
    ],
)
async def test_an_address_may_name_several_machines(address: str, machines: list[str]) -> None:
    assert each_machine(address) == machines


@pytest.mark.spec("http/failover")
async def test_a_machine_that_says_nothing_hides_no_other(address: str) -> None:
    silent = await asyncio.start_server(lambda *_: asyncio.sleep(60), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    way = Detour(the_server().home / ".s.PGSQL.5432")
    try:
        name = database_of(address)
        connection = await connect(f"postgresql://{USER}@127.0.0.1:{port},127.0.0.1:{way.port}/{name}")
        assert await connection.fetchval("select current_database()") == name
        connection.terminate()
    finally:
        silent.close()
        way.close()
