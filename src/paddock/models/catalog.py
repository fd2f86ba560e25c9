"""Models of this host by name (the `Models` port): which provider is asked, again after a pause, then the fallbacks.

Nothing is asked again after the first piece of an answer is out.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import structlog

from paddock.models.failures import TO_MEND
from paddock.models.keys import MissingKeyError
from paddock.ports.models import Embedded, Lost, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking, not_counted
from paddock.rules.agents.resources import FREE
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.restart import pause_before
from paddock.rules.values import replace

log = structlog.get_logger("paddock.models")

T = TypeVar("T")
NO_FALLBACKS: Mapping[str, Sequence[str]] = {}
NO_RETRIES: Mapping[str, int] = {}


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

    async def embed(
        self, workspace: str, model_id: str, texts: Sequence[str], *, deadline_at: float, lost: Lost = not_counted
    ) -> Embedded:
        who = {"workspace_id": workspace, "user_id": "", "run_id": ""}
        call = ModelCall(model_id, (), (), {}, deadline_at=deadline_at, lost=lost, **who)
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

    def _attempts(self, model_id: str) -> "Attempts":
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


class Attempts:
    def __init__(self, chain: Sequence[tuple[Provider, int]], *, clock: Callable[[], float]) -> None:
        """`chain` is each provider with the number of its retries."""
        self._chain = chain
        self._clock = clock

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        async def ask(provider: Provider) -> ModelAnswer:
            answer = await provider.invoke(replace(call, model_id=provider.info.model_id))
            return replace(answer, answered_by=self._name(provider))

        return await self._until_answered(call, ask)

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelPiece]:
        async def begin(provider: Provider) -> tuple[Any, ModelPiece, str]:
            pieces = cast("AsyncGenerator[ModelPiece]", provider.stream(replace(call, model_id=provider.info.model_id)))
            try:
                return pieces, await anext(pieces), self._name(provider)
            except BaseException:
                await pieces.aclose()
                raise

        pieces, piece, name = await self._until_answered(call, begin)
        async with aclosing(pieces):
            yield _signed(piece, name)
            async for piece in pieces:
                yield _signed(piece, name) if piece.final else piece

    async def first(self, call: ModelCall, ask: Callable[[Provider], Awaitable[T]]) -> T:
        """Only the model that was named: what others would say to this cannot take its place."""
        provider, retries = self._chain[0]
        return await self._patiently(call, provider, retries, ask)

    async def _until_answered(self, call: ModelCall, ask: Callable[[Provider], Awaitable[T]]) -> T:
        failure: HostError | None = None
        for provider, retries in self._chain:
            try:
                return await self._patiently(call, provider, retries, ask)
            except HostError as error:
                failure = failure or error
                if not _worth_asking_another(error):
                    break
                more = provider is not self._chain[-1][0]
                self._note(call, provider, error, "asking the next model" if more else "giving up")
        assert failure is not None
        raise failure

    async def _patiently(
        self, call: ModelCall, provider: Provider, retries: int, ask: Callable[[Provider], Awaitable[T]]
    ) -> T:
        attempt = 0
        while True:
            try:
                return await ask(provider)
            except HostError as error:
                pause = pause_before(
                    attempt,
                    retries=retries,
                    asked_for=error.details.get("retry_after"),
                    seconds_left=call.deadline_at - self._clock(),
                )
                if not error.retryable or pause is None:
                    raise
                self._note(call, provider, error, f"asking again in {pause:g} s")
            await asyncio.sleep(pause)
            attempt += 1

    def _name(self, provider: Provider) -> str:
        return "" if provider is self._chain[0][0] else provider.info.model_id

    def _note(self, call: ModelCall, provider: Provider, error: HostError, what: str) -> None:
        about = {"run_id": call.run_id, "model": provider.info.model_id, "reason": error.message}
        log.warning(f"a model did not answer; {what}", action="models.attempt", **about)


def _worth_asking_another(error: HostError) -> bool:
    """A question that is wrong is wrong for every model; a key, a quota or a server is not."""
    return error.retryable or error.details.get("status") in TO_MEND or "has no key" in error.message


def _signed(piece: ModelPiece, name: str) -> ModelPiece:
    return replace(piece, answered_by=name) if name else piece
