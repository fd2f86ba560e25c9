"""Models asked on behalf of a run: `models.invoke`, `models.stream`, `models.rerank`. Every call says what it used.

Which provider answers is a plug's business; here the grant is honoured, time is bounded, and usage is on record.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from paddock.host.calls.work import CallHandler
from paddock.host.people.metering import Metering
from paddock.ports.models import CalledTool, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Models, Usage
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.model_usage import about_tokens_in, about_tokens_of
from paddock_sdk.protocol.host_calls import (
    ModelsInvokeParams,
    ModelsInvokeResult,
    ModelsRerankParams,
    ModelsRerankResult,
)
from paddock_sdk.protocol.messages import FunctionCall, LLMTokenUsage, Message, ToolCall

MAX_DOCUMENTS = 1000
T = TypeVar("T")
REFUSED = "this run may not do that"


class ModelCalls:
    def __init__(self, models: Models, metering: Metering, *, clock: Callable[[], float]) -> None:
        self._models = models
        self._metering = metering
        self._clock = clock

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {
            "models.invoke": CallHandler(read=self.invoke),
            "models.stream": CallHandler(stream=self.stream),
            "models.rerank": CallHandler(read=self.rerank),
        }

    async def invoke(self, grant: Grant, asked: ModelsInvokeParams) -> ModelsInvokeResult:
        info = self._granted(grant, asked.model_id, "invoke")
        async with self._metering.around(grant.scope.payer, info, "invoke") as meter:
            meter.asked = lambda: about_tokens_of(asked.messages, asked.tools or ())
            answer = await self._in_time(grant, self._models.invoke(_call(grant, asked)))
            meter.hear(answer)
            if answer.answered_by:
                self._metering.answered(meter, grant.scope.payer, answer.answered_by)
        return ModelsInvokeResult(message=_message(answer), usage=_wire_usage(answer.usage))

    def stream(self, grant: Grant, asked: ModelsInvokeParams) -> "StreamedAnswer":
        info = self._granted(grant, asked.model_id, "stream")
        return StreamedAnswer(self._pieces(grant, info, asked))

    async def rerank(self, grant: Grant, asked: ModelsRerankParams) -> ModelsRerankResult:
        info = self._granted(grant, asked.model_id, "rerank")
        if len(asked.documents) > MAX_DOCUMENTS:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"at most {MAX_DOCUMENTS} documents can be ranked at once")
        if asked.top_k is not None and asked.top_k < 1:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "top_k must be at least 1")
        call = _question(grant, asked.model_id)
        async with self._metering.around(grant.scope.payer, info, "rerank") as meter:
            meter.asked = lambda: about_tokens_in(asked.query, *asked.documents)
            ranked = await self._in_time(grant, self._models.rerank(call, asked.query, asked.documents, asked.top_k))
            meter.usage = ranked.usage
        return ModelsRerankResult(results=list(ranked.entries))

    # --- within ------------------------------------------------------------------------------------------------------

    async def _pieces(self, grant: Grant, info: ModelInfo, asked: ModelsInvokeParams) -> AsyncGenerator[ModelPiece]:
        async with self._metering.around(grant.scope.payer, info, "stream") as meter:
            meter.asked = lambda: about_tokens_of(asked.messages, asked.tools or ())
            pieces = self._models.stream(_call(grant, asked))
            try:
                async for piece in pieces:
                    meter.hear(piece)
                    if piece.answered_by:
                        self._metering.answered(meter, grant.scope.payer, piece.answered_by)
                    yield piece
            finally:
                await _close(pieces)

    def _granted(self, grant: Grant, model_id: str, operation: str) -> ModelInfo:
        if operation not in grant.models.get(model_id, ()):
            raise HostError(ErrorCode.UNAUTHORIZED, REFUSED)
        info = self._models.find(grant.scope.workspace_id, model_id)
        if info is None:
            raise HostError(ErrorCode.NOT_FOUND, f"the model {model_id!r} is no longer configured on this host")
        if operation not in info.operations:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"the model {model_id!r} cannot {operation}")
        return info

    async def _in_time(self, grant: Grant, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(max(0.0, grant.deadline_at - self._clock())):
                return await answer
        except TimeoutError as error:
            raise HostError(
                ErrorCode.DEADLINE_EXCEEDED, "the model had not answered when the run's time was over"
            ) from error


class StreamedAnswer:
    """A model's answer on its way to the runner: each piece as the wire says it, then the usage."""

    def __init__(self, pieces: AsyncGenerator[ModelPiece]) -> None:
        self._pieces = pieces
        self.result: Mapping[str, Any] = {}

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        async for piece in self._pieces:
            if piece.usage is not None:
                self.result = {"usage": _usage(piece.usage)}
            yield _on_the_wire(piece)

    async def aclose(self) -> None:
        """Close the connection to the provider, however much of it was read."""
        await self._pieces.aclose()


def _on_the_wire(piece: ModelPiece) -> dict[str, Any]:
    """The shape is `ModelsStreamChunk`; a test holds this to it. Plain, because it is said thousands of times."""
    chunk: dict[str, Any] = {"role": "assistant", "content": piece.content}
    extras: dict[str, Any] = {}
    if piece.reasoning:
        extras["reasoning_content"] = piece.reasoning
    if piece.tool_calls:
        chunk["tool_calls"] = [_wire_call(call) for call in piece.tool_calls]
    if piece.final:
        chunk["is_final"] = True
        extras |= piece.extras
        if piece.finish_reason:
            extras["finish_reason"] = piece.finish_reason
    if extras:
        chunk["provider_specific_fields"] = extras
    said: dict[str, Any] = {"chunk": chunk}
    if piece.usage is not None:
        said["usage"] = _usage(piece.usage)
    return said


def _wire_call(call: CalledTool) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: Usage) -> dict[str, int]:
    counted = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    return {name: value for name, value in counted.items() if value is not None}


def _wire_usage(usage: Usage | None) -> LLMTokenUsage | None:
    return None if usage is None else LLMTokenUsage(**_usage(usage))


def _message(answer: ModelAnswer) -> Message:
    extras = {**answer.extras, **({"finish_reason": answer.finish_reason} if answer.finish_reason else {})}
    return Message(
        role="assistant",
        content=answer.content,
        tool_calls=_tool_calls(answer.tool_calls),
        provider_specific_fields=extras or None,
    )


def _tool_calls(calls: Sequence[CalledTool]) -> list[ToolCall] | None:
    return [
        ToolCall(id=call.call_id, function=FunctionCall(name=call.name, arguments=call.arguments)) for call in calls
    ] or None


def _call(grant: Grant, asked: ModelsInvokeParams) -> ModelCall:
    return _question(grant, asked.model_id, asked.messages, asked.tools or (), asked.extra_args or {})


def _question(
    grant: Grant,
    model_id: str,
    messages: Sequence[Message] = (),
    tools: Sequence[Any] = (),
    extra_args: Mapping[str, Any] | None = None,
) -> ModelCall:
    at = grant.scope
    return ModelCall(
        model_id=model_id,
        messages=messages,
        tools=tools,
        extra_args=extra_args or {},
        workspace_id=at.workspace_id,
        user_id=at.user_id,
        run_id=at.run_id,
        deadline_at=grant.deadline_at,
    )


async def _close(pieces: AsyncIterator[ModelPiece]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()
