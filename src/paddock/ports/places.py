"""Places that workspaces take in turn, for whatever all of them share: a few at work at once, a few waiting.

Who waits is let in workspace by workspace: one with much to do delays another by one turn, not by all it has.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from paddock.rules.errors import ErrorCode, HostError


class Places:
    def __init__(self, at_once: int, *, each: int | None = None, waiting: int, waiting_in_all: int) -> None:
        """`at_once` work at the same time, `each` of one workspace; so many wait of one workspace, and in all."""
        self.at_once = at_once
        self.each = min(at_once, each or at_once)
        self.waiting = waiting
        self.waiting_in_all = waiting_in_all
        self._taken: dict[str, int] = {}
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def in_line(self) -> int:
        return sum(map(len, self._lines.values()))

    @asynccontextmanager
    async def taken(self, workspace: str) -> AsyncGenerator[None]:
        """Have a place for the time of a `with`. Raises RATE_LIMITED when too many wait."""
        await self._enter(workspace)
        try:
            yield
        finally:
            self._leave(workspace)

    async def _enter(self, workspace: str) -> None:
        if workspace not in self._lines and self._has_room(workspace):
            self._take(workspace)
            return
        line = self._lines.get(workspace, ())
        if len(line) >= self.waiting or self.in_line >= self.waiting_in_all:
            text = "too many of these wait at once; try again shortly"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(workspace, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(workspace)  # the place was given in the moment it was given up
            else:
                self._forget(workspace, turn)
            raise

    def _has_room(self, workspace: str) -> bool:
        return sum(self._taken.values()) < self.at_once and self._taken.get(workspace, 0) < self.each

    def _take(self, workspace: str) -> None:
        self._taken[workspace] = self._taken.get(workspace, 0) + 1

    def _leave(self, workspace: str) -> None:
        left = self._taken.pop(workspace) - 1
        if left:
            self._taken[workspace] = left
        self._let_in()

    def _let_in(self) -> None:
        """Give free places away, to the workspaces in turn."""
        for workspace in list(self._lines):
            if not self._has_room(workspace):
                continue
            line = self._lines.pop(workspace)
            turn = line.popleft()
            if line:
                self._lines[workspace] = line  # at the end: the others come first
            if turn.done():  # who waited gave up in this moment
                self._let_in()
                return
            self._take(workspace)
            turn.set_result(None)

    def _forget(self, workspace: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(workspace)
        if line is None or turn not in line:
            return
        line.remove(turn)
        if not line:
            del self._lines[workspace]
