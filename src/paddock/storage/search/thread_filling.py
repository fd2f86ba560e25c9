"""Fills the index of conversations when somebody searches: once for each user at a time.

A search waits a moment for it and then answers from what is there, saying that it is not complete, while the rest
follows behind it. Parts are put in a few at a time, workspaces in turn. What is missing, and how it is put in, is each
database's own.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress

import anyio

from paddock.ports.places import Places
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.search.thread_search import FoundThread, FoundThreads, ThreadQuery

AT_ONCE, EACH = 2, 1
"""Parts that are put in at once, in all and of one workspace."""
WAITING, WAITING_IN_ALL = 64, 1024
PATIENCE_SECONDS = 1.0
"""How long a search waits for what is missing."""
_log = logging.getLogger(__name__)

Whose = tuple[str, str]
"""A workspace and a user."""


class ThreadFilling(ABC):
    def __init__(self) -> None:
        self._filling: dict[Whose, asyncio.Task[bool]] = {}
        self._places = Places(AT_ONCE, each=EACH, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)

    @abstractmethod
    async def add_missing(self, whose: Whose) -> None:
        """Put in all that was committed before, each part within `turn_of`. Raises StorageUnavailableError."""

    @abstractmethod
    async def look_up(self, query: ThreadQuery) -> Sequence[FoundThread]:
        """Search the index as it is."""

    async def find(self, query: ThreadQuery) -> FoundThreads:
        complete = await self._catch_up((query.workspace_id, query.user_id))
        return FoundThreads(await self.look_up(query), complete=complete)

    def turn_of(self, whose: Whose) -> AbstractAsyncContextManager[None]:
        """Wait for the workspace's turn and have it for one part. Raises RATE_LIMITED when too many wait."""
        return self._places.taken(whose[0])

    async def stop(self) -> None:
        for task in list(self._filling.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _catch_up(self, whose: Whose) -> bool:
        """Index what is missing; return True when everything committed before is in the index."""
        with anyio.move_on_after(PATIENCE_SECONDS):
            if (earlier := self._filling.get(whose)) is not None:  # begun before what was written last, perhaps
                await asyncio.wait({earlier})
            task = self._filling.get(whose) or self._begin(whose)
            await asyncio.wait({task})
            return not task.cancelled() and task.result()
        return False

    def _begin(self, whose: Whose) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._fill(whose), name="paddock-thread-indexing")
        self._filling[whose] = task
        task.add_done_callback(lambda _: self._filling.pop(whose, None))
        return task

    async def _fill(self, whose: Whose) -> bool:
        try:
            await self.add_missing(whose)
        except (StorageUnavailableError, HostError) as error:  # what is there is found, and the next search tries again
            about = {"action": "storage.index_failed", "error": str(error)}
            _log.warning("conversations could not be indexed for search", extra=about)
            return False
        return True
