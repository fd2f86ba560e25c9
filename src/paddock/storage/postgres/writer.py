"""Writes: everything queued while the last statement ran shares the next one, which is also its commit.

One connection, used by one task. Nobody is told "done" before the database answered. A statement that fails because of
one work is split until that work stands alone; anything else fails its whole group, and whether its commit happened is
then unknown: who asked for it, or the session's next owner, reads what is true. While the database is away the writer
calls itself unhealthy, refuses at once, and tries to come back; nobody has to restart anything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import asyncpg

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import (
    StaleOwnerError,
    StorageUnavailableError,
    UnansweredWriteError,
    cannot_be_stored,
    exists_already,
)
from paddock.rules.rows.rows import Row
from paddock.storage.owners import Owners
from paddock.storage.postgres.connection import AGAIN, AWAY, GUILTY, Connection, is_over, unavailable
from paddock.storage.postgres.group import Group, QueuedWrite, in_order, take_group, write_works
from paddock.storage.postgres.silence import Silence

MAX_QUEUED = 20_000
TRIES = 4
"""How often a statement is tried that got in another host's way."""
RETRY_SECONDS = 0.5
"""Between two attempts to reach a database that is away."""
QUIET_SECONDS = 5.0
"""After so long without a write the writer asks whether the database is still there."""
COME_BACK_SECONDS = 9.0
"""How long one attempt to come back may take."""
CLOSE_SECONDS = 3.0
QUIET_TURNS = 3
"""Turns of the event loop without a new work after which a group is complete, as in the embedded store."""
GATHER_SECONDS = 0.003
"""How long a group may gather at most."""
_PROBE = """
insert into probes (host, count) values ($1, 1) on conflict (host) do update set count = probes.count + 1"""
_TELL_BOOT = "select set_config('paddock.boot', $1, false)"
_AWAY = "the database is away; trying to come back"
_log = logging.getLogger(__name__)

Connect = Callable[[], Awaitable[Connection]]
"""Opens the connection that this writer may use; awaited. Raises StorageUnavailableError."""


