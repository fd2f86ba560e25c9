"""When a conversation gets into the search index: not while it is written, but in parts, once enough has come together.

An append only counts. A conversation that has gathered enough new items is indexed in the background; a short
conversation never is. Parts follow each other one at a time, workspaces in turn, so that one with long conversations
delays the searches of another by a part. Whatever is not counted or not lined up is indexed when somebody searches it.
How a part is read, indexed and found again is each database's own.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress

from paddock.ports import Batch
from paddock.ports.places import Places
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import TranscriptRow

MAX_COUNTED = 65_536
"""Conversations whose new items are counted; the one counted longest ago is forgotten first."""
MAX_DUE, MAX_DUE_IN_ALL = 256, 4096
"""Conversations that wait to be indexed, of one workspace and in all."""
WAITING, WAITING_IN_ALL = 64, 1024
"""Searches that wait for a part of theirs."""
_log = logging.getLogger(__name__)


class InParts(ABC):
    """Counts what is new and has a conversation indexed when `enough` has come together."""

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._new: dict[str, int] = {}
        self._due: dict[str, None] = {}
        """Conversations with enough that is new, whose workspace has not been looked up yet."""
        self._lines: dict[str, dict[str, None]] = {}
        """Conversations that are due, by workspace."""
        self._wake = asyncio.Event()
        self._places = Places(1, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._working: set[asyncio.Task[None]] = set()
        """One for each workspace with a line."""
        self._task = asyncio.get_running_loop().create_task(self._keep_up(), name="paddock-indexing")

    @abstractmethod
    async def workspace_of(self, session_id: str) -> str | None:
        """Look up whose a conversation is; None when there is no such conversation."""

    @abstractmethod
    async def add_part(self, session_id: str) -> bool:
        """Index the next items of a conversation; whether there may be more."""

    async def catch_up(self, session_id: str) -> None:
        """Index all that is missing of a conversation, part by part. Raises RATE_LIMITED when too many wait."""
        workspace = await self.workspace_of(session_id)
        more = workspace is not None
        while more:
            async with self._places.taken(workspace or ""):
                more = await self.add_part(session_id)

    async def stop(self) -> None:
        for task in (self._task, *self._working):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def count(self, batch: Batch) -> None:
        """Hear of an append. Cheap, because every message passes here."""
        items = 0
        for row in batch.rows:
            if type(row) is TranscriptRow:
                items += 1
        if items:
            new = self._new.pop(batch.session_id, 0) + items
            if new >= self._enough:
                self._line_up(batch.session_id)
            else:
                self._new[batch.session_id] = new
                if len(self._new) > MAX_COUNTED:
                    del self._new[next(iter(self._new))]

    def _line_up(self, session_id: str) -> None:
        if len(self._due) < MAX_DUE_IN_ALL:
            self._due[session_id] = None
            self._wake.set()

    async def _keep_up(self) -> None:
        """Look up whose the conversations are that are due, and see that each workspace works through its own."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                session_id = next(iter(self._due))
                del self._due[session_id]
                with suppress(StorageUnavailableError):  # a search will ask again
                    await self._sort(session_id)

    async def _sort(self, session_id: str) -> None:
        workspace = await self.workspace_of(session_id)
        if workspace is None or sum(map(len, self._lines.values())) >= MAX_DUE_IN_ALL:
            return
        if (line := self._lines.get(workspace)) is None:
            line = self._lines[workspace] = {}
            task = asyncio.get_running_loop().create_task(self._work_through(workspace), name="paddock-indexing")
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        if len(line) < MAX_DUE:
            line[session_id] = None

    async def _work_through(self, workspace: str) -> None:
        line = self._lines[workspace]
        try:
            while line:
                session_id = next(iter(line))
                del line[session_id]
                await self._try(session_id)
        finally:
            del self._lines[workspace]

    async def _try(self, session_id: str) -> None:
        try:
            await self.catch_up(session_id)
        except (StorageUnavailableError, HostError) as error:  # a search will ask again
            about = {"action": "storage.index_failed", "session_id": session_id, "error": str(error)}
            _log.warning("a conversation could not be indexed for search", extra=about)
