"""A connection that breaks: forwards to a host, and cuts the first connections after so many bytes of the answer.

Only the first: how an answer is cut into frames depends on how busy a machine is, and one that is longer than what
comes through would never arrive.
"""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class CuttingProxy:
    url: str
    cut_after: int
    """Bytes of an answer that still come through."""
    most: int
    """So many connections are cut."""
    cuts: int = 0
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(caller,), daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _forward(self, caller: socket.socket) -> None:
        parts = urlsplit(self.url)
        with caller, socket.create_connection((parts.hostname, parts.port)) as host, suppress(OSError):
            threading.Thread(target=_pump, args=(caller, host), daemon=True).start()
            sent = 0
            while data := host.recv(4096):
                if self.cuts < self.most and sent + len(data) > self.cut_after:
                    caller.sendall(data[: self.cut_after - sent])
                    self.cuts += 1
                    caller.shutdown(socket.SHUT_RDWR)
                    return
                caller.sendall(data)
                sent += len(data)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(4096):
            target.sendall(data)


@contextmanager
def cutting_proxy(url: str, cut_after: int, most: int) -> Generator[CuttingProxy]:
    proxy = CuttingProxy(url, cut_after, most)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
