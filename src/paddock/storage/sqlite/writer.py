"""Writes and commits: everything queued while the last commit ran shares the next one.

A group is gathered on the event loop and written on a thread of its own, statements and commit: SQLite works without
the interpreter, so the loop goes on meanwhile. Every statement hands the interpreter over and has to win it back, so a
group is written in few of them, many rows in each. Nobody is told "done" before the commit returned. A commit that
fails fails its whole group; until one succeeds again the writer calls itself unhealthy and tries once a second whether
the disk is back.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue

import apsw

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import StorageUnavailableError, UnansweredWriteError
from paddock.rules.rows.rows import Row
from paddock.storage.owners import Owners
from paddock.storage.sqlite.connection import Connection, Cursor, unavailable
from paddock.storage.sqlite.group import GUILTY, QueuedWrite, write_apart, write_group

MAX_GROUP = 64
"""Works in one commit: bounds how long the first of them waits for the last."""
QUIET_TURNS = 3
"""Turns of the event loop without a new work after which a group is complete: a request takes three from the socket to
its batch. On an idle loop they take microseconds; on a busy one they make a group of what would have been many."""
GATHER_SECONDS = 0.003
"""How long a group may gather at most."""
PROBE_SECONDS = 1.0
FOLD_SECONDS = 6.0
"""Longer than any question may take."""
_PROBE = "update meta set value = value + 1 where name = 'probes'"
_log = logging.getLogger(__name__)


class Writer(Owners):
    """Takes works on the event loop, and answers there after their commit."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.healthy = True
        self._connection = connection
        self._loop = loop
        self._queue: deque[QueuedWrite] = deque()
        self._busy = False
        self._crowded = False
        """Whether the last group was more than one work."""
        self._committing = False
        """Whether the group at work has come as far as its commit: an error from then on does not say that it was not
        written. Only the thread knows."""
        self._closed = False
        self.idle = asyncio.Event()
        """Set while nothing waits to be written."""
        self.idle.set()
        self._probe: asyncio.TimerHandle | None = None
        self._groups: SimpleQueue[list[QueuedWrite] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_for_ever, name="paddock-writer", daemon=True)
        self._thread.start()

    def submit(
        self,
        batch: Batch | None,
        rows: Sequence[Row | ApiKeyRow] = (),
        deed: Callable[[Cursor], None] | None = None,
        *,
        fold: bool = False,
    ) -> asyncio.Future[None]:
        """Queue a work; the future ends after its commit. Giving up the wait does not take the work back."""
        if self._closed:
            raise StorageUnavailableError("the store is closed")
        done: asyncio.Future[None] = self._loop.create_future()
        self.handed_in(batch)
        self._queue.append(QueuedWrite(batch, rows, done, deed=deed, fold=fold))
        if not self._busy:
            self._busy = True
            self.idle.clear()
            self._begin()
        return done

    async def stop(self) -> None:
        self._closed = True
        if self._probe is not None:
            self._probe.cancel()
        await self.idle.wait()
        self._groups.put(None)
        await asyncio.to_thread(self._thread.join)

    def _begin(self) -> None:
        """The next group: at once while works come alone, else when those about to come have come."""
        if self._crowded:
            self._loop.call_soon(self._gather, 0, 0, self._loop.time() + GATHER_SECONDS)
        else:
            self._loop.call_soon(self._next)

    def _gather(self, seen: int, quiet: int, until: float) -> None:
        """Let what is about to be queued join the group: beginning and committing one costs as much as a few works."""
        waiting = len(self._queue)
        quiet = 0 if waiting > seen else quiet + 1
        if 0 < waiting < MAX_GROUP and quiet < QUIET_TURNS and self._loop.time() < until:
            self._loop.call_soon(self._gather, waiting, quiet, until)
        else:
            self._next()

    def _next(self) -> None:
        works = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_GROUP))]
        if not works:
            self._busy = False
            self.idle.set()
            return
        self._crowded = len(works) > 1
        self._groups.put(works)

    def _over(self, works: Sequence[QueuedWrite], refusal: StorageUnavailableError | None) -> None:
        if refusal is None:
            self._recovered()
        else:
            self._failed(refusal)
            for work in works:
                work.error = refusal
        for work in works:
            self.answer(work)
        self._begin()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(apsw.Error):  # some errors have rolled back already
                self._connection.execute("rollback")

    def _write_for_ever(self) -> None:
        while (works := self._groups.get()) is not None:
            error: StorageUnavailableError | None = None
            try:
                self._write(works)
                if any(work.fold for work in works):
                    self._fold()
            except Exception as problem:  # noqa: BLE001 - a writer that stops would leave everybody waiting for ever
                error = self._refusal(problem)
                self._roll_back()
            with suppress(RuntimeError):  # the loop is gone, and everybody who waited with it
                self._loop.call_soon_threadsafe(self._over, works, error)
        with suppress(apsw.Error):  # a broken disk: what was acknowledged is in the write-ahead log
            self._connection.close()

    def _refusal(self, problem: Exception) -> StorageUnavailableError:
        """A disk that fails in the commit, or what comes after it, leaves open whether the group is on record. One that
        is full or held by another program has taken nothing."""
        refusal = unavailable(problem)
        if self._committing and not isinstance(problem, apsw.FullError | apsw.BusyError):
            return UnansweredWriteError(str(refusal))
        return refusal

    def _write(self, works: Sequence[QueuedWrite]) -> None:
        connection, self._committing = self._connection, False
        connection.execute("begin immediate")
        if works:
            self._write_works(works)
        else:  # a tiny write of our own, to see whether the disk is back
            connection.execute(_PROBE)
        self._committing = True
        connection.execute("commit")

    def _write_works(self, works: Sequence[QueuedWrite]) -> None:
        connection = self._connection
        try:
            write_group(connection.cursor(), works, self.owners)
        except GUILTY:
            connection.execute("rollback")
            connection.execute("begin immediate")
            write_apart(connection, works, self.owners)

    def _fold(self) -> None:
        """Here nobody writes. A reader in the middle of a question keeps the log from being emptied: wait for it."""
        until = time.monotonic() + FOLD_SECONDS
        while self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
            if time.monotonic() > until:
                raise StorageUnavailableError("the write-ahead log cannot be emptied while it is being read")
            time.sleep(0.01)

    # --- when the disk refuses ---------------------------------------------------------------------------------------

    def _failed(self, error: Exception) -> None:
        if self.healthy:
            _log.error("storage refuses to write", extra={"action": "storage.commit_failed", "error": str(error)})
        self.healthy = False
        if self._probe is None and not self._closed:
            self._probe = self._loop.call_later(PROBE_SECONDS, self._try_again)

    def _recovered(self) -> None:
        if not self.healthy:
            _log.warning("storage accepts writes again", extra={"action": "storage.recovered"})
        self.healthy = True

    def _try_again(self) -> None:
        """A group of nothing tells whether the disk is back when nobody else writes."""
        self._probe = None
        if self.healthy or self._closed:
            return
        if self._busy:
            self._probe = self._loop.call_later(PROBE_SECONDS, self._try_again)
            return
        self._busy = True
        self.idle.clear()
        self._groups.put([])
