"""The embedded store behind the `Store` port: gives out epochs, hands writes to the writer, reads what is committed.

One process owns the file (`files/lock.py`). Epochs are the boot number and a counter, so a claim writes nothing and an
owner from before a restart is stale for ever.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import apsw

from paddock.ports import ApiKeyRow, Batch, Claim
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import Damage, Head
from paddock.rules.rows.rows import Apart, AuditRow, TranscriptRow
from paddock.rules.search.queries import FoundThreads, ThreadQuery, TranscriptQuery
from paddock.storage.files.lock import make_directory
from paddock.storage.search.history import HistorySearch
from paddock.storage.search.threads import ThreadSearch
from paddock.storage.sqlite.commands import check_session, migrate
from paddock.storage.sqlite.connection import Connection, Cursor, open_reader, open_writer, unavailable
from paddock.storage.sqlite.engine import Answer, ReaderPool, SqliteEngine
from paddock.storage.sqlite.search import SqliteIndex, SqliteWords
from paddock.storage.sqlite.writer import Writer
from paddock.storage.tables import Records
from paddock.storage.tables.log import is_taken
from paddock.storage.tables.statements import Engine, Work, ask

# ruff: noqa: S608 - the table names are our own, values are always bound
FIRST_BITS, MOST_BITS = 1 << 19, 1 << 23
"""The first part takes 64 KiB and the next four times as much, up to one MiB each: a small house needs little."""
BITS_EACH = 16
"""Bits for each session, of which two are set: one new session in seventy is looked for in vain in a full part."""
MOST = 200_000
"""Sessions read at start, a matter of tenths of a second. With more on file every session is looked for."""
_APART = 23
"""The two places of a session come from different bits of its hash."""


class _Filter:
    __slots__ = ("_bits", "_mask", "room", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.room = size // BITS_EACH
        self._bits = bytearray(size // 8)
        self._mask = size - 1

    def has(self, mixed: int) -> int:
        bits, one, other = self._bits, mixed & self._mask, mixed >> _APART & self._mask
        return bits[one >> 3] >> (one & 7) & bits[other >> 3] >> (other & 7) & 1

    def add(self, mixed: int) -> None:
        bits, one, other = self._bits, mixed & self._mask, mixed >> _APART & self._mask
        bits[one >> 3] |= 1 << (one & 7)
        bits[other >> 3] |= 1 << (other & 7)
        self.room -= 1


class KnownSessions:
    """Which sessions may be on file: a small filter in memory, so that a new one is opened without looking for it.

    It errs to one side only: a session on file is never called new. It can promise that because one process owns the
    file and every session it writes was claimed first.
    """

    def __init__(self) -> None:
        self._parts = [_Filter(FIRST_BITS)]
        self._complete = False

    def fill(self, session_ids: Iterable[str]) -> None:
        """Learn all that are on file. Before that every session may be."""
        for session_id in session_ids:
            self.claimed(session_id)
        self._complete = True

    def claimed(self, session_id: str) -> bool:
        """Remember a session that may be written from now on; False when it was certainly not on file before."""
        mixed = hash(session_id)
        for part in self._parts:
            if part.has(mixed):
                return True
        last = self._parts[-1]
        if not last.room:
            last = _Filter(min(4 * last.size, MOST_BITS))
            self._parts.append(last)
        last.add(mixed)
        return not self._complete


SWITCH_SECONDS = 0.0005
"""How long a busy event loop may keep the writer waiting for the interpreter; the default of 5 ms starves commits."""
_BOOT = "update meta set value = value + 1 where name = 'boot_number' returning value"
_KNOWN = "select session_id from sessions union all select session_id from tombstones limit ?"
"""Sessions that are there, and those that were deleted: both are known."""
MERGE_PAGES = 500
"""Pages of the search index that are rewritten in one commit."""


def _merge(pages: int) -> Work[int]:
    """One step of rewriting the search indexes, which keep deleted words until then. Done: fewer than two changes."""
    changed: list[int] = []
    for index in ("search", "thread_search"):
        [(before,)] = yield ask("select total_changes()")
        yield ask(f"insert into {index} ({index}, rank) values ('merge', :pages)", pages=pages)
        [(after,)] = yield ask("select total_changes()")
        changed.append(after - before)
    return max(changed)


class _Open(NamedTuple):
    writer: Writer
    reader: Connection
    pool: ReaderPool
    history: HistorySearch
    threads: ThreadSearch


class SqliteStore(Records):
    """All of the `Store` port over one SQLite file in `directory`."""

    words = SqliteWords()

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.engine: Engine = SqliteEngine(lambda: self._open.reader, lambda: self._open.pool, self.perform)
        self._epoch = 0
        self._known = KnownSessions()
        self._parts: _Open | None = None

    async def open(self) -> None:
        connection, boot_number, reader = await anyio.to_thread.run_sync(self._open_files)
        self._epoch = boot_number << 32
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        history = HistorySearch(self.engine, SqliteIndex())
        threads = ThreadSearch(self.engine, SqliteIndex(), self._settle)
        writer = Writer(connection, asyncio.get_running_loop())
        self._parts = _Open(writer, reader, ReaderPool(self._directory), history, threads)

    async def close(self) -> None:
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.history.stop()
            await parts.threads.stop()
            parts.pool.close()
            parts.reader.close()  # first: the last connection to close folds the write-ahead log into the file
            with anyio.CancelScope(shield=True):
                await parts.writer.stop()

    def healthy(self) -> bool:
        return self._parts is not None and self._parts.writer.healthy

    async def claim(self, session_id: str) -> Claim:
        writer = self.writer
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
        parts = self._open
        if parts.writer.owners.get(batch.session_id, 0) > batch.epoch:
            raise StaleOwnerError(f"session {batch.session_id} has another owner")
        parts.history.count(batch)
        parts.threads.hear(batch.rows)
        return parts.writer.submit(batch, batch.rows)

    async def took(self, batch: Batch) -> bool:
        newest = self.writer.owners.get(batch.session_id, 0)
        epoch, head = await self.end(batch.session_id)
        return is_taken(batch, newest if newest > batch.epoch else epoch, head)

    async def check(self, session_id: str) -> Damage | None:
        return await anyio.to_thread.run_sync(check_session, self._directory, session_id)

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        return await self._open.history.find(session_id, query)

    async def find_sessions(self, query: ThreadQuery) -> FoundThreads:
        return await self._open.threads.find(query)

    async def _settle(self, session_ids: Sequence[str]) -> None:
        if any(map(self.writer.is_waiting, session_ids)):
            await self.writer.submit(None)

    async def write(self, rows: Sequence[Apart | ApiKeyRow]) -> None:
        parts = self._open
        try:
            await parts.writer.submit(None, rows)
        finally:  # also when nobody waits for it any more
            parts.threads.hear(rows)

    async def perform(self, deed: Callable[[Cursor], None], rows: Sequence[AuditRow] = ()) -> None:
        """Do something inside the next commit, together with these rows. Short: others wait for it."""
        await self.writer.submit(None, rows, deed)

    async def scrub(self) -> None:
        """Rewrite the search indexes, then empty the write-ahead log, after all that waits was written."""
        pages = -MERGE_PAGES  # negative to begin with: all of the index, not only what is due anyway
        while await self.engine.do(lambda pages=pages: _merge(pages)) >= 2:
            pages = MERGE_PAGES
        await self.writer.submit(None, (), None, fold=True)

    async def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The answer to a question that may take a while, asked on a thread."""
        return await self._open.pool.ask(question)

    @property
    def writer(self) -> Writer:
        return self._open.writer

    @property
    def _open(self) -> _Open:
        if self._parts is None:
            raise StorageUnavailableError("the store is closed")
        return self._parts

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
