"""A model at a provider: one question at a time in its words, whole or streamed.

A subclass knows the provider's address, how a key is sent and the wire; `connections.py` sends. The HTTP library behind
it is imported when the first question is asked, not before.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio.to_thread
import msgspec
import structlog

from paddock.models import failures
from paddock.models.keys import Key, MissingKeyError
from paddock.models.wire import (
    Collector,
    RubbishError,
    ServerSaidError,
    Wire,
    check_no_addresses,
    in_words,
    reason_of,
)
from paddock.ports.models import Embedded, ModelAnswer, ModelCall, ModelInfo, ModelPiece, Ranking
from paddock.ports.places import Places
from paddock.rules.access.limits import KEPT_FREE
from paddock.rules.agents.model_options import taken
from paddock.rules.agents.resources import Prices
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import replace
from paddock_sdk.sse import EventReader, EventTooLargeError

if TYPE_CHECKING:
    from paddock.models.connections import Connections, HttpAnswer

log: structlog.stdlib.BoundLogger = structlog.get_logger("paddock.models")

Read = TypeVar("Read")
MAX_ANSWER_BYTES = 64 * 1024 * 1024
AFTER_THE_RUN_SECONDS = 1.0
"""The gate ends a question with its run; what ends it here comes later, so that the record says the same each time."""
READ_OFF_SECONDS = 0.05
READ_OFF_PIECES = 16
WAITING, WAITING_IN_ALL = 256, 2048
"""Questions that wait for a slot of one model."""
OPERATIONS: Mapping[str, frozenset[str]] = {
    "llm": frozenset({"invoke", "stream"}),
    "embedding": frozenset(),
    "rerank": frozenset({"rerank"}),
}


class RemoteModel(ABC):
    """One model of one provider. A subclass knows its address, how a key is sent, and its wire."""

    wire: Wire
    path: str
    """Where questions go, under the provider's address."""
    usual_key: str
    """The environment variable in which people keep this provider's key."""
    home: str
    """The provider's own address."""
    home_variable: str
    """The environment variable that names another address for all of the provider's programs."""

    def __init__(self, model_id: str, spec: ModelSpec, key: Key, *, clock: Callable[[], float]) -> None:
        self.info = _info(model_id, spec)
        self.spec = spec
        self.key = key
        self._clock = clock
        self._connections: Connections | None = None
        self._connecting = asyncio.Lock()
        self._slots = _slots_for(spec.max_concurrency)

    @abstractmethod
    def _introduction(self, key: str | None) -> Mapping[str, str]:
        """The headers that say who asks."""

    async def invoke(self, call: ModelCall) -> ModelAnswer:
        body = self.wire.request(self._seen(call), self.spec, stream=False)
        return await self._whole(self.path, body, call, self.wire.answer)

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelPiece]:
        body = self.wire.request(self._seen(call), self.spec, stream=True)
        async with self._asked(self.path, body, call) as answer:
            collector, reader, room = self.wire.collector(), EventReader(), MAX_ANSWER_BYTES
            take, more = collector.take, answer.more
            try:
                while not collector.finished and (received := await more()):
                    room -= len(received)
                    _check_room(room)
                    for piece in joined(map(take, reader.feed(received))):
                        yield piece
                for piece in joined(map(take, reader.end())):
                    yield piece
                self._check_whole(reader, collector)
            except ServerSaidError:
                raise
            except BaseException:  # also of whoever wants no more of it
                call.lost(collector.unsaid)
                raise
            yield collector.last()
            if not answer.over:
                await _read_off(answer)

    def _check_whole(self, reader: EventReader, collector: Collector) -> None:
        if not reader.heard:
            raise RubbishError("it streamed no event")
        if not collector.complete:
            raise failures.broken_off(self.info.model_id)

    async def rerank(self, _call: ModelCall, _query: str, _documents: Sequence[str], _top_k: int | None, /) -> Ranking:
        raise failures.cannot(self.info.model_id, "rank documents")

    async def embed(self, _call: ModelCall, _texts: Sequence[str], /) -> Embedded:
        raise failures.cannot(self.info.model_id, "make vectors")

    async def retire(self) -> None:
        await self._slots.emptied()  # a question holds its slot to its end, at the latest its run's
        await self.close()  # one that was about to ask again connects anew

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.close()

    async def warm_up(self) -> None:
        """Import what sends before the first question has to wait for it. Raises MissingKeyError."""
        await anyio.to_thread.run_sync(_load)
        await anyio.to_thread.run_sync(self.key.read)

    def _seen(self, call: ModelCall) -> ModelCall:
        """The question as this model can take it. Raises INVALID_ARGUMENT."""
        if not self.spec.addresses:
            check_no_addresses(call.messages, self.info.model_id)
        messages = in_words(call.messages) if self.spec.images is False else call.messages
        return replace(call, messages=messages, extra_args=taken(call.extra_args, self.wire.options, self.spec))

    async def _whole(self, path: str, body: Mapping[str, Any], call: ModelCall, read: Callable[[bytes], Read]) -> Read:
        async with self._asked(path, body, call) as answer:
            try:
                said = await answer.read(MAX_ANSWER_BYTES)
            except BaseException:
                call.lost(())
                raise
            _check_room(MAX_ANSWER_BYTES - len(said))
            return read(said)

    @asynccontextmanager
    async def _asked(self, path: str, body: Mapping[str, Any], call: ModelCall) -> AsyncGenerator["HttpAnswer"]:
        """One question on its way, within the limits of this model; whatever goes wrong is said as a HostError."""
        connections = self._connections or await self._connected()
        await self._have_slot(call)
        try:
            seconds = self._seconds_for(call)
            with _Translated(self.info.model_id, self.key, self.spec.base_url or connections.address, seconds):
                async with await _posted(connections, path, body, seconds, call) as answer:
                    yield answer
        finally:
            self._slots.leave(call.workspace_id)

    async def _have_slot(self, call: ModelCall) -> None:
        """Wait for the workspace's turn at this model, as long as a question may take. Raises RATE_LIMITED."""
        seconds = self._seconds_for(call)
        try:
            async with asyncio.timeout(seconds):
                await self._slots.enter(call.workspace_id)
        except TimeoutError:
            raise failures.no_turn(self.info.model_id, seconds) from None

    def _seconds_for(self, call: ModelCall) -> float:
        left = call.deadline_at - self._clock()
        if left <= 0:
            raise HostError(ErrorCode.DEADLINE_EXCEEDED, "the run's time was over before the model could be asked")
        return min(self.spec.timeout_seconds, left + AFTER_THE_RUN_SECONDS)

    async def _connected(self) -> "Connections":
        async with self._connecting:
            if self._connections is None:
                key = await anyio.to_thread.run_sync(self._key_now)
                await anyio.to_thread.run_sync(_load)
                from paddock.models.connections import Connections

                address = self.spec.base_url or os.environ.get(self.home_variable) or self.home
                self._connections = Connections(address, {**self._introduction(key), **self.spec.headers})
            return self._connections

    def _key_now(self) -> str | None:
        try:
            return self.key.read()
        except MissingKeyError as error:
            is_usual = self.key.reference == f"env:{self.usual_key}"
            missing = failures.no_key(self.info.model_id, str(error), for_all=is_usual)
            log.warning("a model has no key", action="models.failed", reason=missing.for_operators)
            raise missing from None


