"""The bench runner: `short` is answered with one token, `stream N` with N, each a delta, then the whole message."""

from paddock_sdk import AgentRunner, AgentRunnerCapabilities, HostApi, Results, RunContext, delta, message, serve

TOKEN = "lorem17 "


class BenchRunner(AgentRunner):
    """Says tokens as fast as it is let."""

    capabilities = AgentRunnerCapabilities(streaming=True)

    async def run(self, ctx: RunContext, api: HostApi) -> Results:  # noqa: ARG002 - it asks the host for nothing
        word, _, count = ctx.text.partition(" ")
        tokens = int(count) if word == "stream" else 1
        for _ in range(tokens):
            yield delta(TOKEN)
        yield message(TOKEN * tokens)


if __name__ == "__main__":
    serve(BenchRunner())
