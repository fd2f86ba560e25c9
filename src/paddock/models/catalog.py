"""Catalog of this host's models by name. The `Models` port."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple

import structlog

from paddock.models.attempts import Attempts
from paddock.models.keys import MissingKeyError
from paddock.models.provider import Provider
from paddock.ports.models import FREE, Embedded, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking
from paddock.rules.errors import ErrorCode, HostError

log = structlog.get_logger("paddock.models")

NO_FALLBACKS: Mapping[str, Sequence[str]] = {}
NO_RETRIES: Mapping[str, int] = {}


class Lineup(NamedTuple):
    """Providers, fallbacks and retries by model name."""

    providers: Mapping[str, Provider]
    fallbacks: Mapping[str, Sequence[str]]
    retries: Mapping[str, int]


class ModelCatalog:
    """`fallbacks` and `retries` are by the name of the model that is asked."""

    def __init__(
        self,
        providers: Sequence[Provider],
        *,
        fallbacks: Mapping[str, Sequence[str]] = NO_FALLBACKS,
        retries: Mapping[str, int] = NO_RETRIES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lineup = Lineup({provider.info.model_id: provider for provider in providers}, fallbacks, retries)
        self._clock = clock

    def list(self, workspace: str) -> Sequence[ModelInfo]:  # noqa: ARG002 - one list for every workspace
        return [provider.info for provider in self.lineup.providers.values()]

    def find(self, workspace: str, model_id: str) -> ModelInfo | None:  # noqa: ARG002 - as above
        provider = self.lineup.providers.get(model_id)
        return provider.info if provider else None

    def is_free(self, workspace: str, model_id: str) -> bool:
        chain = (self.find(workspace, name) for name in (model_id, *self.lineup.fallbacks.get(model_id, ())))
        return all(info.prices == FREE for info in chain if info is not None)

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        return await self._attempts(call.model_id).invoke(call)

    def stream(self, call: ModelCall) -> AsyncIterator[ModelPiece]:
        return self._attempts(call.model_id).stream(call)

    async def rerank(self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None) -> Ranking:
        return await self._attempts(call.model_id).first(
            call, lambda provider: provider.rerank(call, query, documents, top_k)
        )

    async def embed(self, workspace: str, model_id: str, texts: Sequence[str], *, deadline_at: float) -> Embedded:
        call = ModelCall(model_id, (), (), {}, workspace_id=workspace, user_id="", run_id="", deadline_at=deadline_at)
        return await self._attempts(model_id).first(call, lambda provider: provider.embed(call, texts))

    async def warm_up(self) -> None:
        """Import what the first question would otherwise have to wait for, and say now what it would be told then."""
        for provider in self.lineup.providers.values():
            try:
                await provider.warm_up()
            except (ImportError, MissingKeyError) as error:
                log.warning(
                    "a model cannot be used", action="models.warm_up", model=provider.info.model_id, reason=str(error)
                )

    async def replace(self, lineup: Lineup) -> None:
        """Offer these from now on, at once; close each of the others when what it was asked before is answered."""
        before, self.lineup = self.lineup, lineup
        await self.warm_up()
        await asyncio.gather(*(provider.retire() for provider in before.providers.values()))

    async def close(self) -> None:
        for provider in self.lineup.providers.values():
            await provider.close()

    def _attempts(self, model_id: str) -> Attempts:
        others = [
            self.lineup.providers[name]
            for name in self.lineup.fallbacks.get(model_id, ())
            if name in self.lineup.providers
        ]
        chain = [(one, self.lineup.retries.get(one.info.model_id, 0)) for one in (self._named(model_id), *others)]
        return Attempts(chain, clock=self._clock)

    def _named(self, model_id: str) -> Provider:
        provider = self.lineup.providers.get(model_id)
        if provider is None:
            known = ", ".join(self.lineup.providers)
            raise HostError(ErrorCode.NOT_FOUND, f"there is no model {model_id!r}; this host has: {known}")
        return provider
