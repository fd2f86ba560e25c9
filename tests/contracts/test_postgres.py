"""What the store on PostgreSQL promises beyond the contract: many hosts, a database that goes away and comes back."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast, get_args

import anyio
import asyncpg
import pytest

from contracts.builders import SESSION, Owner, a_run, a_value, delta, finished, said
from paddock.ports import ApiKeyRow
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.forgetting import first_id_after
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.migrations import Migration
from paddock.rules.rows.rows import AuditRow, InboxRow, Row, RunRow, SessionRow, StateRow, TranscriptRow
from paddock.storage.postgres import PostgresStore, connection
from paddock.storage.postgres.commands import examine
from paddock.storage.postgres.engine import Reader, bound
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.postgres.silence import Silence
from paddock.storage.tables import TABLES, WRITES
from paddock.storage.tables.forgetting import OLD
from paddock.storage.tables.log import FACTS
from paddock.storage.tables.schema import shipped_migrations
from postgres_server import Server, a_database, database_of, new_server

pytestmark = pytest.mark.anyio
TESTS = Path(__file__).parent.parent
HOSTS_LOCK = 0x7061_6464_6F63_6B02
"""The advisory lock that every host of an older Paddock holds."""


@pytest.fixture
def address() -> Iterator[str]:
    with a_database() as address:
        yield address


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that these tests may stop and freeze."""
    server = new_server()
    yield server
    server.let_go()


@asynccontextmanager
async def opened(address: str, **how: str) -> AsyncGenerator[PostgresStore]:
    store = PostgresStore(address, **how)
    await store.open()
    yield store
    await store.close()


async def healthy_within(store: PostgresStore, seconds: float, *, healthy: bool = True) -> bool:
    with anyio.move_on_after(seconds):
        while store.healthy() is not healthy:
            await anyio.sleep(0.02)
    return store.healthy() is healthy


class Producers:
    """Sessions that write for as long as they may, claim again when they must, and remember what was acknowledged."""

    def __init__(self, stores: Sequence[PostgresStore], count: int = 16) -> None:
        self.acknowledged = {f"session-{n}": 0 for n in range(count)}
        self.refused = 0
        self._stores = stores
        self._tasks = [asyncio.create_task(self._produce(name)) for name in self.acknowledged]

    async def _produce(self, session_id: str) -> None:
        owner: Owner | None = None
        while True:
            for store in self._stores:
                try:
                    owner = owner if owner and len(self._stores) == 1 else await Owner.of(store, session_id)
                    await owner.write(said("x"), said("y"))
                    self.acknowledged[session_id] = owner.head.seq
                except (StorageUnavailableError, StaleOwnerError):
                    owner = None
                    self.refused += 1
                    await asyncio.sleep(0.01)

    async def wrote(self, more: int) -> None:
        """Until every session has so much more acknowledged."""
        goal = {name: seq + more for name, seq in self.acknowledged.items()}
        with anyio.fail_after(30):
            while any(self.acknowledged[name] < seq for name, seq in goal.items()):
                await anyio.sleep(0.01)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def check(self) -> None:
        """Everything acknowledged is there, once, in order, unharmed."""
        store = self._stores[0]
        for session_id, seq in self.acknowledged.items():
            facts = await store.read(session_id, limit=1_000_000)
            assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
            assert len(facts) >= seq > 0
            assert await store.check(session_id) is None


# --- many hosts


async def test_a_claim_on_another_host_makes_every_earlier_owner_stale_at_once(address: str) -> None:
    async with opened(address) as here, opened(address) as there:
        old = await Owner.of(here)
        await old.write(said("mine"))
        new = await Owner.of(there)
        assert new.claim.epoch > old.claim.epoch
        with pytest.raises(StaleOwnerError):
            await old.write(said("still mine?"))
        await new.write(said("now mine"))
        back = await Owner.of(here)
        assert back.head == new.head
        await back.write(said("and back"))


async def test_of_two_hosts_that_open_a_session_one_wins_and_the_other_learns_of_it(address: str) -> None:
    async with opened(address) as here, opened(address) as there:
        owners = [await Owner.of(here), await Owner.of(there)]
        outcomes = await asyncio.gather(*(owner.write(said("first")) for owner in owners), return_exceptions=True)
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["StaleOwnerError", "list"]
        assert len(await here.read(SESSION)) == 1


