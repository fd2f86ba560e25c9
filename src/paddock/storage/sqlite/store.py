"""The embedded store behind the `Store` port: gives out epochs, hands writes to the writer, reads what is committed.

One process owns the file (`files/lock.py`). Epochs are the boot number and a counter, so a claim writes nothing and an
owner from before a restart is stale for ever.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import apsw

from paddock.ports import ApiKeyRow, Batch, Claim
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import Damage, Head
from paddock.rules.rows.rows import Apart, AuditRow, TranscriptRow
from paddock.rules.search.history_search import TranscriptQuery
from paddock.rules.search.thread_search import FoundThreads, ThreadQuery
from paddock.storage.files.lock import make_directory
from paddock.storage.sqlite.commands import check_session
from paddock.storage.sqlite.connection import Connection, Cursor, open_reader, open_writer, unavailable
from paddock.storage.sqlite.engine import SqliteEngine
from paddock.storage.sqlite.known import MOST, KnownSessions
from paddock.storage.sqlite.migrate import migrate
from paddock.storage.sqlite.pool import Answer, ReaderPool
from paddock.storage.sqlite.search import Indexing
from paddock.storage.sqlite.thread_search import ThreadIndexing
from paddock.storage.sqlite.writer import Writer
from paddock.storage.tables import Records
from paddock.storage.tables.log import is_taken
from paddock.storage.tables.statements import Engine, HasEngine, Query, Work, ask, value

SWITCH_SECONDS = 0.0005
"""How long a busy event loop may keep the writer waiting for the interpreter; the default of 5 ms starves commits."""
_BOOT = "update meta set value = value + 1 where name = 'boot_number' returning value"
_KNOWN = "select session_id from sessions union all select session_id from tombstones limit ?"
"""Sessions that are there, and those that were deleted: both are known."""


# --- what was deleted ------------------------------------------------------------------------------------------------

MERGE_PAGES = 500
"""Pages of the search index that are rewritten in one commit."""
_NEXT = Query(
    value, "select session_no from sessions where session_id >= 'deleted:' and session_id < 'deleted;' limit 1"
)
_PARTS = (
    """
delete from facts where fact_no in (
  select fact_no from facts where session_no = :number limit :limit) returning 1""",
    """
