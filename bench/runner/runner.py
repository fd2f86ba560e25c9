"""The bench runner: `short` is answered with one token, `stream N` with N, each a delta, then the whole message.

`drip N MS` says them with a pause before each.
"""

import asyncio

from paddock_sdk import AgentRunner, AgentRunnerCapabilities, HostApi, Results, RunContext, delta, message, serve

TOKEN = "lorem17 "


class BenchRunner(AgentRunner):
    """Says tokens as fast as it is let, or slowly if asked."""

    capabilities = AgentRunnerCapabilities(streaming=True)

    async def run(self, ctx: RunContext, api: HostApi) -> Results:  # noqa: ARG002 - it asks the host for nothing
        word, *numbers = ctx.text.split()
        tokens = int(numbers[0]) if numbers else 1
        for _ in range(tokens):
            if word == "drip":
                await asyncio.sleep(int(numbers[1]) / 1000)
            yield delta(TOKEN)
        yield message(TOKEN * tokens)


if __name__ == "__main__":
    serve(BenchRunner())
