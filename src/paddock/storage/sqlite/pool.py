"""Reading connections for questions that may take longer than a point read: asked on threads, few at a time, with an
end. Nothing here knows what is asked.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

import anyio
import anyio.to_thread
import apsw

from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.storage.sqlite.connection import Connection, open_reader, unavailable

THREADS = 2
QUESTION_SECONDS = 5.0
LOOK_EVERY = 10_000
"""SQLite's own steps between two looks at the clock: about a millisecond."""

Answer = TypeVar("Answer")


class ReaderPool:
    """Connections are opened when they are needed and kept. A question sees one state of the database throughout."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._idle: list[Connection] = []
        self._limiter = anyio.CapacityLimiter(THREADS)
        self._closed = False

    async def ask(self, question: Callable[[Connection], Answer]) -> Answer:
        """The answer, or HostError(DEADLINE_EXCEEDED) when it takes too long."""
        return await anyio.to_thread.run_sync(self._answer, question, limiter=self._limiter)

    def close(self) -> None:
        """Idle connections at once; one that is still asked closes when it has answered."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _answer(self, question: Callable[[Connection], Answer]) -> Answer:
        try:
            with self._borrowed() as connection, _at_most(connection, QUESTION_SECONDS), connection:
                return question(connection)
        except apsw.InterruptError as error:
            text = f"the search took more than {QUESTION_SECONDS:g} s; ask for rarer words, or less with filters"
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, text) from error
        except apsw.Error as error:
            raise unavailable(error) from error

    @contextmanager
    def _borrowed(self) -> Generator[Connection]:
        if self._closed:
            raise StorageUnavailableError("the store is closed")
        connection = self._idle.pop() if self._idle else open_reader(self._directory)
        try:
            yield connection
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)


@contextmanager
def _at_most(connection: Connection, seconds: float) -> Generator[None]:
    until = time.monotonic() + seconds
    raw = cast("apsw.Connection", connection)
    raw.set_progress_handler(lambda: time.monotonic() > until, LOOK_EVERY)
    try:
        yield
    finally:
        raw.set_progress_handler(None)
