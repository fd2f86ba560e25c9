"""The loops of the sessions in memory: those at work, and a few that rest. Built before the tails, which ask it."""

from collections import OrderedDict
from collections.abc import Iterator

from paddock.host.session.loop import SessionLoop

IDLE_SESSIONS = 64
"""Few on purpose. What is kept for each leaves the processor's cache, and every run pays for that when its memory is
used again: with 512 a short run cost 7 % more. Loading a session again takes a tenth of a millisecond."""


class SessionLoops:
    def __init__(self) -> None:
        self._loops: dict[str, SessionLoop] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._loops)

    def __iter__(self) -> Iterator[SessionLoop]:
        return iter(list(self._loops.values()))

    def get(self, session_id: str) -> SessionLoop | None:
        return self._loops.get(session_id)

    def use(self, session_id: str) -> SessionLoop | None:
        """The loop, which is forgotten last from now on."""
        loop = self._loops.get(session_id)
        if loop is not None and session_id in self._idle:
            self._idle.move_to_end(session_id)
        return loop

    def works_on(self, session_id: str) -> bool:
        """Tell whether something goes on in this session here, so that it goes on nowhere else."""
        loop = self._loops.get(session_id)
        return loop is not None and not loop.idle

    def add(self, loop: SessionLoop) -> None:
        self._loops[loop.session_id] = loop

    def forget(self, session_id: str) -> None:
        self._loops.pop(session_id, None)
        self._idle.pop(session_id, None)

    def rests(self, session_id: str) -> None:
        """Nothing goes on in it now; the oldest of those that rest may be forgotten."""
        self._idle[session_id] = None
        self._idle.move_to_end(session_id)
        while len(self._idle) > IDLE_SESSIONS:
            oldest, _ = self._idle.popitem(last=False)
            known = self._loops.get(oldest)
            if known is not None and known.idle:
                del self._loops[oldest]
