"""Models called on behalf of a run: `models.invoke`, `models.stream`, `models.rerank`. Every call reports its usage.

A plug chooses the provider. Here the grant is checked and usage is recorded; the gate ends a call with its run.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from paddock.host.calls.metering import Metering
from paddock.host.calls.work import NOT_GRANTED, CallHandler, close
from paddock.ports.models import CalledTool, Lost, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Models, Usage
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import about_tokens_in, about_tokens_of
from paddock_sdk.protocol.host_calls import (
    ModelsInvokeParams,
    ModelsInvokeResult,
    ModelsRerankParams,
    ModelsRerankResult,
)
from paddock_sdk.protocol.messages import FunctionCall, LLMTokenUsage, Message, ToolCall

MAX_DOCUMENTS = 1000


class ModelCalls:
    def __init__(self, models: Models, metering: Metering) -> None:
        self._models = models
        self._metering = metering

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
            meter.prompt_tokens = lambda: about_tokens_of(asked.messages, asked.tools or ())
            answer = await self._models.invoke(_call(grant, asked, meter.lost))
            meter.add(answer)
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
        async with self._metering.around(grant.scope.payer, info, "rerank") as meter:
            call = _question(grant, asked.model_id, lost=meter.lost)
            meter.prompt_tokens = lambda: about_tokens_in(asked.query, *asked.documents)
            ranked = await self._models.rerank(call, asked.query, asked.documents, asked.top_k)
            meter.usage = ranked.usage
        return ModelsRerankResult(results=list(ranked.entries))

    async def _pieces(self, grant: Grant, info: ModelInfo, asked: ModelsInvokeParams) -> AsyncGenerator[ModelPiece]:
        async with self._metering.around(grant.scope.payer, info, "stream") as meter:
            meter.prompt_tokens = lambda: about_tokens_of(asked.messages, asked.tools or ())
            pieces = self._models.stream(_call(grant, asked, meter.lost))
            try:
                async for piece in pieces:
                    meter.add(piece)
                    if piece.answered_by:
                        self._metering.answered(meter, grant.scope.payer, piece.answered_by)
                    yield piece
            finally:
                await close(pieces)

    def _granted(self, grant: Grant, model_id: str, operation: str) -> ModelInfo:
        if operation not in grant.models.get(model_id, ()):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_GRANTED)
        info = self._models.find(grant.scope.workspace_id, model_id)
        if info is None:
            raise HostError(ErrorCode.NOT_FOUND, f"the model {model_id!r} is no longer configured on this host")
        if operation not in info.operations:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"the model {model_id!r} cannot {operation}")
        return info


class StreamedAnswer:
    """A model's answer as a stream: each piece as the wire names it, then the usage."""

    def __init__(self, pieces: AsyncGenerator[ModelPiece]) -> None:
        self._pieces = pieces
        self.result: Mapping[str, Any] = {}

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        async for piece in self._pieces:
            if piece.usage is not None:
                self.result = {"usage": _usage(piece.usage)}
            yield _on_the_wire(piece)

    async def aclose(self) -> None:
        await self._pieces.aclose()


def _on_the_wire(piece: ModelPiece) -> dict[str, Any]:
    """Return a piece as `ModelsStreamChunk` has it; a test compares the two. A plain dict, because there are thousands
    of them."""
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
    data: dict[str, Any] = {"chunk": chunk}
    if piece.usage is not None:
        data["usage"] = _usage(piece.usage)
    return data


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


def _call(grant: Grant, asked: ModelsInvokeParams, lost: Lost) -> ModelCall:
    return _question(grant, asked.model_id, asked.messages, asked.tools or (), asked.extra_args or {}, lost=lost)


def _question(
    grant: Grant,
    model_id: str,
    messages: Sequence[Message] = (),
    tools: Sequence[Any] = (),
    extra_args: Mapping[str, Any] | None = None,
    *,
    lost: Lost,
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
        lost=lost,
    )
