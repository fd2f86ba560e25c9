"""Asking until somebody answers: again after a pause, then the fallbacks, and never after the first piece is out."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast

import structlog

from paddock.models.failures import TO_MEND
from paddock.models.provider import Provider
from paddock.ports.models import ModelAnswer, ModelCall, ModelPiece
from paddock.rules.errors import HostError
from paddock.rules.run.restart import pause_before
from paddock.rules.values import replace

log = structlog.get_logger("paddock.models")
T = TypeVar("T")


class Attempts:
    """Providers to ask for one model: itself, then its fallbacks."""

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
                self._note(
                    call, provider, error, "asking the next model" if self._more_after(provider) else "giving up"
                )
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
        """Return the answering model's id if it is not the one that was asked, else empty."""
        return "" if provider is self._chain[0][0] else provider.info.model_id

    def _more_after(self, provider: Provider) -> bool:
        return provider is not self._chain[-1][0]

    def _note(self, call: ModelCall, provider: Provider, error: HostError, what: str) -> None:
        about = {"run_id": call.run_id, "model": provider.info.model_id, "reason": error.message}
        log.warning(f"a model did not answer; {what}", action="models.attempt", **about)


def _worth_asking_another(error: HostError) -> bool:
    """A question that is wrong is wrong for every model; a key, a quota or a server is not."""
    return error.retryable or error.details.get("status") in TO_MEND or "has no key" in error.message


def _signed(piece: ModelPiece, name: str) -> ModelPiece:
    return replace(piece, answered_by=name) if name else piece
