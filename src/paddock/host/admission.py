"""The way into a host that may be full: wait a moment, workspaces in turn, or be told when to try again."""

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress

from paddock.rules.admission import admits, next_in_line
from paddock.rules.errors import ErrorCode, HostError

WAIT_SECONDS = 2.0
MAX_WAITING = 256
"""So many wait of one workspace; more are told to try again at once."""
RETRY_SECONDS = 2


class Admission:
    """Counts the runs of each workspace. Whoever ends one says so with `left`."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.busy: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._first: str | None = None
        self._several = False
        """More than one workspace has asked since the host started."""
        self.closed = False
        """The host is being stopped: nobody enters any more."""
        self.turned_away = 0
        """So many were told to try again, ever."""

    @property
    def full(self) -> bool:
        return self.closed or sum(self.busy.values()) >= self.capacity

    @property
    def waiting(self) -> int:
        """So many wait for room now."""
        return sum(map(len, self._waiting.values()))

    def has_room(self, workspace: str) -> bool:
        """Whether one more run may begin at once: nobody waits, and there is room."""
        if workspace != self._first:
            self._several, self._first = self._first is not None, self._first or workspace
        if self.closed or self._waiting:
            return False
        return admits(self.busy, workspace, self.capacity, several=self._several)

    async def enter(self, workspace: str) -> None:
        """Wait for room. Raises HostError(UNAVAILABLE) with when to try again."""
        if self.closed:
            raise self._full("this host is being stopped")
        if self.has_room(workspace):
            return
        line = self._waiting.setdefault(workspace, deque())
        if len(line) >= MAX_WAITING:
            raise self._full(self._why())
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(room)
        self.look()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await room
        except TimeoutError:
            raise self._full(self._why()) from None
        finally:
            self._forget(workspace, room)

    def entering(self, workspace: str) -> "_Entering":
        """Counted as a run, in a `with`, until it is one."""
        return _Entering(self, workspace)

    def entered(self, workspace: str) -> None:
        self.busy[workspace] = self.busy.get(workspace, 0) + 1

    def left(self, workspace: str) -> None:
        count = self.busy.pop(workspace, 0) - 1
        if count > 0:
            self.busy[workspace] = count
        if self._waiting:
            self.look()

    def look(self) -> None:
        """Let in whoever there is room for, workspaces in turn."""
        promised = self.busy.copy()
        while self._waiting:
            able = [name for name in self._waiting if admits(promised, name, self.capacity, several=self._several)]
            if not able:
                return
            workspace = next_in_line(able, promised)
            line = self._waiting[workspace]
            room = line.popleft()
            if not line:
                del self._waiting[workspace]
            if not room.done():
                room.set_result(None)
                promised[workspace] = promised.get(workspace, 0) + 1

    def _why(self) -> str:
        return "this host is full" if self.full else "your workspace has its share of this host"

    def _forget(self, workspace: str, room: asyncio.Future[None]) -> None:
        line = self._waiting.get(workspace)
        if line is not None:
            with suppress(ValueError):
                line.remove(room)
            if not line:
                del self._waiting[workspace]

    def _full(self, why: str) -> HostError:
        self.turned_away += 1
        text = f"{why}; try again shortly, or at another host"
        return HostError(ErrorCode.UNAVAILABLE, text, retryable=True, details={"retry_after": RETRY_SECONDS})


class _Entering:
    """A class and not a generator: every run passes here."""

    __slots__ = ("_admission", "_workspace")

    def __init__(self, admission: Admission, workspace: str) -> None:
        self._admission = admission
        self._workspace = workspace

    def __enter__(self) -> None:
        self._admission.entered(self._workspace)

    def __exit__(self, *_: object) -> None:
        self._admission.left(self._workspace)
