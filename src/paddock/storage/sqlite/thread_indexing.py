"""When conversations get into the index they are found by: when their user looks for something, and never before.

An append only remembers which conversation it was for. The first search of a user since the start looks for
everything of theirs that is missing, later ones for what was remembered. What is missing is put in, the newest first; a
search waits a moment for that and then answers from what is there, saying that it is not complete, while the rest
follows behind it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import anyio

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows import ItemErased, SessionDetailsRow, TranscriptRow
from paddock.rules.thread_search import FoundThreads, ThreadQuery
from paddock.storage.sqlite import thread_search
from paddock.storage.sqlite.indexing import Perform
from paddock.storage.sqlite.pool import ReaderPool
from paddock.storage.sqlite.thread_search import Behind, Whose

PATIENCE_SECONDS = 1.0
"""How long a search waits for what is missing."""
PART = 256
"""Messages per commit: bounds how long others wait for theirs."""
MAX_FRESH = 1024
"""Conversations remembered. When there are more, all is forgotten, and the next search of a user looks by itself."""
MAX_USERS = 4096
_NO_END = 1 << 62
_TOLD = (TranscriptRow, SessionDetailsRow, ItemErased)
_log = logging.getLogger(__name__)

Settle = Callable[[Sequence[str]], Awaitable[None]]
"""Wait until what was handed in for these conversations is committed."""


class ThreadIndexing:
    def __init__(self, pool: ReaderPool, perform: Perform, settle: Settle) -> None:
        self._pool = pool
        self._perform = perform
        self._settle = settle
        self._fresh: dict[str, None] = {}
        self._known: dict[Whose, None] = {}
        """Users of whom nothing can be missing but what is remembered."""
        self._forgotten = 0
        self._filling: dict[Whose, asyncio.Task[bool]] = {}
        self._taking = asyncio.Lock()

    async def stop(self) -> None:
        for task in list(self._filling.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def hear(self, rows: Iterable[object]) -> None:
        """Hear of rows that are written. Cheap, because every message passes here."""
        for row in rows:
            if isinstance(row, _TOLD):
                self._fresh[row.session_id] = None
        if len(self._fresh) > MAX_FRESH:
            self._fresh.clear()
            self._known.clear()
            self._forgotten += 1

    async def find(self, query: ThreadQuery) -> FoundThreads:
        complete = await self._catch_up((query.workspace_id, query.user_id))
        found = await self._pool.ask(partial(thread_search.find, query=query))
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
            await (self._add_fresh(whose) if whose in self._known else self._add_all(whose))
        except StorageUnavailableError as error:  # what is there is found, and the next search tries again
            self._known.pop(whose, None)
            about = {"action": "storage.index_failed", "error": str(error)}
            _log.warning("conversations could not be indexed for search", extra=about)
            return False
        return True

    async def _add_all(self, whose: Whose) -> None:
        await self._settle(list(self._fresh))
        before, forgotten = _NO_END, self._forgotten
        look = partial(thread_search.behind_of, whose=whose, limit=PART)
        while behind := await self._pool.ask(partial(look, before=before)):
            await self._add(whose, behind)
            before = behind[-1].session_no
        if forgotten == self._forgotten:
            self._known[whose] = None
            if len(self._known) > MAX_USERS:
                del self._known[next(iter(self._known))]

    async def _add_fresh(self, whose: Whose) -> None:
        async with self._taking:
            fresh = list(self._fresh)
            await self._settle(fresh)
            self._fresh.clear()  # what is written from now on is remembered anew
            theirs = dict.fromkeys(fresh)
            try:
                mine, behind = await self._pool.ask(partial(thread_search.among, whose=whose, session_ids=fresh))
                theirs = {session_id: None for session_id in fresh if session_id not in mine}
            finally:
                self._fresh |= theirs
        await self._add(whose, behind)

    async def _add(self, whose: Whose, behind: Sequence[Behind]) -> None:
        while behind:
            part = await self._pool.ask(partial(thread_search.part_of, whose=whose, behind=behind, size=PART))
            await self._perform(part.write)
            behind = part.rest
