"""Tools that do something in the world: each tells the counting stub, and ends when the stub lets it."""

import asyncio
import http.client
import os

ADDRESS = os.environ.get("EFFECTS_STUB", "")


def _tell(name: str) -> str:
    connection = http.client.HTTPConnection(ADDRESS, timeout=120)
    connection.request("POST", f"/effect/{name}", b"{}")
    return connection.getresponse().read().decode()


async def book() -> str:
    """Book, on the host's loop."""
    return await asyncio.to_thread(_tell, "book")


def book_on_a_thread() -> str:
    """Book, on a thread."""
    return _tell("book_on_a_thread")


async def book_and_not_stop() -> str:
    """Book, whoever says that it is enough."""
    telling = asyncio.ensure_future(asyncio.to_thread(_tell, "book_and_not_stop"))
    while not telling.done():
        try:
            await asyncio.shield(telling)
        except asyncio.CancelledError:
            continue
    return telling.result()
