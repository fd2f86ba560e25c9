"""The way from a sandbox without network to `/mcp/run`: a socket in the data directory that leads nowhere else.

The rest of the API cannot be reached through it. Who may open it is said by its directory, which is the host's user's
alone; a sandbox gets the socket itself and needs no way to it.
"""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import structlog
import uvicorn

from paddock.host.runs.surroundings import RunEndpoints
from paddock.http_api.edge.bounds import Crowd
from paddock.http_api.edge.connection import served
from paddock.http_api.mcp.door import McpDoor

FOLDER, NAME = "run", "mcp.sock"
START_SECONDS = 5.0
STOP_SECONDS = 3
CONNECTIONS = 500
"""Of all sandboxes together; beyond it the one that was idle for longest goes."""
UNFINISHED_BYTES = 64 * 1024 * 1024

log = structlog.get_logger(__name__)


class Server(uvicorn.Server):
    """uvicorn without its own signal handling: the host decides when to stop, and stops before its doors do."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_started()


@asynccontextmanager
async def run_socket(door: McpDoor, endpoints: RunEndpoints, data: Path) -> AsyncGenerator[None]:
    """Listen while the block lasts. A machine that has no such sockets goes without, and says so."""
    folder = data / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # through its number the path is short enough for a socket
    started = asyncio.Event()
    server = Server(_config(door, f"/proc/self/fd/{opened}/{NAME}"), started.set)
    serving = asyncio.create_task(server.serve())
    try:
        if await _began(serving, started):
            (folder / NAME).chmod(0o666)  # for the user of a sandbox; the way here is closed to others
            endpoints.socket = str(folder / NAME)
        yield
    finally:
        endpoints.socket = None
        server.should_exit = True
        with suppress(Exception):
            await serving
        (folder / NAME).unlink(missing_ok=True)
        os.close(opened)


async def _began(serving: "asyncio.Task[None]", started: asyncio.Event) -> bool:
    waiting = asyncio.ensure_future(started.wait())
    await asyncio.wait({serving, waiting}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if started.is_set():
        return True
    log.warning("runs at isolation L1 cannot reach their MCP endpoint: no socket", action="mcp.socket")
    return False


def _config(door: McpDoor, path: str) -> uvicorn.Config:
    """Connections are watched like those of every other client: programs in a sandbox are strangers too."""
    crowd = Crowd(CONNECTIONS, UNFINISHED_BYTES)
    return served(door, crowd, uds=path, ws="none", timeout_graceful_shutdown=STOP_SECONDS)
