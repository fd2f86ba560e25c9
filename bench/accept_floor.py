"""The least that answers `POST /runs`: Starlette on uvicorn, the body validated, 202. `python -m bench.accept_floor`.

`/runs` reads the body with the library the host reads it with (msgspec) into typed shapes and checks the lengths;
`/rules` reads it with the host's own table of rules. Neither stores, starts or remembers anything.
"""

import argparse
import asyncio
import uuid
from typing import Any, Literal

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paddock.host.zones import is_time_zone
from paddock.rules.run.input import NativeInput, World, read_run_input


class Message(msgspec.Struct, rename="camel"):
    """One message."""

    id: str
    role: Literal["user", "assistant", "system", "developer", "tool", "activity", "reasoning"]
    content: str | list[dict[str, Any]] | None = None


class RunInput(msgspec.Struct, rename="camel"):
    """A request as the published shape has it."""

    thread_id: uuid.UUID
    run_id: str
    messages: list[Message]
    forwarded_props: dict[str, Any]
    tools: list[dict[str, Any]] = []
    context: list[dict[str, Any]] = []
    state: Any = None


_decode = msgspec.json.Decoder(RunInput).decode
_encode = msgspec.json.Encoder().encode
WORLD = World(is_time_zone)


async def runs(request: Request) -> Response:
    given = _decode(await request.body())
    good = len(given.run_id) <= 128 and len(given.messages) <= 200 and given.messages[0].role == "user"
    return _answer(str(given.thread_id), given.run_id, good)


async def rules(request: Request) -> Response:
    given = read_run_input(await request.body(), WORLD)
    good = isinstance(given, NativeInput)
    return _answer(given.thread_id, given.run_id, good) if isinstance(given, NativeInput) else _answer("", "", good)


def _answer(thread_id: str, run_id: str, good: bool) -> Response:
    accepted = {"taskId": str(uuid.uuid4()), "threadId": thread_id, "runId": run_id, "created": True}
    return Response(_encode(accepted), 202 if good else 422, media_type="application/json")


app = Starlette(routes=[Route("/runs", runs, methods=["POST"]), Route("/rules", rules, methods=["POST"])])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    config = uvicorn.Config(
        app, host="127.0.0.1", port=options.port, loop="uvloop", http="httptools", log_config=None, access_log=False
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(uvicorn.Server(config).serve())


if __name__ == "__main__":
    main()
