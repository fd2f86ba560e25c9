"""The server itself: takes a request, says what the script says next, remembers what it was asked."""

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from model_server.dialects import Anthropic, Chat, Event, Gemini, Responses
from model_server.script import Says

Dialect = Chat | Responses | Anthropic | Gemini

DIALECTS: tuple[Dialect, ...] = (Chat(), Responses(), Anthropic(), Gemini())


class _CutError(Exception):
    """Breaks the connection in the middle of a response."""


@dataclass
class ModelServer:
    """What a test sees of the server. Answers come from `script`, then `otherwise`."""

    url: str = ""
    script: deque[Says] = field(default_factory=deque[Says])
    otherwise: Says = field(default_factory=lambda: Says("Hello from the scripted model."))
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list[tuple[str, dict[str, str], Any]])
    """Path, headers and body of every request so far."""
    rule: Callable[[Any], Says | None] | None = None
    """Asked first, with the request's body: for tests where several clients speak at once."""
    connections: set[int] = field(default_factory=set[int])
    """The clients' ports: one for each connection that was used."""
    left: threading.Event = field(default_factory=threading.Event)
    """A client went away before the answer was complete."""

    def says(self, *answers: Says) -> "ModelServer":
        self.script.extend(answers)
        return self

    def afresh(self) -> "ModelServer":
        """The same server, for the next test."""
        self.script.clear()
        self.asked.clear()
        self.connections.clear()
        self.left.clear()
        self.rule = None
        self.otherwise = Says("Hello from the scripted model.")
        return self

    @property
    def last(self) -> Any:
        return self.asked[-1][2]

    def app(self) -> Starlette:
        routes = [Route(one.path, self._door(one), methods=["POST"]) for one in DIALECTS]
        routes.append(Route("/v1/embeddings", self._embeddings, methods=["POST"]))
        routes.append(Route("/v1/rerank", self._rerank, methods=["POST"]))
        routes.append(Route("/api/tags", self._tags))
        return Starlette(routes=routes)

    def _door(self, dialect: Dialect) -> Any:
        async def answer(request: Request) -> Response:
            says, body = await self._next(request)
            if says.silent:
                await self._until_left(request)
            if says.status != 200:
                return JSONResponse(dialect.error(says), says.status, dict(says.headers))
            if says.rubbish is not None:
                kind = "text/event-stream" if body.get("stream") else "application/json"
                return Response(says.rubbish, media_type=kind)
            if not body.get("stream"):
                return JSONResponse(dialect.whole(says))
            return StreamingResponse(self._streamed(dialect, says), media_type="text/event-stream")

        return answer

    async def _next(self, request: Request) -> tuple[Says, Any]:
        body = await request.json()
        if request.client is not None:
            self.connections.add(request.client.port)
        if ":stream" in request.url.path:
            body["stream"] = True  # Gemini's way to say it
        self.asked.append((request.url.path, dict(request.headers), body))
        ruled = self.rule(body) if self.rule is not None else None
        return ruled or (self.script.popleft() if self.script else self.otherwise), body

    async def _until_left(self, request: Request) -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.01)
        self.left.set()

    async def _streamed(self, dialect: Dialect, says: Says) -> AsyncIterator[bytes]:
        complete = False
        try:
            for number, event in enumerate(dialect.events(says)):
                if says.cut_after is not None and number >= says.cut_after:
                    raise _CutError
                if says.fail_after is not None and number >= says.fail_after:
                    yield _frame(dialect.failure(says))
                    return
                await asyncio.sleep(says.pause)
                yield _frame(event)
            complete = True
        finally:
            if not complete:
                self.left.set()

    async def _embeddings(self, request: Request) -> Response:
        says, body = await self._next(request)
        if says.silent:
            await self._until_left(request)
        if says.status != 200:
            return JSONResponse(Chat().error(says), says.status, dict(says.headers))
        vectors = says.vectors or tuple((float(len(text)), 1.0) for text in body["input"])
        data = [{"object": "embedding", "index": at, "embedding": list(one)} for at, one in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse({"object": "list", "data": data[::-1], "model": "scripted", "usage": usage})

    async def _rerank(self, request: Request) -> Response:
        says, _ = await self._next(request)
        if says.status != 200:
            return JSONResponse(Chat().error(says), says.status, dict(says.headers))
        return JSONResponse({"results": [{"index": at, "relevance_score": score} for at, score in says.ranking]})

    async def _tags(self, _: Request) -> Response:
        return JSONResponse({"models": [{"name": "llama3:8b"}, {"name": "bad name"}]})


def _frame(event: Event) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else json.dumps(data)
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode()


@contextmanager
def model_server(port: int = 0) -> Generator[ModelServer]:
    """A server on loopback, on a thread of its own."""
    server = ModelServer()
    config = uvicorn.Config(server.app(), host="127.0.0.1", port=port, log_level="critical", lifespan="off", ws="none")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        while not running.started and thread.is_alive():
            thread.join(0.01)
        chosen = running.servers[0].sockets[0].getsockname()[1]
        server.url = f"http://127.0.0.1:{chosen}/v1"
        yield server
    finally:
        running.should_exit = True
        running.force_exit = True
        thread.join(30)