class Writer(Owners):
    """Takes works, writes them in groups, and answers after their commit."""

    def __init__(self, connection: Connection, connect: Connect, address: str, host: str, silence: Silence) -> None:
        super().__init__()
        self.healthy = True
        self.boot: int | None = None
        """The number of the host that writes; None for a command that is no host."""
        self._address = address
        self._host = host
        self._connect = connect
        self._silence = silence
        self._connection = connection
        self._queue: deque[QueuedWrite] = deque()
        self._claims: dict[str, int] = {}
        self._busy: Sequence[QueuedWrite] = ()
        self._told: tuple[Connection, int | None] | None = None
        """Which connection was told for which host it writes."""
        self._away = False
        """The connection is lost and an attempt to replace it failed: nothing is taken until one succeeds."""
        self._crowded = False
        """Whether the last group was more than one work."""
        self._closed = False
        self._bell = asyncio.Event()
        connection.add_termination_listener(self._lost)
        self._task = asyncio.create_task(self._write_for_ever(), name="paddock-writer")

    def submit(self, batch: Batch | None, rows: Sequence[Row | ApiKeyRow] = ()) -> asyncio.Future[None]:
        """Queue a work; the future ends after its commit. Giving up the wait does not take the work back."""
        if self._closed:
            raise StorageUnavailableError("the store is closed")
        if self._away:
            raise StorageUnavailableError(_AWAY)
        if len(self._queue) >= MAX_QUEUED:
            raise StorageUnavailableError("too much waits to be written")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.handed_in(batch)
        self._queue.append(QueuedWrite(batch, rows, done=done))
        self._bell.set()
        return done

    @contextmanager
    def claiming(self, session_id: str) -> Generator[None]:
        """While somebody becomes the owner nobody else hands anything in, so nothing slips by unread."""
        self._claims[session_id] = self._claims.get(session_id, 0) + 1
        try:
            yield
        finally:
            left = self._claims.pop(session_id) - 1
            if left:
                self._claims[session_id] = left

    def may_write(self, batch: Batch) -> bool:
        """True if nobody on this host has claimed the session since."""
        return batch.session_id not in self._claims and self.owners.get(batch.session_id, 0) <= batch.epoch

    async def stop(self) -> None:
        """Finish what is queued and end; what cannot be finished in time is refused."""
        self._closed = True
        self._bell.set()
        if not self._away:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await asyncio.shield(self._task)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._refuse_all(StorageUnavailableError("the store is closed"))
        self._connection.terminate()

    async def _write_for_ever(self) -> None:
        while not self._closed or self._queue:
            if not self.healthy:
                await self._come_back()
            elif self._queue:
                await self._write_group()
            else:
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        self._bell.clear()
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._bell.wait()
        except TimeoutError:
            await self._ask_whether_it_is_there()

    async def _write_group(self) -> None:
        if self._crowded:
            await self._gather()
        self._busy = take_group(self._queue)
        self._crowded = len(self._busy) > 1
        try:
            work = self._write_as_host([work for work in self._busy if not self._is_stale(work)])
            await self._silence.watch(self._connection, work)
        except Exception as error:  # noqa: BLE001 - a writer that stops would leave everybody waiting for ever
            self._failed(error)
            self._refuse_all(unavailable(error, self._address))  # those that wait would follow what never was
        else:
            self._answer_all()

    async def _gather(self) -> None:
        """Let what is about to be queued join the group: a statement and its commit cost as much as a few works."""
        loop = asyncio.get_running_loop()
        until, quiet, seen = loop.time() + GATHER_SECONDS, 0, 0
        while quiet < QUIET_TURNS and loop.time() < until:
            quiet, seen = 0 if len(self._queue) > seen else quiet + 1, len(self._queue)
            await asyncio.sleep(0)

    def _is_stale(self, work: QueuedWrite) -> bool:
        batch = work.batch
        if batch is None or self.owners.get(batch.session_id, 0) <= batch.epoch:
            return False
        work.error = StaleOwnerError(f"session {batch.session_id} has another owner")
        return True

    async def _write_as_host(self, works: Sequence[QueuedWrite]) -> None:
        if self._told != (told := (self._connection, self.boot)):
            await self._connection.execute(_TELL_BOOT, "" if self.boot is None else str(self.boot))
            self._told = told
        await self._write(works)

    async def _write(self, works: Sequence[QueuedWrite]) -> None:
        for guarded, stretch in in_order(work for work in works if not work.is_empty):
            await (self._write_guarded(stretch) if guarded else self._write_together(stretch))

    async def _write_together(self, works: Sequence[QueuedWrite]) -> None:
        """One statement; when a work cannot be written the others are, and it fails alone."""
        try:
            await self._again(partial(self._execute, works))
        except GUILTY as error:
            if len(works) == 1:
                works[0].error = _guilt(error)
                return
            await self._write_together(works[: len(works) // 2])
            await self._write_together(works[len(works) // 2 :])

    async def _execute(self, works: Sequence[QueuedWrite]) -> None:
        group = Group(works, self.boot)
        statement, values = group.statement()
        group.settle(frozenset(row[0] for row in await self._connection.fetch(statement, *values)))

    async def _write_guarded(self, works: Sequence[QueuedWrite]) -> None:
        async def write() -> None:
            for work in works:
                work.error = None
            errors = await write_works(self._connection, works, self.boot)
            for work, error in zip(works, errors, strict=True):
                work.error = _guilt(error) if isinstance(error, GUILTY) else error

        await self._again(write)

    async def _again(self, attempt: Callable[[], Awaitable[None]]) -> None:
        for tries_left in reversed(range(TRIES)):
            try:
                await attempt()
            except AGAIN:
                if not tries_left:
                    raise
            else:
                return

    def _answer_all(self) -> None:
        works, self._busy = self._busy, ()
        for work in works:
            self.answer(work)

    def _refuse_all(self, error: Exception) -> None:
        """Everything under way, of which a commit that was not answered may have happened, and everything that waits,
        of which nothing was sent."""
        for work in self._busy:
            work.error = work.error or UnansweredWriteError(str(error))
        self._busy = [*self._busy, *self._queue]
        self._queue.clear()
        for work in self._busy:
            work.error = work.error or error
        self._answer_all()

    # --- when the database is away -----------------------------------------------------------------------------------

    def _lost(self, connection: Any) -> None:
        """The connection ended, perhaps while nobody used it."""
        if connection is self._connection and not self._closed:
            self._failed(ConnectionError("the connection was lost"))
            self._bell.set()

    def fell_silent(self) -> None:
        """The database answers nobody: nothing is taken until it does."""
        self._away = True
        self._failed(TimeoutError("the database is silent"))
        self._bell.set()

    def _failed(self, error: Exception) -> None:
        if self.healthy:
            _log.error("storage refuses to write", extra={"action": "storage.commit_failed", "error": str(error)})
        self.healthy = False
        if is_over(self._connection, error):
            self._connection.terminate()

    async def _ask_whether_it_is_there(self) -> None:
        try:
            await self._silence.watch(self._connection, self._connection.execute("select 1"))
        except AWAY as error:
            self._failed(error)

    async def _come_back(self) -> None:
        try:
            async with asyncio.timeout(COME_BACK_SECONDS):
                if self._connection.is_closed():
                    self._connection = await self._connect()
                    self._connection.add_termination_listener(self._lost)
                await self._silence.watch(self._connection, self._connection.execute(_PROBE, self._host))
        except (*AWAY, StorageUnavailableError) as error:
            if is_over(self._connection, error):
                self._connection.terminate()
            self._away = True
            self._refuse_all(StorageUnavailableError(_AWAY))
            await asyncio.sleep(0 if self._closed else RETRY_SECONDS)
        else:
            self.healthy, self._away = True, False
            _log.warning("storage accepts writes again", extra={"action": "storage.recovered"})


def _guilt(error: Exception) -> Exception:
    match error:
        case asyncpg.IntegrityConstraintViolationError():
            return exists_already(type(error).__name__)
        case asyncpg.LockNotAvailableError():
            return StorageUnavailableError("another transaction holds what this would change")
        case _:
            return cannot_be_stored(error)
