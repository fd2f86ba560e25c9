"""A bus that ends at this process: parts that were opened at one meeting hear each other, no other host does."""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from paddock.ports.bus import Heard, nobody

MAX_BYTES = 1024 * 1024


class Meeting:
    """The listeners of all buses in one process."""

    def __init__(self) -> None:
        self.listeners: defaultdict[str, list[_Listener]] = defaultdict(list)


class _Listener:
    def __init__(self, bus: "InProcessBus", subject: str, heard: Heard) -> None:
        self.bus = bus
        self.heard = heard
        self._subject = subject

    async def stop(self) -> None:
        listeners = self.bus.meeting.listeners
        if self in listeners[self._subject]:
            listeners[self._subject].remove(self)
        if not listeners[self._subject]:
            del listeners[self._subject]


class InProcessBus:
    """The `Bus` port without a server. Alone at its meeting it reaches nobody, and says so."""

    max_bytes = MAX_BYTES
    problem = ""

    def __init__(self, meeting: Meeting | None = None) -> None:
        self.meeting = meeting or Meeting()
        self._shared = meeting is not None
        self._open = False
        self._on_lost: Callable[[], None] = nobody

    async def open(self, on_lost: Callable[[], None] = nobody) -> None:
        self._on_lost = on_lost
        self._open = True

    async def close(self) -> None:
        self._open = False
        self._on_lost()

    def healthy(self) -> bool:
        return self._open and self._shared

    def publish(self, subject: str, word: bytes) -> None:
        if not self._open:
            return
        for listener in list(self.meeting.listeners.get(subject, ())):
            if listener.bus is not self:
                asyncio.get_running_loop().call_soon(listener.heard, word)

    async def subscribe(self, subject: str, heard: Heard) -> _Listener:
        listener = _Listener(self, subject, heard)
        self.meeting.listeners[subject].append(listener)
        return listener
