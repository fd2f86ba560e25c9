"""A model at a provider: asked through the provider's own client, its stream read here.

The client library does connections, authentication and errors; reading thousands of small events through its models
costs several times what it costs here. The library is imported when the first question is asked, not before.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol, cast

import anyio.to_thread
import msgspec

from paddock.models import failures
from paddock.models.keys import Key, MissingKeyError
from paddock.models.provider import cannot
from paddock.models.wire.speaking import ServerSaidError, Wire, reason_of
from paddock.models.wire.sse import EventReader, RubbishError
from paddock.ports.models import ModelAnswer, ModelCall, ModelInfo, ModelPiece, Prices
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.model_specs import ModelSpec
from paddock_sdk.protocol.host_calls import RerankEntry

CONNECT_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
READ_OFF_SECONDS = 0.05
READ_OFF_PIECES = 16
OPERATIONS: Mapping[str, frozenset[str]] = {
    "llm": frozenset({"invoke", "stream"}),
    "embedding": frozenset(),
    "rerank": frozenset({"rerank"}),
}


class Response(Protocol):
    """What the clients give for a response that is still being received."""

    def iter_bytes(self) -> AsyncIterator[bytes]: ...
    async def read(self) -> bytes: ...


Opening = AbstractAsyncContextManager[Response]


class RemoteModel(ABC):
    """One model of one provider. A subclass knows its client library and its wire."""

    wire: Wire
    usual_key: str
    """The environment variable in which people keep this provider's key."""

    def __init__(self, model_id: str, spec: ModelSpec, key: Key, *, clock: Callable[[], float]) -> None:
        self.info = _info(model_id, spec)
        self.spec = spec
        self.key = key
        self._clock = clock
        self._client: Any = None
        self._slots = asyncio.Semaphore(spec.max_concurrency)

    # --- what a subclass knows

    @abstractmethod
    def _library(self) -> Any:
        """The provider's client library, imported now. Slow: called on a thread."""

    @abstractmethod
    def _connect(self, library: Any, key: str | None, **common: Any) -> Any:
        """A client of the library; one for all questions to this model."""

    @abstractmethod
    def _open(self, client: Any, body: Mapping[str, Any], **common: Any) -> Opening:
        """Send a question; the response is read by whoever enters."""

    # --- what the catalog asks

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        async with self._asked(call, stream=False) as response:
            body = await response.read()
            if len(body) > MAX_ANSWER_BYTES:
                raise RubbishError(f"an answer of {len(body)} bytes")
            return self.wire.answer(body)

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelPiece]:
        async with self._asked(call, stream=True) as response:
            collector, reader = self.wire.collector(), EventReader()
            take, arriving = collector.take, response.iter_bytes()
            async for received in arriving:
                for data in reader.feed(received):
                    piece = take(data)
                    if piece is not None:
                        yield piece
                if collector.finished:
                    break
            for data in reader.end():
                piece = take(data)
                if piece is not None:
                    yield piece
            if not collector.complete:
                raise failures.broken_off(self.info.model_id)
            yield collector.last()
            await _read_off(arriving)

    async def rerank(
        self, _call: ModelCall, _query: str, _documents: Sequence[str], _top_k: int | None, /
    ) -> Sequence[RerankEntry]:
        raise cannot(self.info.model_id, "rank documents")

    async def embed(self, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]:  # noqa: ARG002
        raise cannot(self.info.model_id, "make vectors")

    async def retire(self) -> None:
        for taken in range(self.spec.max_concurrency):  # a question holds its slot to its end, at the latest its run's
            try:
                await self._slots.acquire()
            except asyncio.CancelledError:
                self._give_back(taken)
                raise
        await self.close()
        self._give_back(self.spec.max_concurrency)  # for one that was about to ask again: it connects anew

    def _give_back(self, slots: int) -> None:
        for _ in range(slots):
            self._slots.release()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def warm_up(self) -> None:
        """Import the library before the first question has to wait for it."""
        await anyio.to_thread.run_sync(self._library)

    # --- within

    @asynccontextmanager
    async def _asked(self, call: ModelCall, *, stream: bool) -> AsyncGenerator[Response]:
        """One question on its way, within the limits of this model; whatever goes wrong is said as a HostError."""
        body = self.wire.request(call, self.spec, stream=stream)
        async with (
            self._sending(call.deadline_at) as (client, common),
            self._open(client, body, **common) as response,
        ):
            yield response

    @asynccontextmanager
    async def _sending(self, deadline_at: float) -> AsyncGenerator[tuple[Any, dict[str, Any]]]:
        """A client, a free slot, and what to say to both."""
        library = await anyio.to_thread.run_sync(self._library) if self._client is None else None
        if self._client is None:
            self._client = self._connected(library)
        import httpx2

        seconds = min(self.spec.timeout_seconds, deadline_at - self._clock())
        if seconds <= 0:
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, "the run's time was over before the model could be asked")
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        async with self._slots:
            with self._said_as_ours(seconds):
                yield self._client, {"timeout": timeout, "extra_headers": dict(self.spec.headers)}

    def _connected(self, library: Any) -> Any:
        try:
            key = self.key.read()
        except MissingKeyError as error:
            raise failures.no_key(self.info.model_id, str(error)) from None
        return self._connect(library, key, base_url=self.spec.base_url, max_retries=0)

    def _said_as_ours(self, seconds: float) -> "_Translated":
        address = self.spec.base_url or str(getattr(self._client, "base_url", "its usual address"))
        return _Translated(self.info.model_id, self.key, address, seconds)


