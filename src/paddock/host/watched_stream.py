"""An answer in pieces as the gate hands it out: it ends by the run's deadline, and it is audited once.

What the pieces are is the work's business; who may ask for them was decided before.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from paddock.host.work import Chunks
from paddock.rules.errors import ErrorCode, HostError

Note = Callable[[HostError | None], None]
"""Hears once how the stream began: None for a first piece, or for an end without any; else what was wrong."""


class WatchedStream:
    """Chunks, watched. Reading it is the only thing that starts the work."""

    def __init__(self, chunks: Chunks, seconds: float, note: Note) -> None:
        self._chunks = chunks
        self._ends_at = asyncio.get_running_loop().time() + seconds
        self._note = note
        self._noted = False
        self._pieces: AsyncIterator[Mapping[str, Any]] | None = None

    @property
    def result(self) -> Mapping[str, Any]:
        return self._chunks.result

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        self._pieces = aiter(self._chunks)
        return self

    async def __anext__(self) -> Mapping[str, Any]:
        assert self._pieces is not None
        try:
            async with asyncio.timeout_at(self._ends_at):
                piece = await anext(self._pieces)
        except TimeoutError:
            late = HostError(ErrorCode.DEADLINE_EXCEEDED, "the run's deadline passed while this was being answered")
            self._say(late)
            raise late from None
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

    async def aclose(self) -> None:
        """Let the source clean up; one that was let go before its first piece is on record too."""
        self._say(None)
        for part in (self._pieces, self._chunks):
            close = getattr(part, "aclose", None)
            if close is not None:
                await close()

    def _say(self, error: HostError | None) -> None:
        if not self._noted:
            self._noted = True
            self._note(error)
