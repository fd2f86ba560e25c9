"""The smallest useful runner: says back what it hears, word by word. Read this one first."""

import re

from paddock_runners.toolkit.words import both
from paddock_sdk import AgentRunner, AgentRunnerCapabilities, HostApi, Results, RunContext, delta, message


class EchoRunner(AgentRunner):
    label = both("Echo", "回声")
    description = both("Says back what it hears, word by word.", "把听到的话逐词说回来。")
    capabilities = AgentRunnerCapabilities(streaming=True, interrupt=True)

    async def run(self, ctx: RunContext, api: HostApi) -> Results:  # noqa: ARG002 - it asks nothing of the host
        for word in re.findall(r"\S+\s*|\s+", ctx.text):
            yield delta(word)
        yield message(ctx.text)
