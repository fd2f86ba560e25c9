"""HTTP on loopback: one TLS context for every client of the tests, which none of them uses and each would make anew.

Making one reads all certificates of the world and takes longer than a request. `get` and `post` wait for an answer as
long as a busy machine may need; the library's own five seconds are for people. `free_port` is for programs that cannot
choose a port themselves and say which.
"""

import secrets
import socket
import ssl
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler

import httpx

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts nobody."""

get = partial(httpx.get, timeout=60, verify=NO_TLS)
post = partial(httpx.post, timeout=60, verify=NO_TLS)


class QuietHandler(BaseHTTPRequestHandler):
    """Answers requests as its subclass says, and writes no line about them."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


def free_port() -> int:
    """A port nobody has now and nobody is given by chance: below those that a system hands out by itself."""
    for port in secrets.SystemRandom().sample(range(12_000, 32_000), 1000):
        with suppress(OSError), socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            return port
    raise AssertionError("none of a thousand ports is free")