async def test_hosts_that_take_sessions_from_each_other_all_the_time_lose_nothing(address: str) -> None:
    async with opened(address) as here, opened(address) as there:
        producers = [Producers([here, there], 8), Producers([there, here], 8)]
        await producers[0].wrote(20)
        for one in producers:
            await one.stop()
        assert here.healthy()
        assert there.healthy()
        for one in producers:
            await one.check()


async def test_epochs_grow_over_restarts(address: str) -> None:
    async with opened(address) as store:
        before = await Owner.of(store)
        await before.write(said("before"))
    async with opened(address) as store:
        after = await Owner.of(store)
        assert after.claim.epoch > before.claim.epoch
        before.log, before.head = store, after.head
        with pytest.raises(StaleOwnerError):
            await before.write(said("from the past"))


async def test_a_host_from_before_there_could_be_several_is_never_joined(address: str) -> None:
    older = await asyncpg.connect(address)
    await older.execute("select pg_advisory_lock($1)", HOSTS_LOCK)
    with pytest.raises(StorageUnavailableError, match="host of an older Paddock: stop that one first"):
        await PostgresStore(address, host_id="new").open()
    await older.close()
    async with opened(address, host_id="new") as new, opened(address, host_id="another") as another:
        assert new.healthy()
        assert another.healthy()


# --- when the database goes away


async def test_a_database_that_is_stopped_is_noticed_and_one_that_is_back_is_used_within_five_seconds(
    own_server: Server,
) -> None:
    async with opened(own_server.new_database(), host_id="here") as store:
        owner = await Owner.of(store)
        await owner.write(said("before"))
        await anyio.to_thread.run_sync(own_server.stop)
        assert await healthy_within(store, 30, healthy=False)
        with pytest.raises(StorageUnavailableError):
            await owner.write(said("lost"))
        with pytest.raises(StorageUnavailableError, match="cannot be reached"):
            await store.read(SESSION)
        await anyio.to_thread.run_sync(own_server.start)
        assert await healthy_within(store, 30)
        await owner.write(said("after"))
        assert [fact.read_payload() for fact in await store.read(SESSION)] == [{"text": "before"}, {"text": "after"}]


async def test_what_was_acknowledged_survives_a_crash_of_the_database_under_load(own_server: Server) -> None:
    async with opened(own_server.new_database()) as store:
        producers = Producers([store])
        for _ in range(2):
            await producers.wrote(6)
            await anyio.to_thread.run_sync(own_server.stop, "immediate")
            await anyio.to_thread.run_sync(own_server.start)
        await producers.wrote(6)
        await producers.stop()
        assert producers.refused > 0
        await producers.check()


async def test_connections_that_are_cut_in_the_middle_lose_nothing_and_leave_no_broken_ones_behind(
    address: str,
) -> None:
    async with opened(address, host_id="here") as store:
        producers = Producers([store])
        meddler = await asyncpg.connect(address)
        for _ in range(5):
            await producers.wrote(2)
            await meddler.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()",
                database_of(address),
            )
        await producers.wrote(2)
        await producers.stop()
        await meddler.close()
        await producers.check()
        assert store.healthy()


async def test_a_database_that_never_answers_is_given_up_on_and_used_again_when_it_does(
    own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.LIMITS, "command_timeout", 1.5)
    monkeypatch.setitem(connection.LIMITS, "timeout", 1.5)
    async with opened(own_server.new_database(), host_id="here") as store:
        owner = await Owner.of(store)
        await owner.write(said("before"))
        own_server.signal_all(signal.SIGSTOP)
        try:
            with anyio.fail_after(30), pytest.raises(StorageUnavailableError, match="does not answer in time"):
                await owner.write(said("unknown"))
            assert not store.healthy()
            with anyio.fail_after(30), pytest.raises(StorageUnavailableError):
                await store.read(SESSION)
        finally:
            own_server.signal_all(signal.SIGCONT)
        assert await healthy_within(store, 30)
        again = await Owner.of(store)  # whether the write happened is known only now
        await again.write(said("after"))
        assert len(await store.read(SESSION)) == again.head.seq


