"""The runs of this host that have not ended, and the admission of new ones.

A run that finds the host full waits a moment, workspaces in turn, or is refused and told when to try again. Built
before the gate, the runners and the runs, which all need it.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from paddock.host.runs.live_run import LiveRun
from paddock.rules.access.limits import admits, next_in_line
from paddock.rules.errors import ErrorCode, HostError

NO_LIMIT = 1_000_000


WAIT_SECONDS = 2.0
MAX_WAITING = 256
"""Most that wait of one workspace; more are refused at once."""
RETRY_SECONDS = 2


class Admission:
    """Counts the runs of each workspace: `entered` adds one, `left` ends it."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.busy: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._promised: dict[str, int] = {}
        """Admitted and not entered yet, by workspace: many runs may end before the first of these enters."""
        self._first: str | None = None
        self._several = False
        """More than one workspace has asked since the host started."""
        self.closed = False
        """Nobody enters any more, because the host is being stopped."""
        self.turned_away = 0
        """How many were refused since the host started."""

    @property
    def full(self) -> bool:
        return self.closed or sum(self.busy.values()) + sum(self._promised.values()) >= self.capacity

    def close(self) -> None:
        """Let nobody enter any more, because the host is being stopped."""
        self.closed = True

    def waiting(self, workspace: str | None = None) -> int:
        """How many wait for room now, of one workspace or of all."""
        return sum(len(line) for name, line in self._waiting.items() if workspace in (None, name))

    def has_room(self, workspace: str) -> bool:
        """Tell whether one more run may begin at once: nobody waits, and there is room."""
        if workspace != self._first:
            self._several, self._first = self._first is not None, self._first or workspace
        if self.closed or self._waiting:
            return False
        return admits(self._taken(), workspace, self.capacity, several=self._several)

    async def enter(self, workspace: str) -> None:
        """Wait for room. Raises HostError(UNAVAILABLE), which says when to try again."""
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
            if _is_given(room):  # the room is for the next in line
                asyncio.get_running_loop().call_soon(self.admit_waiting)
            if isinstance(error, TimeoutError):
                raise self._full(self._why()) from None
            raise
        finally:
            self._forget(workspace, room)

    def entered(self, workspace: str) -> None:
        self.busy[workspace] = self.busy.get(workspace, 0) + 1

    def left(self, workspace: str) -> None:
        count = self.busy.pop(workspace, 0) - 1
        if count > 0:
            self.busy[workspace] = count
        if self._waiting:
            self.admit_waiting()

    def admit_waiting(self) -> None:
        """Admit as many as there is room for, workspaces in turn."""
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
        """The runs of each workspace, including those about to enter."""
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


class LiveRuns:
    def __init__(self, admission: Admission | None = None, held: Callable[[], bool] | None = None) -> None:
        """`held` tells whether this host still owns its runs, where another host may have taken them over."""
        self.admission = admission or Admission(NO_LIMIT)
        self.held = held or (lambda: True)
        self.by_id: dict[str, LiveRun] = {}

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(list(self.by_id.values()))

    def __len__(self) -> int:
        return len(self.by_id)

    def find(self, run_id: str) -> LiveRun | None:
        """Find a run that this host may act for."""
        return self.by_id.get(run_id) if self.held() else None

    def goes_on(self, run_id: str) -> bool:
        return self.find(run_id) is not None

    def ids(self) -> list[str]:
        return list(self.by_id)

    def add(self, run: LiveRun) -> None:
        if run.run_id not in self.by_id:
            self.admission.entered(run.grant.scope.workspace_id)
        self.by_id[run.run_id] = run

    def remove(self, run_id: str) -> LiveRun | None:
        run = self.by_id.pop(run_id, None)
        if run is not None:
            self.admission.left(run.grant.scope.workspace_id)
        return run
