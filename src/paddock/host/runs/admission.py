"""The way into a host that may be full: wait a moment, workspaces in turn, or be told when to try again."""

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress

from paddock.rules.access.limits import admits, next_in_line
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
        self._promised: dict[str, int] = {}
        """Who was let in and has not entered yet: many runs may end before the first of them does."""
        self._first: str | None = None
        self._several = False
        """More than one workspace has asked since the host started."""
        self.closed = False
        """The host is being stopped: nobody enters any more."""
        self.turned_away = 0
        """So many were told to try again, ever."""

    @property
    def full(self) -> bool:
        return self.closed or sum(self.busy.values()) + sum(self._promised.values()) >= self.capacity

    def close(self) -> None:
        """From now on nobody enters: the host is being stopped."""
        self.closed = True

    def waiting(self, workspace: str | None = None) -> int:
        """So many wait for room now, of a workspace or of all."""
        return sum(len(line) for name, line in self._waiting.items() if workspace in (None, name))

    def has_room(self, workspace: str) -> bool:
        """Tell if one more run may begin at once: nobody waits, and there is room."""
        if workspace != self._first:
            self._several, self._first = self._first is not None, self._first or workspace
        if self.closed or self._waiting:
            return False
        return admits(self._taken(), workspace, self.capacity, several=self._several)

    async def enter(self, workspace: str) -> None:
        """Wait for room. Raises HostError(UNAVAILABLE) with when to try again."""
        if self.closed:
            raise self._full(self._why())
        if self.has_room(workspace):
            return
        line = self._waiting.setdefault(workspace, deque())
        if len(line) >= MAX_WAITING:
            raise self._full(self._why())
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(room)
        self.admit_waiting()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await room
        except BaseException as error:
            if _is_given(room):  # the place is for somebody else
                asyncio.get_running_loop().call_soon(self.admit_waiting)
            if isinstance(error, TimeoutError):
                raise self._full(self._why()) from None
            raise
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
            self.admit_waiting()

    def admit_waiting(self) -> None:
        """Let in whoever there is room for, workspaces in turn."""
        while self._waiting and not self.closed:
            taken = self._taken()
            able = [name for name in self._waiting if admits(taken, name, self.capacity, several=self._several)]
            if not able:
                return
            workspace = next_in_line(able, taken)
            line = self._waiting[workspace]
            room = line.popleft()
            if not line:
                del self._waiting[workspace]
            if not room.done():
                room.set_result(None)
                self._promised[workspace] = self._promised.get(workspace, 0) + 1

    def _why(self) -> str:
        if self.closed:
            return "this host is being stopped"
        return "this host is full" if self.full else "your workspace has its share of this host"

    def _taken(self) -> dict[str, int]:
        """The runs of each workspace, with those that are about to enter."""
        if not self._promised:
            return self.busy
        return {name: self.busy.get(name, 0) + self._promised.get(name, 0) for name in {*self.busy, *self._promised}}

    def _forget(self, workspace: str, room: asyncio.Future[None]) -> None:
        if _is_given(room):
            left = self._promised.pop(workspace) - 1
            if left:
                self._promised[workspace] = left
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


def _is_given(room: asyncio.Future[None]) -> bool:
    return room.done() and not room.cancelled()


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