async def test_a_row_that_somebody_else_holds_fails_alone_and_in_time(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LOCK_SECONDS", 1.0)
    async with opened(address) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(4)]
        await asyncio.gather(*(owner.write(said("one")) for owner in owners))
        meddler = await asyncpg.connect(address)
        async with meddler.transaction():
            await meddler.execute("select 1 from sessions where session_id = 'session-2' for update")
            with anyio.fail_after(30):
                outcomes = await asyncio.gather(*(owner.write(said("two")) for owner in owners), return_exceptions=True)
        await meddler.close()
        assert [n for n, one in enumerate(outcomes) if isinstance(one, StorageUnavailableError)] == [2]
        assert store.healthy()


async def test_closing_ends_in_time_when_the_database_is_away(own_server: Server) -> None:
    store = PostgresStore(own_server.new_database())
    await store.open()
    await anyio.to_thread.run_sync(own_server.stop)
    try:
        with anyio.fail_after(30):
            await store.close()
    finally:
        await anyio.to_thread.run_sync(own_server.start)


async def test_closing_finishes_what_was_queued(address: str) -> None:
    async with opened(address) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(50)]
        writes = [asyncio.create_task(owner.write(said("hi"))) for owner in owners]
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    async with opened(address) as store:
        assert [len(await store.read(f"session-{n}")) for n in range(50)] == [1] * 50


async def test_what_was_acknowledged_survives_a_kill_of_the_host(address: str, tmp_path: Path) -> None:
    command = [sys.executable, str(TESTS / "contracts" / "acknowledging_child.py"), address, str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(TESTS)})
    assert child.stdout
    acknowledged = [child.stdout.readline().split() for _ in range(400)]
    child.kill()
    acknowledged += [line.split() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    child.wait()
    last = {session_id: int(seq) for session_id, seq in acknowledged}
    async with opened(address) as store:
        for session_id, seq in last.items():
            facts = await store.read(session_id, limit=1_000_000)
            assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
            assert len(facts) >= seq
            assert await store.check(session_id) is None


# --- one statement for all


async def test_batches_that_wait_share_a_commit(address: str) -> None:
    async with opened(address) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(64)]
        await asyncio.gather(*(owner.write(said("hi")) for owner in owners))
        commits = "select count(distinct xmin::text) from facts"  # of this database: others write beside it
        assert (await store.reader.one(commits))[0] < 10


@pytest.mark.parametrize(
    "row",
    [a_run(message="half a pair \ud800"), a_run(first_seq=1 << 70), a_run(client_run_id=os.urandom(9000).hex())],
    ids=["half a character", "a huge number", "a label too long for an index"],
)
async def test_what_no_database_can_hold_fails_alone(address: str, row: RunRow) -> None:
    async with opened(address) as store:
        good, bad = await Owner.of(store, "good"), await Owner.of(store, "bad")
        kept, refused = await asyncio.gather(
            good.write(said("hi")), bad.write(said("hi"), rows=[row]), return_exceptions=True
        )
        assert len(kept) == 1  # type: ignore[arg-type]
        assert isinstance(refused, HostError)
        assert refused.code is ErrorCode.INVALID_ARGUMENT
        assert store.healthy()


async def test_a_failed_batch_fails_the_later_ones_of_its_session_and_no_other(address: str) -> None:
    async with opened(address) as store:
        owner, other = await Owner.of(store, "one"), await Owner.of(store, "other")
        batches = []
        for row in (a_run("a"), a_run("b", first_seq=1 << 70), a_run("c")):
            batches.append(owner.batch(said("x"), rows=[row]))
            owner.head = batches[-1].after
        written: list[Awaitable[Any]] = [*map(store.append, batches), other.write(said("y"))]
        outcomes = await asyncio.gather(*written, return_exceptions=True)
        assert [type(outcome).__name__ for outcome in outcomes] == ["NoneType", "HostError", "StaleOwnerError", "list"]
        assert len(await store.read("one")) == 1


async def test_giving_up_the_wait_does_not_take_the_batch_back(address: str) -> None:
    async with opened(address) as store:
        owner = await Owner.of(store)
        impatient = asyncio.create_task(owner.write(said("on the way")))
        await asyncio.sleep(0)
        impatient.cancel()
        await store.write([a_value("behind", b"it")])
        assert len(await store.read(SESSION)) == 1


