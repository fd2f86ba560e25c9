"""The embedded store behind the `Store` port: gives out epochs, hands writes to the writer, reads what is committed.

One process owns the file (see `paddock.storage.lock`). Epochs are the boot number and a counter, so a claim writes
nothing and an owner from before a restart is stale for ever.
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import apsw

from paddock.ports import ApiKeyRow, Batch, Claim, ScopeState, Spent
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import Damage, Head, StoredFact
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import (
    WHOLE,
    AgentRow,
    Apart,
    AuditRow,
    InboxRow,
    RunRow,
    SessionRow,
    TranscriptRow,
    View,
)
from paddock.rules.search.history_search import TranscriptQuery
from paddock.rules.search.thread_search import FoundThreads, ThreadQuery
from paddock.storage.lock import make_directory
from paddock.storage.lost_answers import is_taken
from paddock.storage.sqlite.approvals import ApprovalReads
from paddock.storage.sqlite.automations import AutomationReads
from paddock.storage.sqlite.check import check_session
from paddock.storage.sqlite.connection import Connection, Cursor, open_reader, open_writer, unavailable
from paddock.storage.sqlite.deliveries import DeliveryReads
from paddock.storage.sqlite.engine import SqliteEngine
from paddock.storage.sqlite.events import EventReads
from paddock.storage.sqlite.indexing import Indexing
from paddock.storage.sqlite.keeping import KeepingReads
from paddock.storage.sqlite.kept import KeptReads
from paddock.storage.sqlite.known import MOST, KnownSessions
from paddock.storage.sqlite.migrate import migrate
from paddock.storage.sqlite.overview import OverviewReads
from paddock.storage.sqlite.people import PeopleReads
from paddock.storage.sqlite.pool import Answer, ReaderPool
from paddock.storage.sqlite.reader import Reader
from paddock.storage.sqlite.sessions import SessionReads
from paddock.storage.sqlite.thread_indexing import ThreadIndexing
from paddock.storage.sqlite.writer import Writer
from paddock.storage.tables.calendar import CalendarReads
from paddock.storage.tables.plugins import PluginReads
from paddock.storage.tables.statements import Engine
from paddock.storage.tables.taking_over import TakingOverReads

SWITCH_SECONDS = 0.0005
"""How long a busy event loop may keep the writer waiting for the interpreter; the default of 5 ms starves commits."""
_BOOT = "update meta set value = value + 1 where name = 'boot_number' returning value"


class SqliteStore(
    KeptReads,
    EventReads,
    ApprovalReads,
    SessionReads,
    KeepingReads,
    PeopleReads,
    OverviewReads,
    AutomationReads,
    DeliveryReads,
    CalendarReads,
    TakingOverReads,
    PluginReads,
):
    """All of the `Store` port over one SQLite file in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.engine: Engine = SqliteEngine(lambda: self._reader)
        self._epoch = 0
        self._known = KnownSessions()
        self._parts: tuple[Writer, Reader] | None = None
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
        return self._reader.claim(session_id, epoch)

    async def look(self, session_id: str) -> Claim:
        return self._reader.claim(session_id, 0)

    def append(self, batch: Batch) -> asyncio.Future[None]:
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
        epoch, head = self._reader.ends(batch.session_id)
        return is_taken(batch, newest if newest > batch.epoch else epoch, head)

    async def read(
        self, session_id: str, *, after: int = 0, turn_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        return self._reader.facts(session_id, after, turn_id, limit)

    async def check(self, session_id: str) -> Damage | None:
        """The first place where this session's log is not what was written, or None."""
        return await anyio.to_thread.run_sync(check_session, self._directory, session_id)

    # --- what is looked up beside it: point reads take microseconds, so they run where they are asked

    async def session(self, session_id: str) -> SessionRow | None:
        return self._reader.session(session_id)

    async def inbox(self, session_id: str, key: str) -> InboxRow | None:
        return self._reader.inbox(session_id, key)

    async def run(self, run_id: str) -> RunRow | None:
        return self._reader.run(run_id)

    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]:
        return self._reader.runs_by_label(workspace_id, user_id, client_run_id, limit)

    async def unfinished_runs(self) -> Sequence[RunRow]:
        return self._reader.unfinished_runs()

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        newest_first: bool = True,
        room: int | None = None,
        view: View = WHOLE,
    ) -> Sequence[TranscriptRow]:
        return self._reader.transcript(session_id, before, after, limit, newest_first, room, view)

    async def transcript_count(self, session_id: str) -> int:
        return self._reader.transcript_count(session_id)

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

    async def state(self, scope_key: str, key: str) -> bytes | None:
        return self._reader.state(scope_key, key)

    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        return self._reader.state_snapshot(scope_keys, max_bytes)

    async def state_size(self, scope_key: str) -> int:
        return self._reader.state_size(scope_key)

    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]:
        return self._reader.audit(run_id, limit)

    async def stored_agents(self) -> Sequence[AgentRow]:
        return self._reader.stored_agents()

    async def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None:
        return self._reader.stored_agent(workspace_id, agent_id)

    async def write(self, rows: Sequence[Apart]) -> None:
        try:
            await self._writer.submit(None, rows)
        finally:  # also when nobody waits for it any more
            if self._thread_indexing is not None:
                self._thread_indexing.hear(rows)

    async def tool_calls(self, run_id: str, *, limit: int = 1000) -> Sequence[ToolCallRow]:
        return self._reader.tool_calls(run_id, limit)

    async def unanswered_tool_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ToolCallRow]:
        return self._reader.unanswered_tool_calls(over_since, limit)

    async def model_usage(self, run_id: str, *, limit: int = 1000) -> Sequence[ModelUsageRow]:
        return self._reader.model_usage(run_id, limit)

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        return self._reader.spent_on(day, workspace_id, user_id)

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        return self._reader.spent(run_id, workspace_id, user_id, since)

    # --- keys

    async def add_key(self, row: ApiKeyRow) -> None:
        await self._writer.submit(None, (row,))

    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        return self._reader.find_key(key_hash)

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        return self._reader.live_keys(key_ids)

    async def secret_mark(self) -> str | None:
        found = self._reader.one("select mark from cluster_secret")
        return None if found is None else found[0]

    async def set_secret_mark(self, mark: str) -> None:
        sql = "insert into cluster_secret values (1, ?) on conflict (one) do update set mark = excluded.mark"

        def note(cursor: Cursor) -> None:
            cursor.execute(sql, (mark,))

        await self.perform(note)

    async def any_key(self) -> bool:
        return self._reader.any_key()

    async def api_keys(
        self, workspace_id: str | None, *, user_id: str | None = None, limit: int = 1000
    ) -> Sequence[ApiKeyRow]:
        return self._reader.api_keys(workspace_id, user_id, limit)

    async def revoke_key(self, key_id: str, at: float, audit_row: AuditRow) -> None:
        def revoke(cursor: Cursor) -> None:
            cursor.execute("update api_keys set revoked_at = coalesce(revoked_at, ?) where key_id = ?", (at, key_id))

        await self.perform(revoke, [audit_row])

    # --- for tables of their own that live in this file

    async def perform(self, deed: Callable[[Cursor], None], rows: Sequence[AuditRow] = ()) -> None:
        """Do something inside the next commit, together with these rows. Short: others wait for it."""
        await self._writer.submit(None, rows, deed)

    async def fold(self) -> None:
        """Move the write-ahead log into the database and empty it, after all that waits was written."""
        await self._writer.submit(None, (), None, fold=True)

    async def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The answer to a question that may take a while, asked on a thread."""
        if self._pool is None:
            raise StorageUnavailableError("the store is closed")
        return await self._pool.ask(question)

    # --- within

    @property
    def _writer(self) -> Writer:
        return self._need_open()[0]

    @property
    def _reader(self) -> Reader:
        return self._need_open()[1]

    def _need_open(self) -> tuple[Writer, Reader]:
        if self._parts is None:
            raise StorageUnavailableError("the store is closed")
        return self._parts

    def _open_files(self) -> tuple[Connection, int, Reader]:
        make_directory(self._directory)
        try:
            connection = open_writer(self._directory)
            migrate(connection)
            boot_number = connection.execute(_BOOT).fetchone()[0]
            reader = Reader(open_reader(self._directory))
        except apsw.Error as error:
            raise unavailable(error) from error
        self._known = _known(reader)
        return connection, boot_number, reader


def _known(reader: Reader) -> KnownSessions:
    known = KnownSessions()
    if len(sessions := reader.session_ids(MOST + 1)) <= MOST:
        known.fill(sessions)
    return known
