"""When a conversation gets into the search index: not while it is written, but in parts, once enough has come together.

An append only counts. A conversation that has gathered enough new items is indexed by one background task; a short
conversation never is. How a part is read, indexed and found again is each database's own.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress

from paddock.ports import Batch
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows import TranscriptRow

MAX_COUNTED = 65_536
"""Conversations whose new items are counted; the one counted longest ago is forgotten first."""
_log = logging.getLogger(__name__)


class InParts(ABC):
    """Counts what is new and has a conversation indexed when `enough` has come together."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._new: dict[str, int] = {}
        self._due: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._one = asyncio.Lock()
        """Parts follow each other: one conversation after the other."""
        self._task = asyncio.get_running_loop().create_task(self._keep_up(), name="paddock-indexing")

    @abstractmethod
    async def catch_up(self, session_id: str) -> None:
        """Index all that is missing of a conversation, part by part."""

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
            if new >= self._enough:
                self._due[batch.session_id] = None
                self._wake.set()
            else:
                self._new[batch.session_id] = new
                if len(self._new) > MAX_COUNTED:
                    del self._new[next(iter(self._new))]

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
