"""Models as the host sees them: named, listed, asked. Which provider answers, and how, is a plug's business."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Protocol

from paddock.rules.values import Value
from paddock_sdk.protocol.host_calls import RerankEntry
from paddock_sdk.protocol.messages import LLMTokenUsage, LLMTool, Message, MessageChunk


class ModelInfo(Value, frozen=True):
    """One model that can be granted."""

    model_id: str
    model_type: str
    """llm, embedding or rerank"""
    provider: str
    operations: frozenset[str]
    """Of invoke, stream, rerank."""
    context_window: int | None = None
    description: str = ""


class ModelCall(Value, frozen=True):
    """One question to a model, and on whose behalf it is asked."""

    model_id: str
    messages: Sequence[Message]
    tools: Sequence[LLMTool]
    extra_args: Mapping[str, Any]
    workspace_id: str
    user_id: str
    run_id: str
    deadline_at: float
    """Epoch seconds: whatever the plug does ends by then."""


class ModelAnswer(Value, frozen=True):
    message: Message
    usage: LLMTokenUsage | None = None


class ModelPiece(Value, frozen=True):
    """One piece of a streamed answer; the last may carry usage alone."""

    chunk: MessageChunk | None = None
    usage: LLMTokenUsage | None = None


class Models(Protocol):
    """All models of this host. Failures are HostError with a sentence that names cause and cure, never a key."""

    def list(self, workspace: str) -> Sequence[ModelInfo]: ...
    async def invoke(self, call: ModelCall) -> ModelAnswer: ...
    def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        """Pieces as they come. Closing the iterator closes the connection to the provider."""
        ...

    async def rerank(
        self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None
    ) -> Sequence[RerankEntry]: ...
    async def embed(self, model_id: str, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]: ...
