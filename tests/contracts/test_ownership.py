"""Several hosts on one database: who owns a session, who is gone, and what a host that was declared gone may write."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest

from contracts.builders import SESSION, Owner, a_run, said
from paddock.ports.hosts import ASKED_SECONDS, Hosts, PendingRequest
from paddock.rules.cluster import LOST, unsettled
from paddock.rules.errors import HostError, OwnedElsewhereError, StaleOwnerError
from paddock.rules.rows.forgetting import SessionGone
from paddock.rules.rows.rows import AgentRow
from paddock.rules.values import replace
from paddock.storage.postgres import PostgresStore
from paddock.storage.postgres.hosts import UNDER_WAY_SECONDS
from postgres_server import a_database

pytestmark = pytest.mark.anyio


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


class Cluster:
    def __init__(self, address: str, stack: AsyncExitStack) -> None:
        self._address = address
        self._stack = stack

    async def host(self, name: str) -> tuple[PostgresStore, Hosts]:
        store = PostgresStore(self._address, host_id=name, url=f"http://{name}")
        await store.open()
        self._stack.push_async_callback(store.close)
        assert store.hosts is not None
        return store, store.hosts

    async def silence(self, hosts: Hosts, seconds: float = 11) -> None:
        """As if that host had not been heard of for so long."""
        meddler = await asyncpg.connect(self._address)
        await meddler.execute(
            "update hosts set beat_at = beat_at - $2 * interval '1 s' where boot = $1", hosts.boot, seconds
        )
        await meddler.close()


@asynccontextmanager
async def hosts_on(address: str) -> AsyncGenerator[Cluster]:
    async with AsyncExitStack() as stack:
        yield Cluster(address, stack)


async def test_nobody_takes_a_session_from_a_host_that_has_something_going_on_in_it(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        there, _ = await cluster.host("there")
        owner = await Owner.of(here)
        await owner.write(said("going on"))
        with pytest.raises(OwnedElsewhereError) as refused:
            await there.claim(SESSION)
        assert refused.value.boot == mine.boot
        await owner.write(said("undisturbed"))
        assert (await there.look(SESSION)).head == owner.head


async def test_a_session_that_rests_is_anybodys_and_one_that_went_on_elsewhere_is_no_longer_ours(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, _ = await cluster.host("here")
        there, _ = await cluster.host("there")
        owner = await Owner.of(here)
        await owner.write(said("done"), rests=True)
        new = await Owner.of(there)
        await new.write(said("going on there"))
        with pytest.raises(StaleOwnerError):
            await owner.write(said("too late"))
        with pytest.raises(OwnedElsewhereError):
            await here.claim(SESSION)


async def test_a_conversation_that_somebody_went_on_with_is_not_forgotten_by_who_had_it_before(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        there, other = await cluster.host("there")
        await (await Owner.of(here)).write(said("long ago"), rests=True)
        forgetting = await Owner.of(here)
        await cluster.silence(mine)  # it stalls before it has forgotten it
        await other.declare_gone([mine.boot], LOST)
        new = await Owner.of(there)
        await new.write(said("going on"))
        with pytest.raises(HostError):
            await here.write([SessionGone(SESSION, epoch=forgetting.claim.epoch)])
        assert (await there.look(SESSION)).head == new.head
        await there.write([SessionGone(SESSION, epoch=new.claim.epoch)])
        assert await there.session(SESSION) is None


async def test_of_hosts_that_claim_at_once_one_gets_the_session(address: str) -> None:
    async with hosts_on(address) as cluster:
        stores = [(await cluster.host(f"host-{n}"))[0] for n in range(4)]
        owner = await Owner.of(stores[0])
        await owner.write(said("done"), rests=True)
        for _ in range(10):
            owners = await asyncio.gather(*(Owner.of(store) for store in stores), return_exceptions=True)
            won = [one for one in owners if isinstance(one, Owner)]
            assert len(won) == 1
            await won[0].write(said("mine"), rests=True)


async def test_a_host_that_was_silent_for_its_lease_is_declared_gone_once_and_writes_nothing_more(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        there, other = await cluster.host("there")
        owner, idle = await Owner.of(here), await Owner.of(here, "another")
        await owner.write(said("going on"), rows=[a_run()])
        await idle.write(said("done"), rests=True)

        assert await other.declare_gone([mine.boot], LOST) == []  # it was heard of a moment ago
        await cluster.silence(mine)
        assert await other.declare_gone([mine.boot], LOST) == [mine.boot]
        assert await other.declare_gone([mine.boot], LOST) == []

        for one in (owner, idle):  # also where nobody has taken over yet
            with pytest.raises(StaleOwnerError):
                await one.write(said("from a host that is gone"))
        with pytest.raises(StaleOwnerError):
            await (await Owner.of(here, "new")).write(said("a new session"))
        assert [(left.session_id, left.why) for left in await other.left_behind(limit=9)] == [(SESSION, LOST)]
        assert not (await mine.beat()).held
        new = await Owner.of(there)
        assert new.claim.left == LOST
        await new.write(said("taken over"))
        assert await other.left_behind(limit=9) == []
        assert (await Owner.of(there)).claim.left == ""


async def test_what_was_being_written_when_its_host_left_is_found_though_nothing_was_left_a_moment_before(
    address: str,
) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        _, other = await cluster.host("there")
        owner = await Owner.of(here)
        await owner.write(said("done"), rests=True)
        async with somebody_holding("select 1 from sessions for update", address) as ask:
            writing = asyncio.create_task(owner.write(said("asked"), rows=[a_run()]))
            await until_somebody_waits(ask)
            await mine.leave("host_shutdown")
            assert await other.left_behind(limit=9) == []
            await other.settled([mine.boot])
        await asyncio.gather(writing, return_exceptions=True)

        left = await other.left_behind(limit=9)
        assert not left or unsettled((await other.beat()).peers) == [mine.boot]  # else nobody would look for it


async def test_a_host_that_left_long_ago_is_settled(address: str) -> None:
    async with hosts_on(address) as cluster:
        _, mine = await cluster.host("here")
        _, other = await cluster.host("there")
        await mine.leave("host_shutdown")
        await cluster.silence(mine, UNDER_WAY_SECONDS)
        await other.settled([mine.boot])
        assert unsettled((await other.beat()).peers) == []


@asynccontextmanager
async def somebody_holding(sql: str, address: str) -> AsyncGenerator[Callable[..., Any]]:
    """Somebody else's transaction, with the rows that it locks."""
    somebody = await asyncpg.connect(address)
    try:
        async with somebody.transaction():
            await somebody.execute(sql)
            yield somebody.fetchval
    finally:
        await somebody.close()


