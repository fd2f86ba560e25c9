"""When conversations get into the index they are found by: when their user looks for something, and never before.

Other hosts write too, so every search looks for what is missing of its user's conversations and has it put in, the
newest first. It waits a moment for that and then answers from what is there, saying that it is not complete, while the
rest follows behind it.
"""

from collections.abc import Sequence
from functools import partial

from paddock.rules.search.thread_search import FoundThread, ThreadQuery
from paddock.storage.postgres import thread_search
from paddock.storage.postgres.reader import Reader
from paddock.storage.thread_filling import ThreadFilling, Whose

PART = 32
"""Conversations per commit."""
_NO_END = 1 << 62


class ThreadIndexing(ThreadFilling):
    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader

    async def look_up(self, query: ThreadQuery) -> Sequence[FoundThread]:
        return await self._reader.ask(partial(thread_search.find, query=query))

    async def add_missing(self, whose: Whose) -> None:
        before = _NO_END
        look = partial(thread_search.behind_of, whose=whose, limit=PART)
        while behind := await self._reader.ask(partial(look, before=before)):
            before = behind[-1].session_no
            while behind:
                add = partial(thread_search.add_part, whose=whose, behind=behind)
                async with self.turn_of(whose):
                    behind = await self._reader.perform(add, durably=False)
