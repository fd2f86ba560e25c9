"""Models as the host sees them: named, listed, asked. Which provider answers, and how, is a plug's business.

What comes back is made of plain values, not of wire models: a streamed answer has thousands of pieces.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from paddock.rules.agents.resources import ModelInfo
from paddock.rules.values import Value, nothing
from paddock_sdk.protocol.host_calls import RerankEntry
from paddock_sdk.protocol.messages import LLMTool, Message

Lost = Callable[[Sequence[str]], None]
"""Hears of a question that went out and was not answered to its end: it costs as well. With the texts of the answer
that had come and that no piece told, such as half a tool call."""


def not_counted(_unsaid: Sequence[str]) -> None:
    """Nobody keeps count."""


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
    lost: Lost = not_counted


class CalledTool(Value, frozen=True):
    """A tool the model wants called, whole. `arguments` is the JSON text the model wrote, good or bad."""

    call_id: str
    name: str
    arguments: str


class Usage(Value, frozen=True):
    """Tokens as a model counted them. None is not zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class ModelAnswer(Value, frozen=True):
    content: str
    tool_calls: Sequence[CalledTool] = ()
    finish_reason: str | None = None
    """stop, tool_calls, length, content_filter, or the provider's own word"""
    extras: Mapping[str, Any] = nothing
    """What only this provider understands, to be sent back with the message: reasoning, signatures."""
    usage: Usage | None = None
    answered_by: str = ""
    """The model that answered, when it is not the one that was asked."""


class ModelPiece(Value, frozen=True):
    """One piece of a streamed answer. Tool calls come whole; the last piece is `final` and may carry usage."""

    content: str = ""
    reasoning: str = ""
    tool_calls: Sequence[CalledTool] = ()
    final: bool = False
    finish_reason: str | None = None
    extras: Mapping[str, Any] = nothing
    usage: Usage | None = None
    answered_by: str = ""


class Ranking(Value, frozen=True):
    """Documents by how well they fit, best first."""

    entries: Sequence[RerankEntry]
    usage: Usage | None = None


class Embedded(Value, frozen=True):
    """One vector per text."""

    vectors: Sequence[Sequence[float]]
    usage: Usage | None = None


class Models(Protocol):
    """All models of this host. Failures are HostError with a sentence that names cause and cure, never a key."""

    def list(self, workspace: str) -> Sequence[ModelInfo]: ...
    def find(self, workspace: str, model_id: str) -> ModelInfo | None: ...
    def is_free(self, workspace: str, model_id: str) -> bool:
        """True if neither this model nor its fallbacks cost anything. An unknown price is not free."""
        ...

    async def invoke(self, call: ModelCall) -> ModelAnswer: ...
    def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        """Pieces as they come. Closing the iterator closes the connection to the provider."""
        ...

    async def rerank(self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None) -> Ranking: ...
    async def embed(
        self, workspace: str, model_id: str, texts: Sequence[str], *, deadline_at: float, lost: Lost = ...
    ) -> Embedded: ...
