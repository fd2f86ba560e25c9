"""Words that are gone cannot be guessed by what is kept: no digest of them is left that a list of guesses could match.

`DIGESTS` names every column that holds a digest, and what becomes of it; a new one has to be entered here.
"""

import re
import tarfile
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from contracts.conftest import PLUGS, open_plug
from grants import a_grant
from host.calling import a_gateway
from host.scripted import ANN, SmallHouse, small_house
from keeping.conversations import THREAD, a_turn
from keeping.upgrading import CAREFULLY, FIXTURES
from paddock.host.keeping.retention import Retention
from paddock.ports import Store
from paddock.rules.access.approvals import approval_for
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import ERASED, bare, is_salted, verify
from paddock.rules.log.forgetting import DAY, Periods
from paddock.storage.files.backup import look
from paddock.storage.files.local import FileBlobs
from paddock.storage.postgres import PostgresStore
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.connection import FILE_NAME
from stores import QuickBlobs

pytestmark = pytest.mark.anyio

SALTED = "salted; the salt is erased with the words"
WITH_ROW = "goes with its row, which goes with the bytes"
NO_WORDS = "not of anybody's words"
DIGESTS = {
    "facts.digest": SALTED,
    "sessions.head_digest": SALTED,
    "sessions.trimmed_digest": SALTED,
    "inbox.body_hash": SALTED,
    "platform_events.body_hash": SALTED,
    "artifacts.sha256": WITH_ROW,
    "storage.sha256": WITH_ROW,
    "knowledge_documents.content_hash": WITH_ROW,
    "knowledge_jobs.content_hash": "emptied when the job has ended",
    "plugins.sha256": NO_WORDS,
    "api_keys.key_hash": NO_WORDS,
    "schema_version.checksum": NO_WORDS,
}
"""Beside these: the hash of a finished message's text is in the metadata of its fact, behind that one's salt; ids of
approvals are made with a key that no disk has; `artifact.created` facts do not name the digest of their file."""
LIKE_A_DIGEST = re.compile("digest|hash|sha|checksum|salt")
PIN = "4711"


class Days:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def days() -> Days:
    return Days()


Houses = Callable[[], Any]


@pytest.fixture(params=PLUGS)
def a_house(request: pytest.FixtureRequest, tmp_path: Path, days: Days) -> Houses:
    @asynccontextmanager
    async def open_house() -> AsyncGenerator[SmallHouse]:
        blobs = FileBlobs(tmp_path / "data" / "blobs") if request.param == "sqlite" else QuickBlobs()
        with open_plug(request.param, tmp_path) as store:
            async with small_house(store, gateway=a_gateway(), clock=days, blobs=blobs) as house:
                await blobs.open()
                yield house
                await store.close()

    return open_house


async def everything_in(store: Store, tmp_path: Path) -> list[Any]:
    """Every value of every row that the store holds."""
    if isinstance(store, SqliteStore):
        with closing(apsw.Connection(str(tmp_path / "data" / FILE_NAME))) as connection:
            return [value for table in tables_of(connection) for row in rows_of(connection, table) for value in row]
    assert isinstance(store, PostgresStore)
    return await all_of_postgres(store)


def tables_of(connection: apsw.Connection) -> list[str]:
    found = connection.execute("select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'")
    return [name for (name,) in found]


