"""Into the search index in small parts, each in a commit with whatever else waits.

A search reads up to `MAX_TAIL` items one by one, and when more are missing (after an upgrade, or a restart that forgot
the counts) it has them indexed first.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.history_search import TranscriptQuery
from paddock.storage.indexing import InParts
from paddock.storage.sqlite import search
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.pool import ReaderPool

ENOUGH = 256
MAX_TAIL = 512
PART = 64
"""Items per commit: bounds how long the event loop is kept from its other business."""

Perform = Callable[[Callable[[Cursor], None]], Awaitable[None]]
"""Do something inside the next commit, and wait for it."""


class Indexing(InParts):
    def __init__(self, pool: ReaderPool, perform: Perform) -> None:
        super().__init__(ENOUGH)
        self._pool = pool
        self._perform = perform

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        found = await self._pool.ask(partial(_find_when_ready, session_id=session_id, query=query))
        if found is None:
            await self.catch_up(session_id)
            found = await self._pool.ask(partial(search.find, session_id=session_id, query=query))
        return found

    async def workspace_of(self, session_id: str) -> str | None:
        return await self._pool.ask(partial(search.workspace_of, session_id=session_id))

    async def add_part(self, session_id: str) -> bool:
        part = await self._pool.ask(partial(search.next_part, session_id=session_id, size=PART))
        if part is None:
            return False
        await self._perform(part.write)
        return len(part.items) == PART


def _find_when_ready(connection: Connection, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow] | None:
    """The answer, or None when too much is missing from the index to be read item by item."""
    place = search.place_of(connection, session_id)
    if place is not None and search.missing(connection, place, MAX_TAIL + 1) > MAX_TAIL:
        return None
    return search.find(connection, session_id, query)
