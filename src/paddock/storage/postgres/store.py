"""The store on PostgreSQL behind the `Store` port: claims, hands writes to the writer, reads what is committed.

Epochs come from a sequence of the database, so they grow with every claim over all hosts and starts. A host that serves
is on the register (`hosts.py`), and owns a session while something goes on in it; a command that is no host is not.
"""

import os
import socket
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import NamedTuple

import anyio

from paddock.ports import ApiKeyRow, Batch, Claim
from paddock.rules.agents.addresses import place_of as shown
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import Damage
from paddock.rules.rows.rows import Apart, AuditRow, TranscriptRow
from paddock.rules.search.queries import FoundThreads, ThreadQuery, TranscriptQuery
from paddock.storage.postgres.claims import Claims
from paddock.storage.postgres.connection import Connection, connect
from paddock.storage.postgres.engine import Answer, Ask, PostgresEngine, Reader, run
from paddock.storage.postgres.group import ToWrite, write_rows
from paddock.storage.postgres.hosts import PostgresHosts, own_connection
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.postgres.search import PostgresIndex, PostgresWords
from paddock.storage.postgres.silence import Silence
from paddock.storage.postgres.writer import Writer
from paddock.storage.search.history import HistorySearch
from paddock.storage.search.threads import ThreadSearch
from paddock.storage.tables import Records
from paddock.storage.tables.log import checked, is_taken
from paddock.storage.tables.statements import Engine


class _Open(NamedTuple):
    writer: Writer
    reader: Reader
    history: HistorySearch
    threads: ThreadSearch


class PostgresStore(Records):
    """All of the `Store` port over one database. `host_id`: serve it as the host of this name."""

    words = PostgresWords()

    def __init__(self, address: str, *, host_id: str = "", url: str = "") -> None:
        self._address = address
        self.engine: Engine = PostgresEngine(lambda: self.reader, self.perform)
        self._silence = Silence(address, self._fell_silent)
        self.hosts = (
            PostgresHosts(address, host_id, url, engine=self.engine, silence=self._silence) if host_id else None
        )
        self._last_backend = 0
        self._parts: _Open | None = None
        self._claims = Claims(self.engine, lambda: self.writer.boot)

    async def open(self) -> None:
        await bring_up_to_date(self._address)
        connection = await self._connect()
        try:
            reader = await Reader.open(self._address, self._silence)
        except StorageUnavailableError:
            connection.terminate()
            raise
        host = f"{socket.gethostname()}:{os.getpid()}"
        writer = Writer(connection, self._connect, self._address, host, self._silence)
        history, threads = HistorySearch(self.engine, PostgresIndex()), ThreadSearch(self.engine, PostgresIndex())
        self._parts = _Open(writer, reader, history, threads)
        if self.hosts is not None:
            self.hosts.on_boot = partial(setattr, writer, "boot")
            await self.hosts.register()

    async def close(self) -> None:
        parts, self._parts = self._parts, None
        if parts is not None:
            await parts.history.stop()
            await parts.threads.stop()
            with anyio.CancelScope(shield=True):
                await parts.writer.stop()
            parts.reader.close()
        if self.hosts is not None:
            self.hosts.close()
        await self._silence.stop()

    def healthy(self) -> bool:
        return self._parts is not None and self._parts.writer.healthy

    async def claim(self, session_id: str) -> Claim:
        writer = self.writer
        on_its_way = writer.is_waiting(session_id)
        with writer.claiming(session_id):
            taken = await self._claims.take(session_id)
            writer.own(session_id, taken.epoch)
            if on_its_way:  # what the last owner handed in becomes part of what we read
                await writer.submit(None)
                taken = taken._replace(place=await self.place(session_id))
        return await self.claim_at(session_id, *taken)

    def append(self, batch: Batch) -> Awaitable[None]:
        """A future and not a coroutine: every message passes here, and a task to wait in costs more than the wait."""
        parts = self._open
        if not parts.writer.may_write(batch):
            raise StaleOwnerError(f"session {batch.session_id} has another owner")
        done = parts.writer.submit(batch, batch.rows)
        parts.history.count(batch)
        return done

    async def took(self, batch: Batch) -> bool:
        if not self.writer.may_write(batch):
            raise StaleOwnerError(f"session {batch.session_id} has another owner")
        return is_taken(batch, *await self.end(batch.session_id))

    async def check(self, session_id: str) -> Damage | None:
        """The first place where this session's log is not what was written, or None."""
        # Else a session that is being written has no end.
        return await self.reader.ask_one_state(lambda connection: run(connection, checked(session_id)))

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        return await self._open.history.find(session_id, query)

    async def find_sessions(self, query: ThreadQuery) -> FoundThreads:
        return await self._open.threads.find(query)

    async def write(self, rows: Sequence[Apart | ApiKeyRow]) -> None:
        await self.writer.submit(None, rows)

    async def scrub(self) -> None:
        """Not ours to do: the server's files are the server's."""

    async def perform(self, deed: Ask[Answer], rows: Sequence[AuditRow] = (), *, durably: bool = True) -> Answer:
        """Do something together with these rows, beside the writer: long works never hold up the log."""

        async def together(connection: Connection) -> Answer:
            await write_rows(connection, ToWrite(None, rows))
            return await deed(connection)

        return await self.reader.perform(together, durably=durably)

    @property
    def writer(self) -> Writer:
        return self._open.writer

    @property
    def reader(self) -> Reader:
        return self._open.reader

    @property
    def _open(self) -> _Open:
        if self._parts is None:
            raise StorageUnavailableError("the store is closed")
        return self._parts

    def _fell_silent(self) -> None:
        if self._parts is not None:
            self._parts.writer.fell_silent()

    async def _connect(self) -> Connection:
        """The writer's connection. What an earlier one of ours left behind in the database is ended first."""
        connection = await connect(self._address)
        try:
            await own_connection(
                connection, self._last_backend, serving=self.hosts is not None, place=shown(self._address)
            )
        except BaseException:
            connection.terminate()
            raise
        self._last_backend = connection.get_server_pid()
        return connection
