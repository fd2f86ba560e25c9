"""What the embedded store promises beyond the contract: it survives kills, refuses a failing disk, and comes back."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import apsw
import pytest

from contracts.builders import SESSION, Owner, a_run, a_value, delta, finished, said
from contracts.faulty_disk import FaultyDisk, faulty_disk
from contracts.search_index import do
from needs import not_run
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError, UnansweredWriteError
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import FILE_NAME
from paddock.storage.sqlite.group import insert_into
from paddock.storage.tables import TABLES
from paddock.storage.tables.log import FACTS
from paddock.storage.tables.table import Table

pytestmark = pytest.mark.anyio
TESTS = Path(__file__).parent.parent


@asynccontextmanager
async def opened(directory: Path) -> AsyncGenerator[SqliteStore]:
    store = SqliteStore(directory)
    await store.open()
    yield store
    await store.close()


async def write_for_ever(owner: Owner) -> None:
    while True:
        await owner.write(said("x" * 20_000))


async def healthy_within(store: SqliteStore, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        while not store.healthy():
            await anyio.sleep(0.02)
    return store.healthy()


async def test_after_reopening_the_boot_number_grew_and_old_epochs_are_stale(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        before = await Owner.of(store)
        await before.write(said("before the restart"))
    async with opened(tmp_path) as store:
        after = await Owner.of(store)
        assert after.claim.epoch >> 32 == (before.claim.epoch >> 32) + 1
        assert after.head == before.head
        await after.write(said("after it"))
        before.log, before.head = store, after.head
        with pytest.raises(StaleOwnerError):
            await before.write(said("from the past"))


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    command = [sys.executable, str(TESTS / "contracts" / "acknowledging_child.py"), "embedded", str(tmp_path)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(TESTS)})
    assert child.stdout
    acknowledged = [child.stdout.readline().split() for _ in range(400)]
    child.kill()
    acknowledged += [line.split() for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    child.wait()
    last = {session_id: int(seq) for session_id, seq in acknowledged}
    async with opened(tmp_path) as store:
        for session_id, seq in last.items():
            facts = await store.read(session_id, limit=1_000_000)
            assert [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
            assert len(facts) >= seq
            assert await store.check(session_id) is None


async def test_batches_that_wait_share_a_commit(tmp_path: Path, broken_disk: FaultyDisk) -> None:
    async with opened(tmp_path) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(64)]
        before = broken_disk.syncs
        await asyncio.gather(*(owner.write(said("hi")) for owner in owners))
        assert broken_disk.syncs - before < 16


@pytest.fixture
def broken_disk() -> Iterator[FaultyDisk]:
    with faulty_disk() as disk:
        yield disk


async def test_a_failed_fsync_is_never_acknowledged(tmp_path: Path, broken_disk: FaultyDisk) -> None:
    async with opened(tmp_path) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(4)]
        await owners[0].write(said("good"))
        broken_disk.failing = True
        outcomes = await asyncio.gather(*(owner.write(said("lost")) for owner in owners), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [UnansweredWriteError] * 4
        assert not store.healthy()
        assert [len(await store.read(f"session-{n}")) for n in range(4)] == [1, 0, 0, 0]


async def test_a_disk_that_works_again_is_noticed_without_being_asked(tmp_path: Path, broken_disk: FaultyDisk) -> None:
    async with opened(tmp_path) as store:
        owner = await Owner.of(store)
        broken_disk.failing = True
        with pytest.raises(StorageUnavailableError):
            await owner.write(said("lost"))
        assert not await healthy_within(store, 1.5)
        broken_disk.failing = False
        assert await healthy_within(store, 30)
        await owner.write(said("kept"))
        assert [fact.read_payload() for fact in await store.read(SESSION)] == [{"text": "kept"}]


async def test_a_commit_that_works_again_makes_the_store_healthy_at_once(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with opened(tmp_path) as store:
        owner = await Owner.of(store)
        broken_disk.failing = True
        with pytest.raises(StorageUnavailableError):
            await owner.write(said("lost"))
        broken_disk.failing = False
        await owner.write(said("kept"))
        assert store.healthy()


async def test_a_new_owner_waits_for_the_commit_in_flight_and_what_was_queued_behind_it_is_stale(
    tmp_path: Path, broken_disk: FaultyDisk
) -> None:
    async with opened(tmp_path) as store:
        old = await Owner.of(store)
        await old.write(said("done"))
        broken_disk.moving.clear()
        in_flight = asyncio.create_task(old.write(said("in flight")))
        await anyio.to_thread.run_sync(broken_disk.stalled.wait, 30)
        behind = old.batch(said("in flight"))
        old.head = behind.after
        queued = asyncio.ensure_future(store.append(old.batch(said("queued"))))
        claimed = asyncio.create_task(store.claim(SESSION))
        await asyncio.sleep(0)
        broken_disk.moving.set()
        await in_flight
        with pytest.raises(StaleOwnerError):
            await queued
        assert (await claimed).head == behind.after


async def test_nothing_is_remembered_of_a_session_once_its_owner_wrote(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for n in range(20):
            await (await Owner.of(store, f"session-{n}")).write(said("hi"))
        assert store.writer.owners == {}
        assert not any(store.writer.is_waiting(f"session-{n}") for n in range(20))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        not_run("a disk that fills up, because mounting a small one needs the right to mount")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def test_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    async with opened(small_disk / "data") as store:
        owner = await Owner.of(store)
        with pytest.raises(StorageUnavailableError, match="the disk is full"):
            await write_for_ever(owner)
        assert not store.healthy()
        written = await store.read(SESSION, limit=10_000)
        assert [fact.seq for fact in written] == list(range(1, owner.head.seq + 1))
        ballast.unlink()
        assert await healthy_within(store, 30)
        await owner.write(said("room again"))
        assert await store.check(SESSION) is None


async def test_a_file_that_may_grow_no_further_refuses_and_recovers(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        owner = await Owner.of(store)
        await do(store, "pragma max_page_count = 100")
        with pytest.raises(StorageUnavailableError, match="the disk is full"):
            await write_for_ever(owner)
        await do(store, "pragma max_page_count = 100000")
        assert await healthy_within(store, 30)
        await owner.write(said("room again"))
        assert await store.check(SESSION) is None


async def test_text_that_no_file_can_hold_fails_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        good, bad = await Owner.of(store, "good"), await Owner.of(store, "bad")
        kept, refused = await asyncio.gather(
            good.write(said("hi")),
            bad.write(said("hi"), rows=[a_run(message="half a pair \ud800")]),
            return_exceptions=True,
        )
        assert len(kept) == 1  # type: ignore[arg-type]
        assert isinstance(refused, HostError)
        assert refused.code is ErrorCode.INVALID_ARGUMENT
        assert store.healthy()


async def test_giving_up_the_wait_does_not_take_the_batch_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        owner = await Owner.of(store)
        impatient = asyncio.create_task(owner.write(said("on the way")))
        await asyncio.sleep(0)
        impatient.cancel()
        await store.write([a_value("behind", b"it")])
        assert len(await store.read(SESSION)) == 1


async def test_closing_finishes_what_was_queued(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        owners = [await Owner.of(store, f"session-{n}") for n in range(50)]
        writes = [asyncio.create_task(owner.write(said("hi"))) for owner in owners]
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    async with opened(tmp_path) as store:
        assert [len(await store.read(f"session-{n}")) for n in range(50)] == [1] * 50


async def test_rows_and_snapshots_are_there_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await (await Owner.of(store)).write(said("hi"), rows=[a_run(), a_value("k", b"v")], snapshot=b"state")
    async with opened(tmp_path) as store:
        assert await store.unfinished_runs() == [a_run()]
        assert await store.state("scope", "k") == b"v"
        assert (await store.claim(SESSION)).snapshot == b"state"


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ('update facts set payload = cast(\'{"text":"b!"}\' as blob) where seq = 2', "does not follow"),
        ("delete from facts where seq = 2", "does not follow"),
        ("delete from facts where seq = 7", "ends before its head"),
        ("update facts set sender = 'user:eve' where seq = 3", "does not follow"),
        ("update facts set position = 3 where seq = 6", "wrong place"),
        ("update facts set payload = x'00' where kind = 'AGENT_OUTPUT:CHUNK'", "checksum"),
    ],
)
async def test_a_check_finds_what_was_changed_behind_our_back(tmp_path: Path, damage: str, what: str) -> None:
    async with opened(tmp_path) as store:
        owner = await Owner.of(store)
        await owner.write(said("a"), said("b"), said("c"), delta("d"), delta("e"))
        await owner.write(finished("d", first_seq=4), said("f"), compacted=[("turn-1", 4, 4)])
        assert await store.check(SESSION) is None
        with apsw.Connection(str(tmp_path / FILE_NAME)) as meddler:
            meddler.execute(damage)
        found = await store.check(SESSION)
        assert found is not None
        assert what in found.what


async def test_a_file_that_is_no_database_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database" * 500)
    with pytest.raises(StorageUnavailableError, match="damaged"):
        await SqliteStore(tmp_path).open()


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    assert not store.healthy()
    with pytest.raises(StorageUnavailableError, match="closed"):
        await store.claim(SESSION)


@pytest.mark.parametrize("table", [FACTS, *TABLES.values()])
def test_a_row_is_written_by_the_names_of_its_columns(table: Table) -> None:
    written = list(table.read(table.row(*table.row.__struct_fields__)))
    assert written == [name.strip('"') for name in table.names]
    first = ["session_no"] if table.of_session else []
    last = [table.looked_up.column] if table.looked_up else []
    columns = insert_into(table, 1).partition("(")[2].partition(")")[0]
    assert columns.replace('"', "").split(", ") == [*first, *written, *last]
