"""A title for a conversation that has just begun: the first words of it, or what the model calls it."""

from paddock_runners.local_agent.config import Config
from paddock_runners.toolkit.replies import Asked, Reply, added, speak
from paddock_sdk import HostApi, HostCallError, Result, RunContext, title

WORDS_CHARS = 60
ASK = (
    "Give this conversation a title of at most six words, in its own language. Answer with the title and nothing else."
)


async def suggested(
    ctx: RunContext, api: HostApi, config: Config, asked: Asked, answer: str, usage: dict[str, int]
) -> Result | None:
    """Suggest a title after the first answer; None later on, and where there is nothing to go by."""
    if config.title == "off" or ctx.context.has_history_before or not ctx.text.strip():
        return None
    words = await _of_model(ctx, api, asked, answer, usage) if config.title == "model" else ""
    return title(words or shortened(ctx.text))


def shortened(text: str) -> str:
    """The beginning of a message, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= WORDS_CHARS:
        return line
    whole, _, _ = line[:WORDS_CHARS].rpartition(" ")
    return (whole if len(whole) > WORDS_CHARS // 2 else line[: WORDS_CHARS - 1]) + "…"


async def _of_model(ctx: RunContext, api: HostApi, asked: Asked, answer: str, usage: dict[str, int]) -> str:
    """Ask the model for a title; empty when it cannot be asked. The answer was given, so that is no failure."""
    reply = Reply()
    question = [
        {"role": "system", "content": ASK},
        {"role": "user", "content": f"{ctx.text[:2000]}\n\n{answer[:2000]}"},
    ]
    try:
        async for _ in speak(api, Asked(asked.model_id, (), asked.extra_args, asked.streams), question, reply):
            pass
    except HostCallError:
        return ""
    added(usage, reply.usage)
    lines = reply.text.strip().splitlines()
    return lines[0].strip(' "“”')[:80] if lines else ""
