"""The one thread that writes: everything queued while the last commit ran shares the next one.

Nobody is told "done" before the commit returned. A commit that fails fails its whole group; until one succeeds again
the writer calls itself unhealthy and, when idle, tries once a second whether the disk is back.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

import apsw

from paddock.ports import ApiKeyRow, Batch
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows import Row
from paddock.storage.sqlite.connection import Connection, unavailable
from paddock.storage.sqlite.transaction import GUILTY, Work, write_apart, write_group

MAX_GROUP = 512
MAX_IDLE_OWNERS = 65_536
PROBE_SECONDS = 1.0
_PROBE = "update meta set value = value + 1 where name = 'probes'"
_log = logging.getLogger(__name__)


class Writer:
    """Takes works on the event loop, commits them on its own thread, answers on the event loop."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.healthy = True
        self.owners: dict[str, int] = {}
        """Newest epoch given out per session, until its owner's first commit: from then on the row says it."""
        self._connection = connection
        self._loop = loop
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._waiting: dict[str, int] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="paddock-writer", daemon=True)
        self._thread.start()

    # --- on the event loop

    def submit(self, batch: Batch | None, rows: Sequence[Row | ApiKeyRow] = ()) -> asyncio.Future[None]:
        """Queue a work; the future ends after its commit. Giving up the wait does not take the work back."""
        if self._closed:
            raise StorageUnavailableError("the store is closed")
        done: asyncio.Future[None] = self._loop.create_future()
        if batch is not None:
            self._waiting[batch.session_id] = self._waiting.get(batch.session_id, 0) + 1
        self._queue.put(Work(batch, rows, done))
        return done

    def own(self, session_id: str, epoch: int) -> None:
        """From now on only this epoch, or a later one, may write the session."""
        self.owners.pop(session_id, None)
        self.owners[session_id] = epoch
        if len(self.owners) > MAX_IDLE_OWNERS:  # the head still protects a session whose newest owner never wrote
            del self.owners[next(iter(self.owners))]

    def is_waiting(self, session_id: str) -> bool:
        """Is something of this session queued or being committed?"""
        return session_id in self._waiting

    def stop(self) -> None:
        """Finish what is queued and end; blocks, so call it from a worker thread."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _answer(self, works: Sequence[Work]) -> None:
        for work in works:
            if work.batch is not None:
                self._settle(work.batch, work.error)
            if work.done.done():
                continue  # nobody waits any more
            if work.error is None:
                work.done.set_result(None)
            else:
                work.done.set_exception(work.error)

    def _settle(self, batch: Batch, error: Exception | None) -> None:
        left = self._waiting.pop(batch.session_id) - 1
        if left:
            self._waiting[batch.session_id] = left
        if error is None and self.owners.get(batch.session_id) == batch.epoch:
            del self.owners[batch.session_id]

    # --- on the writer's thread

    def _run(self) -> None:
        try:
            while works := self._next_group():
                try:
                    self._commit(works)
                finally:
                    self._tell(works)
        finally:
            self._closed = True
            with suppress(apsw.Error):  # a broken disk: what was acknowledged is in the write-ahead log
                self._connection.close()
            self._refuse_the_rest()

    def _next_group(self) -> list[Work]:
        """All that waits, at most MAX_GROUP; empty when it is time to end."""
        first = self._first()
        if first is None:
            return []
        works = [first]
        with suppress(Empty):
            while len(works) < MAX_GROUP:
                work = self._queue.get_nowait()
                if work is None:
                    self._queue.put(None)  # end after this group
                    break
                works.append(work)
        return works

    def _first(self) -> Work | None:
        while not self.healthy:
            try:
                return self._queue.get(timeout=PROBE_SECONDS)
            except Empty:
                self._probe()
        return self._queue.get()

    def _commit(self, works: Sequence[Work]) -> None:
        try:
            self._write(works)
        except apsw.Error as error:
            self._failed(error)
            _refuse(works, unavailable(error))
        except BaseException:  # a fault of our own ends this thread, and nobody may take it for success
            self.healthy = False
            _refuse(works, StorageUnavailableError("the writer stopped"))
            raise
        else:
            self.healthy = True

    def _write(self, works: Sequence[Work]) -> None:
        connection = self._connection
        try:
            connection.execute("begin immediate")
            try:
                write_group(connection.cursor(), works, self.owners)
            except GUILTY:
                connection.execute("rollback")
                connection.execute("begin immediate")
                write_apart(connection, works, self.owners)
            connection.execute("commit")
        finally:
            if connection.in_transaction:
                with suppress(apsw.Error):  # some errors have rolled back already
                    connection.execute("rollback")

    def _failed(self, error: apsw.Error) -> None:
        if self.healthy:
            _log.error("storage refuses to write", extra={"action": "storage.commit_failed", "error": str(error)})
        self.healthy = False

    def _probe(self) -> None:
        try:
            self._connection.execute(_PROBE)
        except apsw.Error as error:
            self._failed(error)
        else:
            self.healthy = True
            _log.warning("storage accepts writes again", extra={"action": "storage.recovered"})

    def _tell(self, works: Sequence[Work]) -> None:
        with suppress(RuntimeError):  # the loop is gone, and everybody who waited with it
            self._loop.call_soon_threadsafe(self._answer, works)

    def _refuse_the_rest(self) -> None:
        left: list[Work] = []
        with suppress(Empty):
            while True:
                if work := self._queue.get_nowait():
                    left.append(work)
        _refuse(left, StorageUnavailableError("the store is closed"))
        self._tell(left)


def _refuse(works: Sequence[Work], error: StorageUnavailableError) -> None:
    for work in works:
        work.error = error
