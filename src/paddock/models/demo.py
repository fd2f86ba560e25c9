"""The built-in model: no key, no network, the same answer every time. What it says is decided in `demo_rules`."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from paddock.models.demo_counting import pace
from paddock.models.demo_rules import answer, used_by
from paddock.models.demo_words import likeness, pieces, vector
from paddock.ports.models import FREE, Embedded, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.host_calls import RerankEntry

NAME = "demo"
MAX_PAUSE = 1.0


class DemoModel:
    """Answers by fixed rules. `extra_args.pause` is the seconds it rests before each piece, if not its own pace."""

    info = ModelInfo(
        model_id=NAME,
        model_type="llm",
        provider="paddock",
        operations=frozenset({"invoke", "stream", "rerank"}),
        context_window=32_768,
        description="Built in: no key, deterministic, streams, calls tools, remembers what is in the conversation.",
        prices=FREE,
    )

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        await asyncio.sleep(_pause(call))
        return answer(call.messages, call.tools)

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        whole, pause = answer(call.messages, call.tools), _pause(call, otherwise=pace(call.messages))
        for piece in pieces(whole.content):
            await asyncio.sleep(pause)
            yield ModelPiece(content=piece)
        yield ModelPiece(tool_calls=whole.tool_calls, final=True, finish_reason=whole.finish_reason, usage=whole.usage)

    async def rerank(self, _call: ModelCall, query: str, documents: Sequence[str], top_k: int | None) -> Ranking:
        scored = [(likeness(query, document), index) for index, document in enumerate(documents)]
        best = sorted(scored, key=lambda one: (-one[0], one[1]))[:top_k]
        entries = [RerankEntry(index=index, relevance_score=round(score, 6)) for score, index in best]
        return Ranking(entries, used_by(query, *documents))

    async def embed(self, _call: ModelCall, texts: Sequence[str], /) -> Embedded:
        return Embedded([vector(text) for text in texts], used_by(*texts))

    async def warm_up(self) -> None:
        """It is always ready."""

    async def retire(self) -> None:
        return None

    async def close(self) -> None:
        """It holds nothing."""


def _pause(call: ModelCall, *, otherwise: float = 0.0) -> float:
    pause = call.extra_args.get("pause", otherwise)
    if isinstance(pause, bool) or not isinstance(pause, int | float) or not 0 <= pause <= MAX_PAUSE:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"demo: extra_args.pause must be a number from 0 to {MAX_PAUSE:g}")
    return float(pause)
