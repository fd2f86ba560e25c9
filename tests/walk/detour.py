"""A way to servers that can be cut while they go on, or that chooses for each who comes where it leads."""

import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WHO_COMES = 65536
"""So much of what a client says first is known when the way is chosen."""


Choose = Callable[[bytes], tuple[bytes, int]]
"""Of what a client says first: what is passed on of it, and the port it goes to."""


class Detour:
    """Carries bytes between whoever connects and a port or a socket of this machine, on threads of its own."""

    def __init__(self, there: "int | Path | Choose") -> None:
        self._there = there
        self._open: set[socket.socket] = set()
        self._swallowed: set[socket.socket] = set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._let_in, daemon=True).start()

    def cut(self) -> int:
        """End what is connected now; says how many connections that were."""
        ended = list(self._open)
        for one in ended:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(ended) // 2

    def swallow(self) -> None:
        """Carry nothing more on what is connected now, and leave it open; who comes from now on is carried."""
        self._swallowed |= self._open

    def lead(self, there: "int | Path | Choose") -> None:
        """Lead who comes from now on elsewhere."""
        self._there = there

    def close(self) -> None:
        self._door.close()
        self.cut()

    def _let_in(self) -> None:
        with suppress(OSError):  # the door is closed
            while True:
                here, _ = self._door.accept()
                threading.Thread(target=self._carry, args=(here,), daemon=True).start()

    def _carry(self, here: socket.socket) -> None:
        with suppress(OSError), here:
            first, place = self._way(here)
            with _reached(place) as there:
                there.sendall(first)
                self._stand_between(here, there)

    def _way(self, here: socket.socket) -> tuple[bytes, int | Path]:
        """What to say there first, and where that is."""
        return (b"", self._there) if isinstance(self._there, int | Path) else self._there(here.recv(WHO_COMES))

    def _stand_between(self, here: socket.socket, there: socket.socket) -> None:
        self._open |= {here, there}
        try:
            self._pass_on(here, there)
        finally:
            self._open -= {here, there}

    def _pass_on(self, here: socket.socket, there: socket.socket) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(here, selectors.EVENT_READ, there)
            ready.register(there, selectors.EVENT_READ, here)
            while True:
                for key, _ in ready.select():
                    other: socket.socket = key.data
                    words = (here if other is there else there).recv(65536)
                    if not words or self.loses(here, words, answered=other is here):
                        return
                    if here not in self._swallowed:
                        other.sendall(words)

    def loses(self, here: socket.socket, words: bytes, *, answered: bool) -> bool:
        """Whether these words do not arrive and the connection ends with them."""
        return False


def _reached(place: int | Path) -> socket.socket:
    if isinstance(place, int):
        return socket.create_connection(("127.0.0.1", place))
    reached = socket.socket(socket.AF_UNIX)
    reached.connect(str(place))
    return reached
