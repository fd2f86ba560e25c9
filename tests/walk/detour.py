"""A way to servers that can be cut while they go on, or that chooses for each who comes where it leads."""

import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

WHO_COMES = 65536
"""So much of what a client says first is known when the way is chosen."""


Choose = Callable[[bytes], tuple[bytes, int]]
"""Of what a client says first: what is passed on of it, and the port it goes to."""


class Detour:
    """Carries bytes between whoever connects and a port of this machine, on threads of its own."""

    def __init__(self, there: "int | Choose") -> None:
        self._there = there
        self._open: set[socket.socket] = set()
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
            first, port = self._way(here)
            with socket.create_connection(("127.0.0.1", port)) as there:
                there.sendall(first)
                self._stand_between(here, there)

    def _way(self, here: socket.socket) -> tuple[bytes, int]:
        """What to say there first, and where that is."""
        return (b"", self._there) if isinstance(self._there, int) else self._there(here.recv(WHO_COMES))

    def _stand_between(self, here: socket.socket, there: socket.socket) -> None:
        self._open |= {here, there}
        try:
            _pass_on((here, there), (there, here))
        finally:
            self._open -= {here, there}


def _pass_on(*ways: tuple[socket.socket, socket.socket]) -> None:
    with selectors.DefaultSelector() as ready:
        for one, other in ways:
            ready.register(one, selectors.EVENT_READ, (one, other))
        while True:
            for key, _ in ready.select():
                came_from, goes_to = key.data
                if not (words := came_from.recv(65536)):
                    return
                goes_to.sendall(words)
