"""Deliver a run's results in order while some are still being stored. Each store operation bounds its own wait."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from paddock.host.session.arrivals import Arrival

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class ResultSequencer:
    """Passes arrivals on at once, but none past one that is still being worked on.

    At most a run's credit of them wait: credit is given back only for what the session has taken.
    """

    __slots__ = ("_post", "_spawn", "_waiting", "post")

    def __init__(self, post: Callable[[Arrival], None], spawn: Spawn) -> None:
        self.post = post
        """Hand something in. Straight on while nothing waits: every word of every run passes here."""
        self._post = post
        self._spawn = spawn
        self._waiting: deque[Arrival | Coroutine[Any, Any, Arrival]] | None = None

    def post_when_done(self, work: Coroutine[Any, Any, Arrival]) -> None:
        """`work` must not raise: whatever becomes of it is an arrival too."""
        if self._waiting is not None:
            self._waiting.append(work)
            return
        self._waiting = deque([work])
        self.post = self._waiting.append
        self._spawn(self._work_off(self._waiting))

    async def _work_off(self, waiting: deque[Arrival | Coroutine[Any, Any, Arrival]]) -> None:
        try:
            while waiting:
                first = waiting.popleft()
                self._post(await first if asyncio.iscoroutine(first) else first)
            self._waiting, self.post = None, self._post
        finally:
            for left in waiting:  # only when the house is closing
                if asyncio.iscoroutine(left):
                    left.close()