async def until_somebody_waits(ask: Callable[..., Any]) -> None:
    sql = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with asyncio.timeout(30):
        while not await ask(sql):
            await asyncio.sleep(0.01)


async def test_a_host_that_registers_again_has_another_number_and_may_write(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        before = mine.boot
        await cluster.silence(mine)
        _, other = await cluster.host("there")
        await other.declare_gone([before], LOST)
        await mine.register()
        assert mine.boot > before
        assert (await mine.beat()).held
        await (await Owner.of(here)).write(said("back"))


async def test_a_host_that_starts_again_in_its_directory_need_not_wait_for_its_own_lease(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, _ = await cluster.host("here")
        await (await Owner.of(here)).write(said("x"), rows=[a_run()])
        again, hosts = await cluster.host("here")
        assert [left.why for left in await hosts.left_behind(limit=9)] == ["host_restarted"]
        await (await Owner.of(again)).write(said("mine again"))


async def test_two_hosts_that_have_one_name_do_not_drive_each_other_out_for_ever(address: str) -> None:
    async with hosts_on(address) as cluster:
        _, first = await cluster.host("copied")
        _, second = await cluster.host("copied")
        assert not (await first.beat()).held
        await first.register()
        assert (await second.beat()).held
        assert (await first.beat()).held
        await first.register()  # as it does whenever it was declared gone
        assert (await second.beat()).held


async def test_what_a_host_is_asked_lasts_until_it_is_answered(address: str) -> None:
    async with hosts_on(address) as cluster:
        _, mine = await cluster.host("here")
        _, other = await cluster.host("there")
        await mine.ask(other.boot, PendingRequest("e1", b"please"))
        assert await mine.asked(limit=9) == []
        assert await other.asked(limit=9) == [PendingRequest("e1", b"please")]
        assert await mine.answered("e1") == (None, True)
        await other.answer("e1", b"done")
        assert await other.asked(limit=9) == []
        await other.leave("host_shutdown")
        assert await mine.answered("e1") == (b"done", False)


async def test_what_nobody_waits_for_any_more_is_not_asked(address: str) -> None:
    async with hosts_on(address) as cluster:
        _, mine = await cluster.host("here")
        await mine.ask(mine.boot, PendingRequest("e1", b"long ago"))
        meddler = await asyncpg.connect(address)
        await meddler.execute("update errands set created_at = created_at - $1 * interval '1 s'", ASKED_SECONDS)
        await meddler.close()
        await mine.ask(mine.boot, PendingRequest("e2", b"just now"))
        assert await mine.asked(limit=9) == [PendingRequest("e2", b"just now")]


async def test_a_change_is_seen_though_the_clock_of_whoever_made_it_is_behind(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        rows = [AgentRow("w", name, b"{}", 1000.0, "ann") for name in ("first", "second")]
        await here.write(rows)
        before = (await mine.beat()).changes
        assert (await mine.beat()).changes == before
        await here.write([replace(rows[0], body=b"{1}", updated_at=900.0)])
        assert (await mine.beat()).changes != before


async def test_in_a_hundred_rounds_a_host_that_stalled_never_writes_what_another_took_over(address: str) -> None:
    async with hosts_on(address) as cluster:
        here, mine = await cluster.host("here")
        there, other = await cluster.host("there")
        refused = 0
        for number in range(100):
            session = f"session-{number}"
            stalled = await Owner.of(here, session)
            await stalled.write(said("going on"), rows=[a_run(run_id=f"run-{number}", session_id=session)])
            await cluster.silence(mine)
            assert await other.declare_gone([mine.boot], LOST) == [mine.boot]
            new = await Owner.of(there, session)
            await new.write(said("taken over"))
            with pytest.raises(StaleOwnerError):
                await stalled.write(said("awake again"))
            refused += 1
            assert (await there.look(session)).head == new.head
            await mine.register()
        assert refused == 100
