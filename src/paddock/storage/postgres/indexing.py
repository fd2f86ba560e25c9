"""Into the search index in small parts, each in a commit of its own, beside the writer.

A search reads up to `MAX_TAIL` items one by one, and when more are missing (after an upgrade, or a restart that forgot
the counts) it has them indexed first.
"""

from collections.abc import Sequence
from functools import partial

from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.history_search import TranscriptQuery
from paddock.storage.indexing import InParts
from paddock.storage.postgres import search
from paddock.storage.postgres.reader import Reader

ENOUGH = 128
MAX_TAIL = 256
PART = 64
"""Items per commit."""


class Indexing(InParts):
    def __init__(self, reader: Reader) -> None:
        super().__init__(ENOUGH)
        self._reader = reader

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        look = partial(search.find, session_id=session_id, query=query)
        found = await self._reader.ask(partial(look, most=MAX_TAIL))
        if found is None:
            await self.catch_up(session_id)
            found = await self._reader.ask(look)
        return found or []

    async def workspace_of(self, session_id: str) -> str | None:
        return await self._reader.ask(partial(search.workspace_of, session_id=session_id))

    async def add_part(self, session_id: str) -> bool:
        """A part that a crash forgets is made again."""
        add = partial(search.add_part, session_id=session_id, size=PART)
        return await self._reader.perform(add, durably=False)
