"""`python -m bench.local_agent`: the local agent against a scripted model: what the host adds to a turn, and whether
many streams keep up.

The model server streams a fixed answer on loopback, at once or at a fixed pace. Overhead of a turn = time from POST to
the end of its stream, minus the time the same answer takes when the model server is asked directly, in the same run.
The client is the leanest at hand: what it takes itself is part of every figure, and with fifty streams of the machine.
On a machine that others use too, both wait for a processor; the CPU that host and runner take is printed beside them.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.servers import Launch, Server, cpu_of, free_port, serving
from bench.verdicts import Line, shown

OVERHEAD_MS = 5.0
WORDS = 100
STREAMS = 50
PACE = 50
"""Tokens a second of each stream."""
BEHIND_MS = 200.0
"""A stream that takes no longer than that over its time has kept up."""
SETTLE_SECONDS = 3.0
"""After its start a host goes on importing in the background what it may need later."""
WARM_TURNS = 100
"""A processor that has rested while the host settled is slow to begin with."""
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


@dataclass(frozen=True, slots=True)
class Turns:
    """Seconds of whole turns and of asking the model directly, and CPU of the host and of what it started, each."""

    turns: Sequence[float]
    direct: Sequence[float]
    host_cpu: float
    runner_cpu: float


@dataclass(frozen=True, slots=True)
class Streams:
    first: Sequence[float]
    """When each stream's first word came: fifty runs begin in the same moment."""
    behind: Sequence[float]
    """By how many seconds each fell behind from its first word to its last."""
    cpu: float
    """Seconds of CPU of host and runner for each word."""


class Bench:
    def __init__(self, host: Server, model: Server, client: aiohttp.ClientSession) -> None:
        self._host = host
        self._model = model
        self._client = client

    async def turn(self, agent: str, number: int) -> tuple[float, list[float]]:
        """Seconds of a whole turn, and when each piece arrived."""
        body = {"threadId": f"{agent}-{number}", "runId": f"r-{number}-{time.monotonic_ns()}"}
        message = {"id": str(time.monotonic_ns()), "role": "user", "content": "go"}
        begun, seen = time.perf_counter(), list[float]()
        address = f"http://127.0.0.1:{self._host.port}/api/v1/agent/ag-ui/{agent}"
        async with self._client.post(address, json={**body, "messages": [message]}) as answer:
            async for line in answer.content:
                if b"TEXT_MESSAGE_CONTENT" in line:
                    seen.append(time.perf_counter() - begun)
        if not seen:
            raise SystemExit(f"the agent {agent} said nothing; see {self._host.log}")
        return time.perf_counter() - begun, seen

    async def direct(self) -> float:
        begun = time.perf_counter()
        body = {"model": "m-1-0", "messages": [], "stream": True}
        address = f"http://127.0.0.1:{self._model.port}/v1/chat/completions"
        async with self._client.post(address, json=body) as answer:
            await answer.read()
        return time.perf_counter() - begun

    def cpu(self) -> tuple[float, float]:
        """Of the host, and of everything below it."""
        return cpu_of(self._host.process), sum(map(cpu_of, self._host.process.children(recursive=True)))

    async def alone(self, count: int) -> Turns:
        """One turn after the other, each in a conversation of its own."""
        for number in range(10):
            await self.turn("quick", 1_000_000 + number)
            await self.direct()
        await asyncio.sleep(SETTLE_SECONDS)
        direct = [await self.direct() for _ in range(count)]
        for number in range(WARM_TURNS):
            await self.turn("quick", 2_000_000 + number)
        before = self.cpu()
        turns = [(await self.turn("quick", number))[0] for number in range(count)]
        after = self.cpu()
        return Turns(turns, direct, (after[0] - before[0]) / count, (after[1] - before[1]) / count)

    async def together(self) -> Streams:
        before = sum(self.cpu())
        streams = await asyncio.gather(*(self.turn("paced", number) for number in range(STREAMS)))
        spent = sum(self.cpu()) - before
        times = [seen for _, seen in streams]
        behind = [seen[-1] - seen[0] - (WORDS - 1) / PACE for seen in times]
        return Streams([seen[0] for seen in times], behind, spent / STREAMS / WORDS)


def lines_of(alone: Turns, together: Streams) -> list[Line]:
    turn, direct = statistics.median(alone.turns) * 1000, statistics.median(alone.direct) * 1000
    behind, last_to_begin = max(together.behind) * 1000, max(together.first) * 1000
    return [
        Line("a turn of the local agent, whole, p50", f"{turn:.2f} ms"),
        Line("the same answer from the model server directly, p50", f"{direct:.2f} ms"),
        Line(
            "overhead of a turn at concurrency 1",
            f"{turn - direct:.2f} ms",
            f"< {OVERHEAD_MS:g} ms",
            turn - direct < OVERHEAD_MS,
        ),
        Line("CPU of the host for a turn", f"{alone.host_cpu * 1000:.2f} ms"),
        Line("CPU of the runner for a turn", f"{alone.runner_cpu * 1000:.2f} ms"),
        Line(
            f"{STREAMS} streams at {PACE} tokens/s: the slowest, from its first word to its last, fell behind by",
            f"{behind:.0f} ms",
            f"<= {BEHIND_MS:g} ms",
            behind <= BEHIND_MS,
        ),
        Line("  the first word of the last to begin, all asked for in the same moment", f"{last_to_begin:.0f} ms"),
        Line("CPU of host and runner for a streamed word", f"{together.cpu * 1e6:.0f} us"),
    ]


async def measure(host: Server, model: Server, turns: int) -> list[Line]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(120)) as client:
        bench = Bench(host, model, client)
        return lines_of(await bench.alone(turns), await bench.together())


def host_launch(work: Path, model_port: int) -> Launch:
    data, port = work / "data", free_port()
    data.mkdir()
    (data / "paddock.toml").write_text(SETTINGS.format(port=model_port, words=WORDS, pace=PACE))
    agents = work / "agents.yaml"
    agents.write_text(AGENTS)
    paddock = str(Path(sys.executable).with_name("paddock"))
    flags = ["--data", str(data), "--agents", str(agents), "--port", str(port), "--log-level", "error"]
    return Launch("paddock", (paddock, "serve", *flags), port, "/readyz")


def run(*, quick: bool, directory: Path | None = None) -> None:
    with tempfile.TemporaryDirectory(prefix="paddock-bench-", dir=directory) as place, ExitStack() as running:
        port = free_port()
        script = (sys.executable, "-m", "bench.scripted_model", "--port", str(port))
        model = running.enter_context(serving(Launch("model", script, port), Path(place) / "model.log"))
        host = running.enter_context(serving(host_launch(Path(place), port), Path(place) / "host.log"))
        print(shown(asyncio.run(measure(host, model, 100 if quick else 300))))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.local_agent", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(quick=parser.parse_args().quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
