"""Notices a database that falls silent without closing its connections: a machine that is gone, a server that is
paused, a way that swallows what is said.

A statement may take its time, so its silence alone says nothing. When one has not been answered for a while, another
connection is opened and the server is asked what became of it. A server that does not answer there either is silent,
and everybody is told at once until it answers again. A connection whose work is over at the server, or was never
begun, lost its words on the way: it is ended, and whoever waits on it can go on with a new one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres.connection import Connection, backend_of, pids_at_work, terminate, unavailable

SILENT_SECONDS = 2.0
"""How long nobody minds that there is no answer."""
AGAIN_SECONDS = 0.5
"""Between two questions to a server that is silent or at work."""
MOMENT_SECONDS = 0.2
"""How long an answer may be on its way."""
_log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Silence:
    """Watches everything that is asked of one database. `tell` is called when it is found silent."""

    def __init__(self, address: str, tell: Callable[[], None]) -> None:
        self._address = address
        self._tell = tell
        self._doubted: set[Connection] = set()
        self._looking: asyncio.Task[None] | None = None
        self.is_on = False
        """Whether the server answers nobody, as far as is known."""

    async def watch(self, connection: Connection, work: Awaitable[Answer]) -> Answer:
        """Wait for the end of what goes on at this connection, which is ended when it does not come."""
        timer = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._doubt, connection)
        try:
            return await work
        finally:
            timer.cancel()
            self._doubted.discard(connection)

    def refuse(self) -> None:
        """Raises StorageUnavailableError while the server is known to be silent."""
        if self.is_on:
            raise unavailable(TimeoutError("it is silent"), self._address)

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    def _doubt(self, connection: Connection) -> None:
        self._doubted.add(connection)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="paddock-silence")

    async def _look(self) -> None:
        """Until everything that was doubted has its answer, or its end."""
        while self._doubted or self.is_on:
            asked = {connection: backend_of(connection) for connection in self._doubted}
            try:
                at_work = await pids_at_work(self._address, list(asked.values()), idle_seconds=SILENT_SECONDS)
            except TimeoutError:
                self._found_silent()
            except StorageUnavailableError:
                pass  # it cannot say, but it is not silent: what is asked of it ends by itself
            else:
                self._found_there()
                await asyncio.sleep(MOMENT_SECONDS)
                self._end({connection for connection, pid in asked.items() if pid not in at_work})
            await asyncio.sleep(AGAIN_SECONDS)

    def _found_silent(self) -> None:
        if not self.is_on:
            _log.error("the database is silent", extra={"action": "storage.silent"})
        self.is_on = True
        self._end(set(self._doubted))
        self._tell()

    def _found_there(self) -> None:
        if self.is_on:
            _log.warning("the database answers again", extra={"action": "storage.answers"})
        self.is_on = False

    def _end(self, connections: set[Connection]) -> None:
        for connection in connections & self._doubted:
            _log.warning("a connection to the database got no answer", extra={"action": "storage.unanswered"})
            terminate(connection)