async def test_nothing_is_remembered_of_a_session_once_its_owner_wrote(address: str) -> None:
    async with opened(address) as store:
        for n in range(20):
            await (await Owner.of(store, f"session-{n}")).write(said("hi"))
        writer = store.writer
        assert writer.owners == {}
        assert not any(writer.is_waiting(f"session-{n}") for n in range(20))


def test_columns_are_in_the_order_of_the_fields_they_fill() -> None:
    first = {TranscriptRow: ("session_id",), InboxRow: ("session_id",)}
    last = {StateRow: ("expected",)}
    for row, table in TABLES.items():
        names = (*first.get(row, ()), *(name.strip('"') for name in table.names), *last.get(row, ()))
        assert row.__struct_fields__ == names
    assert StoredFact.__struct_fields__ == (*FACTS.names, "payload_digest")
    assert {RunRow, AuditRow, StateRow, ApiKeyRow} <= set(TABLES)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ('update facts set payload = \'{"text":"b!"}\' where seq = 2', "does not follow"),
        ("delete from facts where seq = 2", "does not follow"),
        ("delete from facts where seq = 7", "ends before its head"),
        ("update facts set position = 3 where seq = 6", "wrong place"),
        ("update facts set payload = '\\x00' where kind = 'AGENT_OUTPUT:CHUNK'", "checksum"),
    ],
)
async def test_a_check_finds_what_was_changed_behind_our_back(address: str, damage: str, what: str) -> None:
    async with opened(address) as store:
        owner = await Owner.of(store)
        await owner.write(said("a"), said("b"), said("c"), delta("d"), delta("e"))
        await owner.write(finished("d", first_seq=4), said("f"), compacted=[("turn-1", 4, 4)])
        assert await store.check(SESSION) is None
        meddler = await asyncpg.connect(address)
        await meddler.execute(damage)
        await meddler.close()
        found = await store.check(SESSION)
        assert found is not None
        assert what in found.what


# --- the schema


@pytest.fixture
def bare(own_server: Server) -> Iterator[str]:
    """A database without our schema."""
    own_server.sql("create database bare")
    yield own_server.url("bare")
    own_server.sql("drop database bare with (force)")


async def test_why_a_question_could_not_be_answered_is_said_also_when_the_pool_has_the_connection_back(
    bare: str,
) -> None:
    reader = await Reader.open(bare, Silence(bare, lambda: None))

    async def lost_on_the_way(connection: Any) -> None:
        with suppress(asyncpg.PostgresError, asyncpg.InterfaceError):
            await connection.fetch("select pg_terminate_backend(pg_backend_pid())")
        with anyio.fail_after(30), suppress(asyncpg.InterfaceError):
            while not connection.is_closed():
                await anyio.sleep(0.01)
        raise ConnectionResetError("the way was cut")

    with pytest.raises(StorageUnavailableError, match="the way was cut"):
        await reader.ask(lost_on_the_way)
    reader.close()


async def test_hosts_that_start_together_bring_the_schema_up_once(bare: str) -> None:
    stores = [PostgresStore(bare) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    await (await Owner.of(stores[0])).write(said("hi"))
    assert len(await stores[1].read(SESSION)) == 1
    for store in stores:
        await store.close()


async def test_a_step_that_fails_leaves_nothing_behind(bare: str) -> None:
    one, two = Migration(1, "one", "create table one (a int)"), Migration(2, "two", "create table two (b int)")
    broken = Migration(2, "broken", "create table two (b int); create table one (a int)")
    with pytest.raises(StorageUnavailableError):
        await bring_up_to_date(bare, [one, broken])
    await bring_up_to_date(bare, [one, two])
    with pytest.raises(StorageUnavailableError, match="not the one this Paddock knows"):
        await bring_up_to_date(bare, [two, one, broken])


async def test_a_database_from_the_future_is_refused(bare: str) -> None:
    one, two = Migration(1, "one", "create table one (a int)"), Migration(2, "two", "create table two (b int)")
    await bring_up_to_date(bare, [one, two])
    with pytest.raises(StorageUnavailableError, match="schema 2"):
        await bring_up_to_date(bare, [one])


async def test_a_host_of_the_release_before_goes_on_and_starts_again_beside_a_newer_one(bare: str) -> None:
    running, shipped = PostgresStore(bare), shipped_migrations("postgres")
    await running.open()
    first, newest = await Owner.of(running), shipped[-1].number
    await first.write(said("before"))
    more = "alter table sessions add column later text; create table later (a int)"
    step = Migration(newest + 1, "later", f"-- Hosts that know step {newest} may stay.\n{more}")
    await bring_up_to_date(bare, [*shipped, step])
    await first.write(said("meanwhile"))
    started_again = PostgresStore(bare)
    await started_again.open()
    assert len(await started_again.read(SESSION)) == 2
    assert "a newer Paddock made it, and it goes along with this one" in (await examine(bare))[1]
    for store in (running, started_again):
        await store.close()
    await bring_up_to_date(bare, [*shipped, step, Migration(newest + 2, "alone", "create table alone (a int)")])
    with pytest.raises(StorageUnavailableError, match=f"schema {newest + 2}"):
        await running.open()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("postgresql://ann:s3cret@127.0.0.1:1/paddock", r"the database at 127\.0\.0\.1:1/paddock cannot be reached"),
        ("postgresql://ann:s3cret@nowhere.invalid/paddock", "cannot be reached"),
        ("postgresql://ann:s3cret@127.0.0.1:port/paddock", "address that cannot be read"),
    ],
)
async def test_a_wrong_address_is_one_sentence_without_the_password(wrong: str, says: str) -> None:
    with pytest.raises(StorageUnavailableError, match=says) as refused:
        await PostgresStore(wrong).open()
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


