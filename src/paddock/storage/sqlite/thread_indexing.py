"""When conversations get into the index they are found by: when their user looks for something, and never before.

An append only remembers which conversation it was for. The first search of a user since the start looks for
everything of theirs that is missing, later ones for what was remembered. What is missing is put in, the newest first; a
search waits a moment for that and then answers from what is there, saying that it is not complete, while the rest
follows behind it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import cast, get_args

from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.forgetting import ItemErased
from paddock.rules.rows.rows import SessionDetailsRow, TranscriptRow
from paddock.rules.rows.taking_over import SessionSettled
from paddock.rules.search.thread_search import FoundThread, ThreadQuery
from paddock.storage.sqlite import thread_search
from paddock.storage.sqlite.indexing import Perform
from paddock.storage.sqlite.pool import ReaderPool
from paddock.storage.sqlite.thread_search import Behind
from paddock.storage.thread_filling import ThreadFilling, Whose

PART = 256
"""Messages per commit: bounds how long others wait for theirs."""
MAX_FRESH = 1024
"""Conversations remembered. When there are more, all is forgotten, and the next search of a user looks by itself."""
MAX_USERS = 4096
_NO_END = 1 << 62
Told = TranscriptRow | SessionDetailsRow | ItemErased | SessionSettled
_TOLD = frozenset(get_args(Told))

Settle = Callable[[Sequence[str]], Awaitable[None]]
"""Wait until what was handed in for these conversations is committed."""


class ThreadIndexing(ThreadFilling):
    def __init__(self, pool: ReaderPool, perform: Perform, settle: Settle) -> None:
        super().__init__()
        self._pool = pool
        self._perform = perform
        self._settle = settle
        self._fresh: dict[str, None] = {}
        self._known: dict[Whose, None] = {}
        """Users of whom nothing can be missing but what is remembered."""
        self._forgotten = 0
        self._taking = asyncio.Lock()

    def hear(self, rows: Iterable[object]) -> None:
        """Hear of rows that are written. Cheap, because every message passes here."""
        for row in rows:
            if type(row) in _TOLD:
                self._fresh[cast("Told", row).session_id] = None
        if len(self._fresh) > MAX_FRESH:
            self._fresh.clear()
            self._known.clear()
            self._forgotten += 1

    async def look_up(self, query: ThreadQuery) -> Sequence[FoundThread]:
        return await self._pool.ask(partial(thread_search.find, query=query))

    async def add_missing(self, whose: Whose) -> None:
        try:
            await (self._add_fresh(whose) if whose in self._known else self._add_all(whose))
        except (StorageUnavailableError, HostError):
            # Something remembered may be lost: the next search looks by itself.
            self._known.pop(whose, None)
            raise

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
            async with self.turn_of(whose):
                part = await self._pool.ask(partial(thread_search.part_of, whose=whose, behind=behind, size=PART))
                await self._perform(part.write)
            behind = part.rest
