"""Places that workspaces take in turn, for whatever all of them share: a few at work at once, a few waiting.

Who waits is let in workspace by workspace: one with much to do delays another by one turn, not by all it has.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from paddock.rules.errors import ErrorCode, HostError


class Places:
    def __init__(
        self, at_once: int, *, each: int | None = None, alone: int | None = None, waiting: int, waiting_in_all: int
    ) -> None:
        """`at_once` work at the same time, `each` of one workspace; so many wait of one workspace, and in all.

        `alone`: so many may work of a workspace while no other has ever come.
        """
        self.at_once = at_once
        self.each = min(at_once, each or at_once)
        self.alone = min(at_once, alone or self.each)
        self.waiting = waiting
        self.waiting_in_all = waiting_in_all
        self.in_line = 0
        self.at_work = 0
        self._taken: dict[str, int] = {}
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._first: str | None = None
        self._several = False
        self._emptied: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def taken(self, workspace: str) -> AsyncGenerator[None]:
        """Have a place for the time of a `with`. Raises RATE_LIMITED when too many wait."""
        await self.enter(workspace)
        try:
            yield
        finally:
            self.leave(workspace)

    async def enter(self, workspace: str) -> None:
        """Take a place, for those that cannot use a `with`; `leave` gives it back."""
        if workspace != self._first:
            self._several, self._first = self._first is not None, self._first or workspace
        if workspace not in self._lines and self._has_room(workspace):
            self._take(workspace)
            return
        line = self._lines.get(workspace, ())
        if len(line) >= self.waiting or self.in_line >= self.waiting_in_all:
            text = "too many of these wait at once; try again shortly"
            raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(workspace, deque()).append(turn)
        self.in_line += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(workspace)  # the place was given in the moment it was given up
            else:
                self._forget(workspace, turn)
            raise

    def leave(self, workspace: str) -> None:
        left = self._taken.pop(workspace) - 1
        if left:
            self._taken[workspace] = left
        self.at_work -= 1
        self._let_in()
        self._tell_if_empty()

    async def emptied(self) -> None:
        if self.at_work or self.in_line:
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._emptied.append(told)
            await told

    def _has_room(self, workspace: str) -> bool:
        most = self.each if self._several else self.alone
        return self.at_work < self.at_once and self._taken.get(workspace, 0) < most

    def _take(self, workspace: str) -> None:
        self._taken[workspace] = self._taken.get(workspace, 0) + 1
        self.at_work += 1

    def _let_in(self) -> None:
        for workspace in list(self._lines):
            if self.at_work >= self.at_once:
                return
            if self._has_room(workspace):
                self._let_in_one_of(workspace)

    def _let_in_one_of(self, workspace: str) -> None:
        line = self._lines.pop(workspace)
        while line:
            turn = line.popleft()
            self.in_line -= 1
            if not turn.done():  # else who waited gave up in this moment
                self._take(workspace)
                turn.set_result(None)
                break
        if line:
            self._lines[workspace] = line  # at the end: the others come first

    def _forget(self, workspace: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(workspace)
        if line is None or turn not in line:
            return
        line.remove(turn)
        self.in_line -= 1
        if not line:
            del self._lines[workspace]
        self._tell_if_empty()

    def _tell_if_empty(self) -> None:
        if not (self.at_work or self.in_line):
            for told in self._emptied:
                if not told.done():
                    told.set_result(None)
            self._emptied.clear()
