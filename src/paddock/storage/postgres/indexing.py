"""When a conversation gets into the search index: not while it is written, but in parts, once enough has come together.

An append only counts. A conversation that has gathered `ENOUGH` new items is indexed by one background task, a small
part per commit and beside the writer; a short conversation never is. A search reads up to `MAX_TAIL` items one by one,
and when more are missing (after an upgrade, or a restart that forgot the counts) it has them indexed first.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from paddock.ports import Batch
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.history_search import TranscriptQuery
from paddock.rules.rows import TranscriptRow
from paddock.storage.postgres import search
from paddock.storage.postgres.reader import Reader

ENOUGH = 128
MAX_TAIL = 256
PART = 64
"""Items per commit."""
MAX_COUNTED = 65_536
"""Conversations whose new items are counted; the one counted longest ago is forgotten first."""
_log = logging.getLogger(__name__)


class Indexing:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._new: dict[str, int] = {}
        self._due: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._one = asyncio.Lock()
        self._task = asyncio.get_running_loop().create_task(self._keep_up(), name="paddock-indexing")

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def count(self, batch: Batch) -> None:
        """Hear of an append. Cheap, because every message passes here."""
        items = 0
        for row in batch.rows:
            if type(row) is TranscriptRow:
                items += 1
        if items:
            new = self._new.pop(batch.session_id, 0) + items
            if new >= ENOUGH:
                self._due[batch.session_id] = None
                self._wake.set()
            else:
                self._new[batch.session_id] = new
                if len(self._new) > MAX_COUNTED:
                    del self._new[next(iter(self._new))]

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        look = partial(search.find, session_id=session_id, query=query)
        found = await self._reader.ask(partial(look, most=MAX_TAIL))
        if found is None:
            await self.catch_up(session_id)
            found = await self._reader.ask(look)
        return found or []

    async def catch_up(self, session_id: str) -> None:
        """Index all that is missing of a conversation, part by part. A part that a crash forgets is made again."""
        async with self._one:  # one after the other: parts follow each other
            add = partial(search.add_part, session_id=session_id, size=PART)
            while await self._reader.perform(add, durably=False):
                pass

    async def _keep_up(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                session_id = next(iter(self._due))
                del self._due[session_id]
                await self._try(session_id)

    async def _try(self, session_id: str) -> None:
        try:
            await self.catch_up(session_id)
        except StorageUnavailableError as error:  # a search will ask again
            about = {"action": "storage.index_failed", "session_id": session_id, "error": str(error)}
            _log.warning("a conversation could not be indexed for search", extra=about)
