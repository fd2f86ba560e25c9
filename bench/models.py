"""`python -m bench.models`: CPU per streamed chunk, the host's model gateway beside the bare HTTP client and parser.

The same server, the same stream, one process, turn by turn. The floor reads bytes with the HTTP client, cuts them into
events and decodes the one field it needs. The gateway does all the host does for a runner: grant, budget, retries, the
provider's client, tool calls, usage, and each piece as the wire says it. Measured is the CPU of this process.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import aiohttp
import msgspec

from bench.verdicts import Line, shown
from paddock.host.calls.metering import Budgets, Metering
from paddock.host.calls.models import ModelCalls
from paddock.models.loading import load_models
from paddock.rules.access.permissions import Grant, RunScope
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.people import Budget
from paddock.storage.sqlite import SqliteStore
from paddock_sdk.protocol.host_calls import ModelsInvokeParams

TARGET = 3.0
WORD = "word "
APIS = {"openai": "/v1/chat/completions", "openai_responses": "/v1/responses", "anthropic": "/v1/messages"}


# --- the server, a process of its own ---------------------------------------------------------------------------------


def frames(path: str, count: int) -> Iterator[bytes]:
    """One stream of `count` words in the provider's words."""
    word = WORD
    if path == APIS["openai"]:
        for _ in range(count):
            delta = [{"index": 0, "delta": {"content": word}, "logprobs": None, "finish_reason": None}]
            about = {"id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "object": "chat.completion.chunk", "created": 1}
            yield _frame(about | {"model": "m", "service_tier": "default", "choices": delta, "usage": None})
        yield _frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield b"data: [DONE]\n\n"
    elif path == APIS["anthropic"]:
        yield _frame({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}})
        yield _frame({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
        for _ in range(count):
            delta = {"type": "text_delta", "text": word}
            yield b"event: content_block_delta\n" + _frame({"type": "content_block_delta", "index": 0, "delta": delta})
        yield _frame({"type": "message_stop"})
    else:
        about = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
        for number in range(count):
            yield b"event: response.output_text.delta\n" + _frame(about | {"delta": word, "sequence_number": number})
        yield _frame({"type": "response.completed", "response": {"status": "completed", "output": []}})


def _frame(data: object) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


async def _serve(chunks: int, pause: float) -> None:
    ready = {path: list(frames(path, chunks)) for path in APIS.values()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            await reader.readexactly(length)
            path = head.split(b" ")[1].decode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            for frame in ready[path]:
                writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
                await writer.drain()
                await asyncio.sleep(pause)
            writer.write(b"0\r\n\r\n")

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(quiet, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until whoever started us is gone
    os._exit(0)


@contextmanager
def _server(chunks: int, pause: float) -> Generator[str]:
    command = [sys.executable, "-m", "bench.models", "--serve", "--chunks", str(chunks), "--pause", str(pause)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


# --- what is compared -------------------------------------------------------------------------------------------------


class _Delta(msgspec.Struct):
    content: str | None = None
    text: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Event(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    delta: _Delta | str | None = None


_decode = msgspec.json.Decoder(_Event).decode


async def _bare(client: aiohttp.ClientSession, url: str) -> int:
    """The floor: the HTTP client, lines, one decoder."""
    count, rest = 0, b""
    async with client.post(url, json={"model": "m", "stream": True}) as response:
        async for received in response.content.iter_any():
            lines = (rest + received).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line.startswith(b"data: ") and line != b"data: [DONE]":
                    event = _decode(line[6:])
                    count += bool(event.choices[0].delta.content if event.choices else event.delta)
    return count


class Gateway:
    """The host's own way to a model, as a runner's host call takes it."""

    def __init__(self, api: str, url: str, store: SqliteStore) -> None:
        base = url if api == "anthropic" else f"{url}/v1"
        spec = ModelSpec.model_validate({"provider": api, "model": "m", "base_url": base})
        self.catalog = catalog = load_models({"m": spec}, clock=time.time, environ={})
        budget = Budget(tokens_per_day=10**12, calls_at_once=100)
        budgets = Budgets(store, user=budget, workspace=budget, clock=time.time)
        metering = Metering(catalog, note=lambda _row: None, clock=time.time, budgets=budgets)
        self.calls = ModelCalls(catalog, metering)
        scope = RunScope("r", "w", "u", "a", "c")
        nothing = frozenset[str]()
        granted = {"m": frozenset({"stream"})}
        deadline = time.time() + 3600
        self.grant = Grant("plugin:a/b/c", nothing, nothing, nothing, models=granted, scope=scope, deadline_at=deadline)
        asked = {"run_id": "r", "model_id": "m", "messages": [{"role": "user", "content": "hi"}]}
        self.asked = ModelsInvokeParams.model_validate(asked)

    async def read(self) -> int:
        count = 0
        async for said in self.calls.stream(self.grant, self.asked):
            count += said["chunk"]["content"].count(WORD)  # words that came together are one piece
        return count


async def _cpu(read: Callable[[], Awaitable[int]], chunks: int) -> float:
    """Microseconds of CPU per chunk."""
    began = time.process_time()
    count = await read()
    spent = time.process_time() - began
    if count != chunks:
        raise SystemExit(f"{count} chunks were read where {chunks} were sent")
    return spent / chunks * 1e6


@asynccontextmanager
async def _store() -> AsyncGenerator[SqliteStore]:
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore(Path(directory))
        await store.open()
        yield store
        await store.close()


async def _measure(chunks: int, rounds: int, pause: float) -> list[Line]:
    lines: list[Line] = []
    async with _store() as store:
        with _server(chunks, pause) as url:
            for api, path in APIS.items():
                gateway = Gateway(api, url, store)
                async with aiohttp.ClientSession() as client:
                    await gateway.read()  # connections and imports
                    await _bare(client, url + path)
                    floor_of = partial(_bare, client, url + path)
                    pairs = [(await _cpu(floor_of, chunks), await _cpu(gateway.read, chunks)) for _ in range(rounds)]
                await gateway.catalog.close()
                floor, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
                ratio = statistics.median(one / other for other, one in pairs)
                name = f"CPU per streamed chunk, {api}: gateway {ours:.1f} us over bare {floor:.1f} us"
                lines.append(Line(name, f"{ratio:.2f}", f"<= {TARGET:g}", ratio <= TARGET))
    return lines


def run(*, quick: bool, directory: Path | None = None) -> None:  # noqa: ARG001 - every part is asked alike
    print(shown(asyncio.run(_measure(2000, 3 if quick else 7, 0.0))))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between chunks; above 0 each arrives alone")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(_serve(options.chunks, options.pause))
    else:
        print(shown(asyncio.run(_measure(options.chunks, options.rounds, options.pause))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
