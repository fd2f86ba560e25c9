"""The local agent against a scripted model: what the host adds to a turn, and whether many streams keep up.

    python -m bench.local_agent

The model server streams a fixed answer on loopback at a fixed pace. Overhead of a turn = time from POST to the end of
its stream, minus the time the same answer takes when the model server is asked directly, in the same run.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

WORDS = 100
STREAMS = 50
PACE = 50
"""Tokens a second of each stream."""
TURNS = 40

MODEL = """
import asyncio, json, sys
import uvicorn
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

async def chat(request):
    asked = await request.json()
    words, pace = (int(part) for part in asked["model"].split("-")[1:])
    async def said():
        loop, begun = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        for number in range(words):
            if pace:
                await asyncio.sleep(max(0.0, begun + number / pace - loop.time()))
            delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": f"word{number} "}}]}
            yield f"data: {json.dumps(delta)}\\n\\n"
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield f"data: {json.dumps(last)}\\n\\ndata: [DONE]\\n\\n"
    return StreamingResponse(said(), media_type="text/event-stream")

app = Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", access_log=False)
"""
SETTINGS = """
discover_models = false
host_call_rate = 0
[models.quick]
provider = "openai"
model = "m-1-0"
base_url = "http://127.0.0.1:{port}/v1"
[models.paced]
provider = "openai"
model = "m-{words}-{pace}"
base_url = "http://127.0.0.1:{port}/v1"
"""
AGENTS = """
agents:
  quick: {runner: "plugin:paddock/local-agent/default", config: {model: quick}}
  paced: {runner: "plugin:paddock/local-agent/default", config: {model: paced}}
"""


def _free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def _turn(client: httpx.AsyncClient, url: str, agent: str, number: int) -> tuple[float, list[float]]:
    """Seconds of a whole turn, and when each piece arrived."""
    body = {"threadId": f"{agent}-{number}", "runId": f"r-{number}-{time.monotonic_ns()}"}
    message = {"id": str(time.monotonic_ns()), "role": "user", "content": "go"}
    begun, seen = time.perf_counter(), list[float]()
    address = f"{url}/api/v1/agent/ag-ui/{agent}"
    async with client.stream("POST", address, json={**body, "messages": [message]}) as answer:
        async for line in answer.aiter_lines():
            if "TEXT_MESSAGE_CONTENT" in line:
                seen.append(time.perf_counter() - begun)
    return time.perf_counter() - begun, seen


async def _direct(client: httpx.AsyncClient, port: int) -> float:
    begun = time.perf_counter()
    body = {"model": "m-1-0", "messages": [], "stream": True}
    async with client.stream("POST", f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as answer:
        async for _ in answer.aiter_lines():
            pass
    return time.perf_counter() - begun


async def measure(url: str, port: int) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=200)) as client:
        for number in range(5):
            await _turn(client, url, "quick", 1000 + number)
        turns, bare = [], []
        for number in range(TURNS):
            bare.append(await _direct(client, port))
            turns.append((await _turn(client, url, "quick", number))[0])
        begun = time.perf_counter()
        streams = await asyncio.gather(*(_turn(client, url, "paced", number) for number in range(STREAMS)))
        whole = time.perf_counter() - begun
    ideal = (WORDS - 1) / PACE
    return {
        "turn_ms_p50": round(statistics.median(turns) * 1000, 2),
        "model_ms_p50": round(statistics.median(bare) * 1000, 2),
        "overhead_ms_p50": round((statistics.median(turns) - statistics.median(bare)) * 1000, 2),
        "streams": STREAMS,
        "tokens_per_second_each": PACE,
        "ideal_seconds": ideal,
        "slowest_stream_seconds": round(max(one[0] for one in streams), 2),
        "all_seconds": round(whole, 2),
        "last_piece_late_ms_p99": round(sorted(one[1][-1] - ideal for one in streams)[int(STREAMS * 0.99)] * 1000),
    }


def main() -> None:
    port, host_port = _free_port(), _free_port()
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        data.mkdir()
        (data / "paddock.toml").write_text(SETTINGS.format(port=port, words=WORDS, pace=PACE))
        agents = Path(place) / "agents.yaml"
        agents.write_text(AGENTS)
        paddock = str(Path(sys.executable).with_name("paddock"))
        model = subprocess.Popen([sys.executable, "-c", MODEL, str(port)])
        flags = ["--data", str(data), "--agents", str(agents), "--port", str(host_port), "--log-level", "error"]
        host = subprocess.Popen([paddock, "serve", *flags], stdout=subprocess.DEVNULL)
        try:
            _wait(f"http://127.0.0.1:{host_port}/readyz")
            print(json.dumps(asyncio.run(measure(f"http://127.0.0.1:{host_port}", port)), indent=1))
        finally:
            for one in (host, model):
                one.terminate()
                one.wait(20)


def _wait(url: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit("the host did not get ready")


if __name__ == "__main__":
    main()
