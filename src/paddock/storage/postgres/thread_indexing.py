"""When conversations get into the index they are found by: when their user looks for something, and never before.

Other hosts write too, so every search looks for what is missing of its user's conversations and has it put in, the
newest first. It waits a moment for that and then answers from what is there, saying that it is not complete, while the
rest follows behind it.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial

import anyio

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.thread_search import FoundThreads, ThreadQuery
from paddock.storage.postgres import thread_search
from paddock.storage.postgres.reader import Reader
from paddock.storage.postgres.thread_search import Whose

PATIENCE_SECONDS = 1.0
"""How long a search waits for what is missing."""
PART = 32
"""Conversations per commit."""
_NO_END = 1 << 62
_log = logging.getLogger(__name__)


class ThreadIndexing:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._filling: dict[Whose, asyncio.Task[bool]] = {}

    async def stop(self) -> None:
        for task in list(self._filling.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def find(self, query: ThreadQuery) -> FoundThreads:
        complete = await self._catch_up((query.workspace_id, query.user_id))
        found = await self._reader.ask(partial(thread_search.find, query=query))
        return FoundThreads(found, complete=complete)

    async def _catch_up(self, whose: Whose) -> bool:
        """Whether all that was committed before is in the index now."""
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
            await self._add_all(whose)
        except StorageUnavailableError as error:  # what is there is found, and the next search tries again
            about = {"action": "storage.index_failed", "error": str(error)}
            _log.warning("conversations could not be indexed for search", extra=about)
            return False
        return True

    async def _add_all(self, whose: Whose) -> None:
        before = _NO_END
        look = partial(thread_search.behind_of, whose=whose, limit=PART)
        while behind := await self._reader.ask(partial(look, before=before)):
            before = behind[-1].session_no
            while behind:
                add = partial(thread_search.add_part, whose=whose, behind=behind)
                behind = await self._reader.perform(add, durably=False)
