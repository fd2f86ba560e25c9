"""The built-in model: no key, no network, the same answer every time.

Its answers are made by the package `paddock_demo`, which is loaded when the model is first asked.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import get_args

from paddock.ports.models import CalledTool, Embedded, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking, Usage
from paddock.rules.agents.resources import FREE
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.host_calls import RerankEntry
from paddock_sdk.protocol.manifest import ModelOperation

NAME = "demo"
MAX_PAUSE = 1.0


class DemoModel:
    """Answers by fixed rules. `extra_args.pause` is the seconds it rests before each piece, if not its own pace."""

    info = ModelInfo(
        model_id=NAME,
        model_type="llm",
        provider="paddock",
        operations=frozenset(get_args(ModelOperation)),
        context_window=32_768,
        description="Built in: no key, deterministic, streams, calls tools, remembers what is in the conversation.",
        prices=FREE,
    )

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        await asyncio.sleep(_pause(call))
        return _answer(call)

    async def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        from paddock_demo.answers import pace
        from paddock_demo.words import pieces

        whole, pause = _answer(call), _pause(call, otherwise=pace(call.messages))
        for piece in pieces(whole.content):
            await asyncio.sleep(pause)
            yield ModelPiece(content=piece)
        yield ModelPiece(tool_calls=whole.tool_calls, final=True, finish_reason=whole.finish_reason, usage=whole.usage)

    async def rerank(self, _call: ModelCall, query: str, documents: Sequence[str], top_k: int | None) -> Ranking:
        from paddock_demo.words import likeness

        scored = [(likeness(query, document), index) for index, document in enumerate(documents)]
        best = sorted(scored, key=lambda one: (-one[0], one[1]))[:top_k]
        entries = [RerankEntry(index=index, relevance_score=round(score, 6)) for score, index in best]
        return Ranking(entries, _usage_of(query, *documents))

    async def embed(self, _call: ModelCall, texts: Sequence[str], /) -> Embedded:
        from paddock_demo.words import vector

        return Embedded([vector(text) for text in texts], _usage_of(*texts))

    async def warm_up(self) -> None:
        """It is always ready."""

    async def retire(self) -> None:
        return None

    async def close(self) -> None:
        """It holds nothing."""


def _answer(call: ModelCall) -> ModelAnswer:
    from paddock_demo.answers import answer

    said = answer(call.messages, call.tools)
    return ModelAnswer(
        content=said.content,
        tool_calls=tuple(CalledTool(one.call_id, one.name, one.arguments) for one in said.tool_calls),
        finish_reason="tool_calls" if said.tool_calls else "stop",
        usage=Usage(said.prompt_tokens, said.completion_tokens, said.prompt_tokens + said.completion_tokens),
    )


def _usage_of(*texts: str) -> Usage:
    from paddock_demo.words import count

    counted = count(texts)
    return Usage(counted, 0, counted)


def _pause(call: ModelCall, *, otherwise: float = 0.0) -> float:
    pause = call.extra_args.get("pause", otherwise)
    if isinstance(pause, bool) or not isinstance(pause, int | float) or not 0 <= pause <= MAX_PAUSE:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"demo: extra_args.pause must be a number from 0 to {MAX_PAUSE:g}")
    return float(pause)
