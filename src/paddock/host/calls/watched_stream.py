"""A streamed answer as the gate returns it: it ends by the run's deadline and is audited once.

The work makes the pieces; the gate has decided before who may ask for them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from paddock.host.calls.work import Chunks, close
from paddock.rules.errors import ErrorCode, HostError

Note = Callable[[HostError | None], None]
"""Called once when the stream has begun: with None for a first piece, or for an end without any; else with the
error."""


class WatchedStream:
    """Chunks within a deadline. Only reading starts the work.

    One timer ends the whole stream, as `asyncio.timeout_at` would end each piece: a timer for every word of every
    answer costs more than the words.
    """

    def __init__(self, chunks: Chunks, seconds: float, note: Note) -> None:
        self._chunks = chunks
        self._ends_at = asyncio.get_running_loop().time() + seconds
        self._note = note
        self._noted = False
        self._pieces: AsyncIterator[Mapping[str, Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reader: asyncio.Task[Any] | None = None
        """The task that waits for the next piece."""
        self._late = False
        self._rang = False
        """The deadline cancelled the reader."""

    @property
    def result(self) -> Mapping[str, Any]:
        return self._chunks.result

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        self._pieces = aiter(self._chunks)
        self._timer = asyncio.get_running_loop().call_at(self._ends_at, self._ring)
        return self

    async def __anext__(self) -> Mapping[str, Any]:
        try:
            piece = await self._next()
        except StopAsyncIteration:
            self._say(None)
            raise
        except HostError as error:
            self._say(error)
            raise
        except Exception:
            self._say(HostError(ErrorCode.RUNTIME_ERROR, "the work failed"))
            raise
        self._say(None)
        return piece

    async def _next(self) -> Mapping[str, Any]:
        assert self._pieces is not None
        task = asyncio.current_task()
        assert task is not None
        if self._late:
            raise _late()
        self._reader, cancelled = task, task.cancelling()
        try:
            return await anext(self._pieces)
        except asyncio.CancelledError:
            if self._rang and self._take_back(task) <= cancelled:
                raise _late() from None
            raise  # cancelled from outside
        finally:
            self._reader = None
            if self._rang:  # the source ignored the cancel
                self._take_back(task)

    def _ring(self) -> None:
        self._late = True
        if self._reader is not None:
            self._rang = self._reader.cancel()

    def _take_back(self, task: asyncio.Task[Any]) -> int:
        self._rang = False
        return task.uncancel()

    async def aclose(self) -> None:
        """Close the source. A stream that was dropped before its first piece is audited too."""
        self._say(None)
        if self._timer is not None:
            self._timer.cancel()
        for part in (self._pieces, self._chunks):
            await close(part)

    def _say(self, error: HostError | None) -> None:
        if not self._noted:
            self._noted = True
            self._note(error)


def _late() -> HostError:
    return HostError(ErrorCode.DEADLINE_EXCEEDED, "the run's deadline passed while this was being answered")
