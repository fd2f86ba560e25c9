"""A model server that says fixed words at a fixed pace. Run as `python -m bench.scripted_model --port N`.

The name of the model is the script: `m-100-50` says 100 words, 50 a second; a pace of 0 does not wait.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


async def chat(request: Request) -> StreamingResponse:
    words, pace = (int(part) for part in (await request.json())["model"].split("-")[1:])
    return StreamingResponse(said(words, pace), media_type="text/event-stream")


async def said(words: int, pace: int) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for number in range(words):
        if pace:
            await asyncio.sleep(max(0.0, begun + number / pace - loop.time()))
        yield _frame({"role": "assistant", "content": f"word{number} "}, None)
    yield _frame({}, "stop") + "data: [DONE]\n\n"


def _frame(delta: dict[str, str], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", log_level="critical", access_log=False)


if __name__ == "__main__":
    main()