delete from transcript where session_no = :number
   and seq in (select seq from transcript where session_no = :number limit :limit) returning 1""",
)


def _purge(limit: int) -> Work[int]:
    found = yield _NEXT()
    if not found:
        return 0
    count, place = 0, {"number": found[0][0], "limit": limit}
    for sql in _PARTS:
        count += len((yield ask(sql, **place)))
    if not count:
        yield ask("delete from sessions where session_no = :number", **place)
    return count or 1


def _merge(pages: int) -> Work[int]:
    """One step of rewriting the search indexes, which keep deleted words until then. Done: fewer than two changes."""
    changed: list[int] = []
    for index in ("search", "thread_search"):
        [(before,)] = yield ask("select total_changes()")
        yield ask(f"insert into {index} ({index}, rank) values ('merge', :pages)", pages=pages)
        [(after,)] = yield ask("select total_changes()")
        changed.append(after - before)
    return max(changed)


class Purging(HasEngine):
    """The part of the embedded store that takes away what was deleted."""

    fold: Callable[[], Awaitable[None]]

    async def purge(self, *, limit: int = 500) -> int:
        if await self.engine.one(_NEXT) is None:
            return 0
        return await self.engine.do(lambda: _purge(limit))

    async def scrub(self) -> None:
        pages = -MERGE_PAGES  # negative to begin with: all of the index, not only what is due anyway
        while await self.engine.do(lambda pages=pages: _merge(pages)) >= 2:
            pages = MERGE_PAGES
        await self.fold()


# --- the store -------------------------------------------------------------------------------------------------------


class SqliteStore(Records, Purging):
    """All of the `Store` port over one SQLite file in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.engine: Engine = SqliteEngine(lambda: self._need_open()[1], self._need_pool, self.perform)
        self._epoch = 0
        self._known = KnownSessions()
        self._parts: tuple[Writer, Connection] | None = None
        self._pool: ReaderPool | None = None
        self._indexing: Indexing | None = None
        self._thread_indexing: ThreadIndexing | None = None

    async def open(self) -> None:
        connection, boot_number, reader = await anyio.to_thread.run_sync(self._open_files)
        self._epoch = boot_number << 32
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        self._parts = Writer(connection, asyncio.get_running_loop()), reader
        self._pool = ReaderPool(self._directory)
        self._indexing = Indexing(self._pool, self.perform)
        self._thread_indexing = ThreadIndexing(self._pool, self.perform, self._settle)

    async def close(self) -> None:
        parts, self._parts = self._parts, None
        indexing, self._indexing = self._indexing, None
        if indexing is not None:
            await indexing.stop()
        if self._thread_indexing is not None:
            await self._thread_indexing.stop()
        if parts is not None:
            writer, reader = parts
            if self._pool is not None:
                self._pool.close()
            reader.close()  # first: the last connection to close folds the write-ahead log into the file
            with anyio.CancelScope(shield=True):
                await writer.stop()

    def healthy(self) -> bool:
        return self._parts is not None and self._parts[0].healthy

    # --- the log

    async def claim(self, session_id: str) -> Claim:
        writer = self._writer
        self._epoch = epoch = self._epoch + 1
        writer.own(session_id, epoch)
        if writer.is_waiting(session_id):  # what the last owner has in a commit becomes part of what we read
            await writer.submit(None)
        if not self._known.claimed(session_id):
            return Claim(session_id, epoch, Head(), None, b"", 0, ())
        place = await self.place(session_id)
        deleted = place is None and await self.is_buried(session_id)
        return await self.claim_at(session_id, epoch, place, deleted=deleted)

    def append(self, batch: Batch) -> Awaitable[None]:
        """A future and not a coroutine: every message passes here, and a task to wait in costs more than the wait."""
        writer = self._writer
        if writer.owners.get(batch.session_id, 0) > batch.epoch:
            raise StaleOwnerError(f"session {batch.session_id} has another owner")
        if self._indexing is not None:
            self._indexing.count(batch)
        if self._thread_indexing is not None:
            self._thread_indexing.hear(batch.rows)
        return writer.submit(batch, batch.rows)

    async def took(self, batch: Batch) -> bool:
        newest = self._writer.owners.get(batch.session_id, 0)
        epoch, head = await self.end(batch.session_id)
        return is_taken(batch, newest if newest > batch.epoch else epoch, head)

    async def check(self, session_id: str) -> Damage | None:
        """The first place where this session's log is not what was written, or None."""
        return await anyio.to_thread.run_sync(check_session, self._directory, session_id)

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        if self._indexing is None:
            raise StorageUnavailableError("the store is closed")
        return await self._indexing.find(session_id, query)

    async def find_sessions(self, query: ThreadQuery) -> FoundThreads:
        if self._parts is None or self._thread_indexing is None:
            raise StorageUnavailableError("the store is closed")
        return await self._thread_indexing.find(query)

    async def _settle(self, session_ids: Sequence[str]) -> None:
        if any(map(self._writer.is_waiting, session_ids)):
            await self._writer.submit(None)

    async def write(self, rows: Sequence[Apart | ApiKeyRow]) -> None:
        try:
            await self._writer.submit(None, rows)
        finally:  # also when nobody waits for it any more
            if self._thread_indexing is not None:
                self._thread_indexing.hear(rows)

    # --- for tables of their own that live in this file

    async def perform(self, deed: Callable[[Cursor], None], rows: Sequence[AuditRow] = ()) -> None:
        """Do something inside the next commit, together with these rows. Short: others wait for it."""
        await self._writer.submit(None, rows, deed)

    async def fold(self) -> None:
        """Move the write-ahead log into the database and empty it, after all that waits was written."""
        await self._writer.submit(None, (), None, fold=True)

    async def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The answer to a question that may take a while, asked on a thread."""
        return await self._need_pool().ask(question)

    # --- within

    @property
    def _writer(self) -> Writer:
        return self._need_open()[0]

    def _need_open(self) -> tuple[Writer, Connection]:
        if self._parts is None:
            raise StorageUnavailableError("the store is closed")
        return self._parts

    def _need_pool(self) -> ReaderPool:
        if self._pool is None:
            raise StorageUnavailableError("the store is closed")
        return self._pool

    def _open_files(self) -> tuple[Connection, int, Connection]:
        make_directory(self._directory)
        try:
            connection = open_writer(self._directory)
            migrate(connection)
            boot_number = connection.execute(_BOOT).fetchone()[0]
            reader = open_reader(self._directory)
            sessions = [session_id for (session_id,) in reader.execute(_KNOWN, (MOST + 1,))]
        except apsw.Error as error:
            raise unavailable(error) from error
        self._known = KnownSessions()
        if len(sessions) <= MOST:
            self._known.fill(sessions)
        return connection, boot_number, reader


# ruff: noqa: S608 - the table names are our own, values are always bound