def rows_of(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    return iter(connection.execute(f'select * from "{table}"'))


async def all_of_postgres(store: PostgresStore) -> list[Any]:
    names = await store.reader.all("select tablename from pg_tables where schemaname = 'public'")
    values: list[Any] = []
    for (name,) in names:
        values += [value for row in await store.reader.all(f'select * from "{name}"') for value in row]
    return values


def told_by(digest: bytes, values: list[Any]) -> bool:
    """Whether one of the values has this digest, or enough of it to know it by."""
    raw, spelled = digest[:12], digest.hex()[:24]
    return any(
        raw in value or spelled.encode() in value if isinstance(value, bytes) else spelled in str(value)
        for value in values
    )


async def digests_before(house: SmallHouse, thread: str = THREAD) -> list[bytes]:
    """The plain digests that whoever knows all but the words could try: of every part of every fact."""
    parts: list[bytes] = [PIN.encode()]
    for fact in await house.store.read(thread, limit=1000):
        parts += [bare(fact.payload), bare(fact.metadata)]
    return [sha256(part).digest() for part in parts if PIN.encode() in part]


# --- the table --------------------------------------------------------------------------------------------------------


async def test_every_column_with_a_digest_is_in_the_table(tmp_path: Path) -> None:
    with open_plug("sqlite", tmp_path) as store:
        await store.open()
        await store.close()
    with closing(apsw.Connection(str(tmp_path / "data" / FILE_NAME))) as connection:
        columns = {
            f"{table}.{name}"
            for table in tables_of(connection)
            for (name,) in connection.execute("select name from pragma_table_info(?)", (table,))
        }
    assert {name for name in columns if LIKE_A_DIGEST.search(name.partition(".")[2])} == set(DIGESTS)


async def test_no_digest_of_an_earlier_version_is_left_after_an_upgrade(tmp_path: Path) -> None:
    with tarfile.open(FIXTURES / "0024-sqlite.tar.xz") as archive:
        archive.extractall(tmp_path, **CAREFULLY)
    with closing(apsw.Connection(str(tmp_path / "data" / FILE_NAME))) as connection:
        facts = list(connection.execute("select payload, metadata, digest from facts where kind not like '%:CHUNK'"))
        requests = [row[0] for row in connection.execute("select body_hash from inbox")]
    erased = [held[len(ERASED) : len(ERASED) + 32] for fact in facts for held in fact[:2] if held.startswith(ERASED)]
    assert erased
    store = SqliteStore(tmp_path / "data")
    await store.open()
    kept = await everything_in(store, tmp_path)
    await store.close()
    old = [*erased, *requests, *(fact[2] for fact in facts)]
    assert [digest.hex() for digest in old if told_by(digest, kept)] == []
    assert [looked.sentence for looked in look(tmp_path / "data") if looked.problem] == []


# --- guessing ---------------------------------------------------------------------------------------------------------


async def test_erased_words_cannot_be_guessed_by_anything_that_is_kept(a_house: Houses, tmp_path: Path) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, PIN, f"noted: {PIN}", run="with-pin")
        along = {"messages": [{"role": "user", "content": PIN}]}
        later = await house.say("and now?", thread=THREAD, params=along, run="later")
        (await house.gateway.next()).say("run.completed")
        await house.story(later)
        guesses = await digests_before(house)
        guesses += [asked(PIN), asked("and now?", params=along)]
        for item in (f"{accepted.run_id}.0", f"{accepted.run_id}.1"):
            await house.keeping.erase(ANN, THREAD, item)
        facts = sorted(await house.store.read(THREAD), key=lambda fact: fact.seq)
        assert verify(facts) is None
        kept = await everything_in(house.store, tmp_path)
        assert len(guesses) >= 6
        assert [guess.hex() for guess in guesses if told_by(guess, kept)] == []
        for run in ("with-pin", "later"):
            row = await house.store.inbox(THREAD, run)
            assert row is not None
            assert not any(is_salted(row.body_hash, guess) for guess in guesses)


def asked(text: str, **more: Any) -> bytes:
    """The digest of a request as the small house makes it."""
    return sha256(f"{text}{more}".encode()).digest()


async def test_a_request_whose_words_were_erased_is_neither_repeated_nor_taken_for_another(a_house: Houses) -> None:
    async with a_house() as house:
        accepted = await a_turn(house, PIN, "noted", run="with-pin")
        again = await house.say(PIN, thread=THREAD, run="with-pin")
        assert again.run_id == accepted.run_id
        await house.keeping.erase(ANN, THREAD, f"{accepted.run_id}.0")
        for text in (PIN, "something else"):
            with pytest.raises(HostError) as refused:
                await house.say(text, thread=THREAD, run="with-pin")
            assert refused.value.code is ErrorCode.CONFLICT
        assert len(await house.store.transcript(THREAD)) == 2


async def test_trimmed_words_cannot_be_guessed_by_anything_that_is_kept(
    a_house: Houses, tmp_path: Path, days: Days
) -> None:
    async with a_house() as house:
        await a_turn(house, PIN, f"noted: {PIN}", run="with-pin")
        guesses = [*await digests_before(house), asked(PIN)]
        days.now += 20 * DAY
        await a_turn(house, "lately", "yes", run="lately")
        days.now += 15 * DAY
        retention = Retention(house.store, house.sessions, house.keeping, clock=days, periods=Periods(conversations=30))
        assert (await retention.sweep())["trimmed"] == 1
        kept = await everything_in(house.store, tmp_path)
        assert [guess.hex() for guess in guesses if told_by(guess, kept)] == []
        row, other = await house.store.inbox(THREAD, "with-pin"), await house.store.inbox(THREAD, "lately")
        assert (row is None or row.body_hash, other and is_salted(other.body_hash, asked("lately"))) == (b"", True)


async def test_the_digest_of_an_erased_file_is_nowhere(a_house: Houses, tmp_path: Path) -> None:
    async with a_house() as house:
        accepted = await house.say("make it", thread=THREAD)
        run = await house.gateway.next()
        run.say(
            "artifact.created", artifact_type="file", name="pin.txt", content_base64=b64encode(PIN.encode()).decode()
        )
        await house.until(THREAD, "AGENT_OUTPUT:MESSAGE")
        run.say("run.completed")
        await house.story(accepted)
        [file] = await house.store.artifacts_of(THREAD)
        [_, told] = await house.store.transcript(THREAD, newest_first=False)
        await house.keeping.erase(ANN, THREAD, told.item_id, artifacts=True)
        assert not told_by(bytes.fromhex(file.sha256), await everything_in(house.store, tmp_path))


async def test_the_id_of_an_approval_does_not_tell_what_was_asked_for() -> None:
    grant = a_grant()
    asked_for = ("message.edit", {"message": "m-1"}, {"text": PIN}, 1.0)
    ids = {approval_for(grant, *asked_for, key=key).approval_id for key in (b"one process", b"another one")}
    assert len(ids) == 2
    assert len({approval_for(grant, *asked_for, key=b"one process").approval_id for _ in range(2)}) == 1
