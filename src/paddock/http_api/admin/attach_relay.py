"""A runner that reaches one address of a cluster only, carried on to the host it asks for: frames pass, none is kept.

Which hosts there are the register says; an address that somebody made up leads nowhere. The run, its grant and its
connection are the other host's: this one is a piece of wire, and when it goes the runner comes by another way.
"""

import asyncio
from typing import Any
from urllib.parse import quote

from starlette.websockets import WebSocket, WebSocketState

OPEN_SECONDS = 5.0
FRAME_BYTES = 4 * 1024 * 1024
GOING_AWAY = 1001
UNSPEAKABLE = frozenset({1005, 1006, 1015})
"""Close codes that say that none was said; nobody may say them on."""


async def carry_on(socket: WebSocket, door: str, token: str) -> None:
    """Until one of the two ends. A host that cannot be reached is a handshake that fails: the runner tries again."""
    import websockets  # only hosts that stand behind one address ever need it
    from websockets.asyncio.client import connect

    try:
        address = f"{door}?token={quote(token, safe='')}"
        there = await connect(
            address, open_timeout=OPEN_SECONDS, max_size=FRAME_BYTES, compression=None, proxy=None, close_timeout=1
        )
    except (OSError, TimeoutError, websockets.WebSocketException):
        await socket.close(GOING_AWAY)
        return
    await socket.accept()
    ways = [asyncio.create_task(_outward(socket, there)), asyncio.create_task(_homeward(there, socket))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await there.close()
    if socket.client_state is WebSocketState.CONNECTED and socket.application_state is WebSocketState.CONNECTED:
        code = there.close_code
        await socket.close(GOING_AWAY if code is None or code in UNSPEAKABLE else code, there.close_reason or "")


async def _outward(socket: WebSocket, there: Any) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        words = message.get("text")
        await there.send(words if words is not None else message.get("bytes") or b"")


async def _homeward(there: Any, socket: WebSocket) -> None:
    async for words in there:
        await (socket.send_text(words) if isinstance(words, str) else socket.send_bytes(words))
