"""Protocol of a provider: one named model that can be asked. Each kind of provider has one file."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from paddock.ports.models import Embedded, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking
from paddock.rules.errors import ErrorCode, HostError


class Provider(Protocol):
    """One model. Failures are HostError; `retryable` says whether another attempt or another model may help."""

    @property
    def info(self) -> ModelInfo: ...
    async def invoke(self, call: ModelCall) -> ModelAnswer: ...
    def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]: ...
    async def rerank(
        self, _call: ModelCall, _query: str, _documents: Sequence[str], _top_k: int | None, /
    ) -> Ranking: ...
    async def embed(self, _call: ModelCall, _texts: Sequence[str], /) -> Embedded: ...
    async def warm_up(self) -> None:
        """Do what the first question would otherwise have to wait for."""
        ...

    async def retire(self) -> None:
        """Close once all that is being asked is answered."""
        ...

    async def close(self) -> None: ...


def cannot(model_id: str, what: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"the model {model_id!r} cannot {what}; choose another for that")
