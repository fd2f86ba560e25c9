"""A host among others: its beats wait for nothing, and whoever was away itself has nothing to say about others."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import anyio
import asyncpg
import pytest

from contracts.builders import Owner, a_run, said
from paddock.bus.in_process import InProcessBus, Meeting
from paddock.host.cluster import peers as room
from paddock.host.cluster.forwarding import Answering, ClusterLink, Forwarding
from paddock.host.cluster.membership import Membership
from paddock.host.cluster.peers import Chore, Followers, Peers
from paddock.host.session.sessions import Sessions
from paddock.host.streams.live import Live
from paddock.rules.cluster import BEAT_SECONDS, LEASE_SECONDS, LOST
from paddock.rules.errors import EndCode
from paddock.rules.rows.rows import AgentRow, AuditRow
from paddock.storage.postgres import PostgresStore
from postgres_server import a_database

pytestmark = pytest.mark.anyio

UP_FOR_A_LEASE = f"select clock_timestamp() - pg_postmaster_start_time() > interval '{LEASE_SECONDS} s'"


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


class NoSessions:
    """What a host does with the sessions of others, up to the moment it would touch them."""

    def __init__(self) -> None:
        self.asked, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def take_over(self, left: Sequence[tuple[str, EndCode, str]]) -> None:
        self.asked.set()
        await self.may_go_on.wait()

    def drop_all(self, *, leaving: bool = False) -> int:
        return 0


class Place:
    """A database, hosts at it, and what they ring each other with."""

    def __init__(self, address: str, stack: AsyncExitStack, meddler: Any) -> None:
        self._address, self._stack, self._meeting = address, stack, Meeting()
        self.ask: Callable[..., Any] = meddler.fetchval
        self.sessions = NoSessions()
        self.audit: list[AuditRow] = []

    async def store(self, name: str) -> PostgresStore:
        store = PostgresStore(self._address, host_id=name, url=f"http://{name}")
        await store.open()
        self._stack.push_async_callback(store.close)
        return store

    async def peers(self, name: str, followers: Followers | None = None) -> Peers:
        hosts, bus = (await self.store(name)).hosts, InProcessBus(self._meeting)
        assert hosts is not None
        link, sessions = ClusterLink(hosts, bus, Live(bus)), cast("Sessions", self.sessions)
        return Peers(
            link,
            Membership(hosts),
            sessions=sessions,
            forwarding=Forwarding(link),
            answering=Answering(link, {}),
            note=self.audit.append,
            clock=lambda: 1.0,
            followers=followers or Followers(),
        )

    async def beats(self, boot_of: str) -> float:
        return await self.ask("select extract(epoch from max(beat_at))::float from hosts where host_id = $1", boot_of)

    async def are_there(self) -> int:
        return await self.ask("select count(*) from hosts where gone is null")

    async def silence(self, name: str) -> None:
        sql = "update hosts set beat_at = beat_at - $2 * interval '1 s' where host_id = $1"
        await self.ask(sql, name, LEASE_SECONDS + 1)


@asynccontextmanager
async def place_at(address: str) -> AsyncGenerator[Place]:
    async with AsyncExitStack() as stack:
        meddler = await asyncpg.connect(address)
        stack.push_async_callback(meddler.close)
        yield Place(address, stack, meddler)


async def until(true: Callable[[], Any]) -> None:
    with anyio.fail_after(30):
        while not await true():
            await anyio.sleep(0.02)


async def test_a_host_beats_however_long_it_takes_over_what_others_left(address: str) -> None:
    async with place_at(address) as place, asyncio.TaskGroup() as group:
        gone = await place.store("gone")
        await (await Owner.of(gone)).write(said("going on"), rows=[a_run("run-1")])
        assert gone.hosts is not None
        await gone.hosts.leave(LOST)
        here = await place.peers("here")
        await here.start()
        beating, taking = group.create_task(here.keep_beating()), group.create_task(here.take_over())
        async with asyncio.timeout(30):
            await place.sessions.asked.wait()
        for _ in range(2):
            before = await place.beats("here")
            await until(lambda before=before: later(place, before))
        assert not taking.done()
        taking.cancel()
        beating.cancel()


async def later(place: Place, before: float) -> bool:
    return await place.beats("here") > before


async def test_who_was_away_itself_takes_nobody_for_gone_until_it_has_watched_for_a_lease(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = 1000.0
    monkeypatch.setattr(room, "steady_seconds", lambda: time)
    async with place_at(address) as place:
        beaten = asyncio.Semaphore(0)
        here, _ = await place.peers("here", Followers(beaten=[beaten.release])), await place.store("there")
        await here.start()
        await until(lambda: place.ask(UP_FOR_A_LEASE))
        time += LEASE_SECONDS + 1  # the machine slept, and that of the other as well
        await place.silence("there")
        await one_beat(here, beaten)
        assert (await place.are_there(), place.audit) == (2, [])
        for _ in range(int(LEASE_SECONDS / BEAT_SECONDS) + 2):
            time += BEAT_SECONDS
            await one_beat(here, beaten)
        assert await place.are_there() == 1
        assert [row.action for row in place.audit] == ["hosts.gone"]
        assert "http://there" in place.audit[0].reason  # which machine it was


async def one_beat(peers: Peers, beaten: asyncio.Semaphore, *, times: int = 1) -> None:
    """And what is done after it begins; with one more, what is done after the one before has ended."""
    while not beaten.locked():
        await beaten.acquire()
    async with asyncio.TaskGroup() as group:
        beating = group.create_task(peers.keep_beating())
        async with asyncio.timeout(60):
            for _ in range(times):
                await beaten.acquire()
        beating.cancel()


async def test_a_host_that_leaves_does_not_come_back(address: str) -> None:
    async with place_at(address) as place:
        here = await place.peers("here")
        await here.start()
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(here.keep_beating())
            await here.leave()
            with anyio.fail_after(30):
                await beating
        assert (await place.are_there(), place.audit) == (0, [])


async def test_a_chore_is_done_by_the_host_that_is_there_longest_and_one_that_fails_stops_no_other(
    address: str,
) -> None:
    async with place_at(address) as place:
        done = list[str]()

        async def fail() -> None:
            raise ValueError("a mistake")

        async def note(name: str) -> None:
            done.append(name)

        beats, hosts = [asyncio.Semaphore(0), asyncio.Semaphore(0)], list[Peers]()
        for name, beaten in zip(("first", "second"), beats, strict=True):
            often, rarely = Chore(lambda name=name: note(name)), Chore(lambda: note("rarely"), every=3600.0)
            followers = Followers(beaten=[beaten.release], chores=[Chore(fail), often, rarely])
            hosts.append(await place.peers(name, followers))
        for peers in hosts:
            await peers.start()
        for peers, beaten in zip(hosts, beats, strict=True):
            await one_beat(peers, beaten, times=3)
        assert done.count("second") == 0
        assert done.count("first") >= 2
        assert done.count("rarely") == 1


async def test_a_change_made_while_another_is_taken_in_is_taken_in_too(address: str) -> None:
    async with place_at(address) as place:
        store, seen = await place.store("there"), list[int]()

        async def follow() -> None:
            seen.append(await place.ask("select count(*) from agents"))
            if seen == [0, 1]:
                await store.write([AgentRow("w", "second", b"{}", 2.0, "ann")])
                for _ in range(2):  # the second of them began after the change
                    before = await place.beats("here")
                    await until(lambda before=before: later(place, before))

        async def is_seen() -> bool:
            return seen[-1:] == [2]

        here = await place.peers("here", Followers(changed=[follow]))
        await here.start()
        await store.write([AgentRow("w", "first", b"{}", 1.0, "ann")])
        async with asyncio.TaskGroup() as group:
            beating = group.create_task(here.keep_beating())
            try:
                await until(is_seen)
            finally:
                beating.cancel()