class _Translated:
    """Turns what a client library raises into the host's own errors. Keys stay inside."""

    def __init__(self, model_id: str, key: Key, address: str, seconds: float) -> None:
        self._model_id = model_id
        self._key = key
        self._address = address
        self._seconds = seconds

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is None or isinstance(error, HostError) or not isinstance(error, Exception):
            return
        raise self._ours(error) from None  # the cause may hold the key in a header

    def _ours(self, error: Exception) -> HostError:
        status = getattr(error, "status_code", None)
        if isinstance(error, ServerSaidError):
            return failures.refused(self._model_id, error.status, self._key.hide(str(error)))
        if isinstance(status, int):
            headers = getattr(getattr(error, "response", None), "headers", {})
            words = self._key.hide(_words(error))
            return failures.refused(self._model_id, status, words, retry_after=failures.retry_after_of(headers))
        if isinstance(error, msgspec.DecodeError | RubbishError | UnicodeDecodeError):
            return failures.rubbish(self._model_id, self._key.hide(str(error))[:200])
        return self._lost(error)

    def _lost(self, error: Exception) -> HostError:
        """The line went dead, or nobody knows what happened."""
        import httpx2

        kind = type(error).__name__
        if isinstance(error, httpx2.TimeoutException) or kind == "APITimeoutError":
            return failures.silent(self._model_id, self._seconds)
        if kind == "APIConnectionError":
            return failures.unreachable(self._model_id, self._address)
        if isinstance(error, httpx2.HTTPError | httpx2.StreamError):
            return failures.broken_off(self._model_id)
        return HostError(ErrorCode.RUNTIME_ERROR, self._key.hide(f"the model {self._model_id!r} failed: {error}"))


async def _read_off(arriving: AsyncIterator[bytes]) -> None:
    """What follows the end of an answer, so that its connection can be used again. No more than a moment is spent on
    it: whoever goes on talking is hung up on."""
    with suppress(Exception):  # mostly StopAsyncIteration; and a line that breaks now harms nobody
        async with asyncio.timeout(READ_OFF_SECONDS):
            for _ in range(READ_OFF_PIECES):
                await anext(arriving)


def _words(error: Exception) -> str:
    """The provider's own sentence, out of whatever it wrapped it in."""
    body: Any = getattr(error, "body", None)
    about = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    inner: Any = about.get("error", about)
    return reason_of(inner) if inner else str(cast("object", body) or getattr(error, "message", error))


def _info(model_id: str, spec: ModelSpec) -> ModelInfo:
    prices = None
    if spec.prompt_price is not None or spec.completion_price is not None:
        prices = Prices(spec.prompt_price or 0.0, spec.completion_price or 0.0)
    return ModelInfo(
        model_id=model_id,
        model_type=spec.type,
        provider=spec.provider,
        operations=OPERATIONS[spec.type],
        context_window=spec.context_window,
        description=spec.description,
        prices=prices,
    )