async def test_a_database_that_does_not_exist_is_named(own_server: Server) -> None:
    with pytest.raises(StorageUnavailableError, match=r"/nowhere does not exist"):
        await PostgresStore(own_server.url("nowhere")).open()


async def test_a_standby_is_refused(address: str) -> None:
    meddler = await asyncpg.connect(address)
    await meddler.execute(f"alter database {database_of(address)} set default_transaction_read_only = on")
    try:
        with pytest.raises(StorageUnavailableError, match="takes no writes"):
            await PostgresStore(address).open()
    finally:
        await meddler.execute("set transaction_read_only = off")
        await meddler.execute(f"begin read write; alter database {database_of(address)} reset all; commit")
        await meddler.close()


async def test_a_store_that_is_not_open_says_so(address: str) -> None:
    store = PostgresStore(address)
    assert not store.healthy()
    with pytest.raises(StorageUnavailableError, match="closed"):
        await store.claim(SESSION)


def test_every_row_has_a_way_to_be_written() -> None:
    assert {*TABLES, SessionRow} | set(WRITES) == {*get_args(Row), ApiKeyRow}
    assert set(TABLES) & set(WRITES) == {StateRow}, "with and without an expected version"


@pytest.mark.parametrize("kind", ["audit", "tool_calls", "model_usage", "runs"])
async def test_whoever_looks_for_old_rows_does_not_read_all_the_young_ones(address: str, kind: str) -> None:
    ids = ("run", SESSION, "w", "ann", "one")
    rows: list[Any] = []  # a run among them, which is otherwise written with the facts it follows from
    for number in range(2000):
        run_id = f"019{number:05x}-0000-7000-8000-000000000000"
        rows += [
            AuditRow(1e9, "w", "user:ann", "a", "r", "s", "allowed", ""),
            ToolCallRow(f"t{number}", *ids, "look", "completed", b"{}", b"{}", None, 1e9, 1e9),
            ModelUsageRow(f"m{number}", *ids, "demo", "demo", "invoke", "ok", 1, 1, 2, None, 1e9, 1e9),
            a_run(run_id, status="completed", ended_at=1e9, created_at=1e9),
        ]
    async with opened(address) as store:
        await store.write(rows)
        assert await store.forget_old(cast("Any", kind), 1e6, limit=100) == 0
        database = await connection.connect(address)
        look = bound(OLD[kind].which)
        values = look.values({"before": 1e6, "limit": 100, "first": first_id_after(1e6)})
        [[plan]] = await database.fetch(f"explain (analyze, timing off, format json) {look.sql}", *values)
        database.terminate()
        assert read_by(json.loads(plan)[0]["Plan"]) <= 400


def read_by(plan: dict[str, Any]) -> float:
    """How many rows the steps that read a table or an index have looked at."""
    below = [read_by(step) for step in plan.get("Plans", [])]
    mine = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return mine if not below else max(*below, 0)
