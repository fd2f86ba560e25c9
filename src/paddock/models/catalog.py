"""All models of this host by their names, whoever provides them. The `Models` port."""

from collections.abc import AsyncIterator, Sequence

from paddock.models.provider import Provider
from paddock.ports.models import ModelAnswer, ModelCall, ModelInfo, ModelPiece
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.host_calls import RerankEntry


class ModelCatalog:
    def __init__(self, providers: Sequence[Provider]) -> None:
        self._providers = {provider.info.model_id: provider for provider in providers}

    def list(self, workspace: str) -> Sequence[ModelInfo]:  # noqa: ARG002 - one list for every workspace
        return [provider.info for provider in self._providers.values()]

    def find(self, workspace: str, model_id: str) -> ModelInfo | None:  # noqa: ARG002 - as above
        provider = self._providers.get(model_id)
        return provider.info if provider else None

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        return await self._named(call.model_id).invoke(call)

    def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        return self._named(call.model_id).stream(call)

    async def rerank(
        self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None
    ) -> Sequence[RerankEntry]:
        return await self._named(call.model_id).rerank(call, query, documents, top_k)

    async def embed(self, model_id: str, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]:
        return await self._named(model_id).embed(texts, deadline_at=deadline_at)

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()

    def _named(self, model_id: str) -> Provider:
        provider = self._providers.get(model_id)
        if provider is None:
            known = ", ".join(self._providers)
            raise HostError(ErrorCode.NOT_FOUND, f"there is no model {model_id!r}; this host has: {known}")
        return provider