async def _posted(
    connections: "Connections", path: str, body: Mapping[str, Any], seconds: float, call: ModelCall
) -> "HttpAnswer":
    """The beginning of the answer; a question that none came to in time is lost."""
    from paddock.models.connections import SilentError

    try:
        return await connections.post(path, body, seconds)
    except (SilentError, asyncio.CancelledError):
        call.lost(())
        raise


def _check_room(room: int) -> None:
    if room < 0:
        raise RubbishError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")


def _load() -> None:
    """Import what sends and read the certificates it trusts. Slow: called on a thread."""
    from paddock.models.connections import trusted

    trusted()


class _Translated:
    """Turns what asking a model server raises into the host's own errors. Keys stay inside."""

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
        ours = self._ours(error)
        if ours.for_operators != ours.message:
            log.warning("a model failed", action="models.failed", model=self._model_id, reason=ours.for_operators)
        raise ours from None  # the cause may hold the key in a header

    def _ours(self, error: Exception) -> HostError:
        from paddock.models.connections import StatusError

        if isinstance(error, ServerSaidError):
            return failures.refused(self._model_id, error.status, self._key.hide(str(error)))
        if isinstance(error, StatusError):
            words, after = self._key.hide(_words(error.words)), failures.retry_after_of(error.headers)
            return failures.refused(self._model_id, error.status, words, retry_after=after)
        if isinstance(error, msgspec.DecodeError | RubbishError | EventTooLargeError | UnicodeDecodeError):
            return failures.rubbish(self._model_id, self._key.hide(str(error))[:200])
        return self._lost(error)

    def _lost(self, error: Exception) -> HostError:
        from paddock.models.connections import BrokenOffError, SilentError, UnreachableError

        match error:
            case SilentError():
                return failures.silent(self._model_id, self._seconds)
            case UnreachableError():
                return failures.unreachable(self._model_id, self._address)
            case BrokenOffError():
                return failures.broken_off(self._model_id)
            case _:
                return failures.unforeseen(self._model_id, self._key.hide(str(error)))


def _slots_for(at_once: int) -> Places:
    """Slots of one model: workspaces take turns, and where there are several, one never has the last tenth."""
    each = max(1, int(at_once * (1 - KEPT_FREE)))
    return Places(at_once, each=each, alone=at_once, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)


def joined(pieces: Iterable[ModelPiece | None]) -> Iterator[ModelPiece]:
    """Words that came together go on together: a host that is behind has fewer of them to carry, not more."""
    words: list[str] = []
    try:
        for piece in pieces:
            if piece is not None and piece.content:
                words.append(piece.content)
            elif piece is not None:
                yield from _as_one(words)
                yield piece
    except Exception:
        yield from _as_one(words)  # what was said before it went wrong was said
        raise
    yield from _as_one(words)


def _as_one(words: list[str]) -> Iterator[ModelPiece]:
    if words:
        yield ModelPiece("".join(words))
        words.clear()


async def _read_off(answer: "HttpAnswer") -> None:
    """Read the rest of a finished answer for a moment, so that its connection can be used again."""
    with suppress(Exception):  # a line that breaks now harms nobody
        async with asyncio.timeout(READ_OFF_SECONDS):
            for _ in range(READ_OFF_PIECES):
                if not await answer.more():
                    return


def _words(body: bytes) -> str:
    try:
        said: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return body.decode("utf-8", "replace")
    about = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    return reason_of(about.get("error") or about or said)


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
        images=spec.images,
    )
