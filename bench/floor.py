"""The floor: the least that streams a durable run of an agent in another process. Run as `python -m bench.floor`.

Starlette on uvicorn (uvloop, httptools), `POST /run` that streams server-sent events, one child over pipes speaking
JSON lines through the standard json module, SQLite with every event committed before it is sent. Nothing else: no
sessions, no history, no permissions, no validation. `--bare` answers past Starlette, in ASGI's own words: twice as many
short runs, and no longer what people write.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bench.floor_log import FloorLog, Row

HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Run:
    """One run: numbers its events and hands the committed ones to the request that waits for them."""

    def __init__(self, number: int, thread: str) -> None:
        self.number = number
        self.ended = False
        self._thread = thread
        self._seq = 0
        self._frames: list[str] = []
        self._wake = asyncio.Event()

    def event(self, kind: str, **more: object) -> Row:
        """The next event of this run, as the row that is stored."""
        self._seq += 1
        body = json.dumps({"type": kind, "threadId": self._thread, "runId": self.number, **more})
        return self.number, self._seq, self._thread, body

    def committed(self, row: Row, *, last: bool = False) -> None:
        self._frames.append(f"id: {row[1]}\ndata: {row[3]}\n\n")
        self.ended = last
        self._wake.set()

    async def next_frames(self) -> bytes:
        """All frames that became durable since the last call, each its own event, joined into one write."""
        await self._wake.wait()
        self._wake.clear()
        frames, self._frames = self._frames, []
        return "".join(frames).encode()


class Agent(asyncio.SubprocessProtocol):
    """The child process: takes orders as lines, and puts every line it says into the log."""

    def __init__(self, log: FloorLog, runs: dict[int, Run]) -> None:
        self._log = log
        self._runs = runs
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by class
        self._stdin = cast(
            "asyncio.WriteTransport", cast("asyncio.SubprocessTransport", transport).get_pipe_transport(0)
        )

    def start(self, run: Run, text: str) -> None:
        self._stdin.write(json.dumps({"run": run.number, "text": text}).encode() + b"\n")

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - only stdout is a pipe
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            said = [self._read(line) for line in lines]
            self._log.append([row for _, row, _ in said], partial(_deliver, said))

    def _read(self, line: bytes) -> tuple[Run, Row, bool]:
        message = json.loads(line)
        if "end" in message:
            run = self._runs.pop(message["run"])
            return run, run.event("RUN_FINISHED"), True
        run = self._runs[message["run"]]
        return run, run.event("TEXT_MESSAGE_CONTENT", delta=message["delta"]), False


def _deliver(said: list[tuple[Run, Row, bool]]) -> None:
    for run, row, last in said:
        run.committed(row, last=last)


class Floor:
    """The one route, in Starlette's words and, as `BareFloor`, without them."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._runs: dict[int, Run] = {}
        self._numbers = count(1)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncGenerator[None]:  # noqa: ARG002 - Starlette passes itself
        loop = asyncio.get_running_loop()
        self._log = FloorLog(self._data, loop)
        command = (sys.executable, "-m", "bench.floor_agent")
        with closing(self._log):
            agent, self._agent = await loop.subprocess_exec(lambda: Agent(self._log, self._runs), *command, stderr=None)
            with closing(agent):
                yield

    async def answer(self, request: Request) -> StreamingResponse:
        return StreamingResponse(self._frames(await self._begin(request)), headers=HEADERS)

    async def _begin(self, request: Request) -> Run:
        order = await request.json()
        run = Run(next(self._numbers), order["threadId"])
        self._runs[run.number] = run
        started = run.event("RUN_STARTED")
        self._log.append([started], partial(run.committed, started))
        self._agent.start(run, order["text"])
        return run

    async def _frames(self, run: Run) -> AsyncGenerator[bytes]:
        while not run.ended:
            yield await run.next_frames()


class BareFloor(Floor):
    """The same in plain ASGI: Starlette's StreamingResponse adds a task group to every run."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        run = await self._begin(Request(scope, receive))
        await send({"type": "http.response.start", "status": 200, "headers": RAW_HEADERS})
        while not run.ended:
            frames = await run.next_frames()
            await send({"type": "http.response.body", "body": frames, "more_body": not run.ended})


def main() -> None:
    """Serve on loopback until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the database file, which must not exist yet")
    parser.add_argument("--bare", action="store_true", help="answer past Starlette")
    options = parser.parse_args()
    floor = BareFloor(options.data) if options.bare else Floor(options.data)
    answer = floor if isinstance(floor, BareFloor) else floor.answer
    app = Starlette(routes=[Route("/run", answer, methods=["POST"])], lifespan=floor.lifespan)
    uvicorn.run(
        app, port=options.port, loop="uvloop", http="httptools", ws="none", access_log=False, log_level="warning"
    )


if __name__ == "__main__":
    main()
