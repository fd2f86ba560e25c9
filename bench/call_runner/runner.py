"""The runner of the host-call bench: `round N` times N echoes and N reads of state in turn, `write N P` has P producers
write state N times altogether, `hold` waits until it is stopped. Answers with JSON.
"""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from paddock_sdk import AgentRunner, AgentRunnerPermissions, HostApi, Results, RunContext, message, serve


async def timed(call: Callable[[], Awaitable[Any]]) -> float:
    start = time.perf_counter()
    await call()
    return time.perf_counter() - start


async def rounds(api: HostApi, count: int) -> dict[str, list[float]]:
    """`steering.pull` is answered by the bench's host at once: the echo."""
    await api.state.set("conversation", "k", {"some": "value"})
    times: dict[str, list[float]] = {"echo": [], "state.get": []}
    for _ in range(count):
        times["echo"].append(await timed(api.steering.pull))
        times["state.get"].append(await timed(lambda: api.state.get("conversation", "k")))
    return times


async def writes(api: HostApi, count: int, producers: int) -> dict[str, float]:
    async def produce(number: int) -> None:
        for index in range(count // producers):
            await api.state.set("conversation", f"p{number}", {"n": index})

    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(producers):
            tasks.start_soon(produce, number)
    return {"writes": count // producers * producers, "seconds": time.perf_counter() - start}


class CallRunner(AgentRunner):
    """Does what it is told, and tells the time."""

    permissions = AgentRunnerPermissions(storage=["plugin"])

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        word, *numbers = ctx.text.split()
        counts = [int(number) for number in numbers]
        if word == "hold":
            await anyio.sleep_forever()
        found = await (rounds(api, *counts) if word == "round" else writes(api, *counts))
        yield message(json.dumps(found))


if __name__ == "__main__":
    serve(CallRunner())
