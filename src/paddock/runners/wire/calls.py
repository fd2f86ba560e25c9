"""Host calls of one connection: at most so many at work, at most so many waiting, every one answered once.

Whether a call is allowed is the handler's business. Nothing here trusts a field of the frame to say who calls.
A handler may answer in chunks (`Chunks`): they go out under the peer's credit, the response comes last.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Protocol, cast

import anyio
import structlog

from paddock.ports import Caller, HostCallHandler, Unreadable
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError, WrongParamsError
from paddock.runners.wire import frames
from paddock.runners.wire.frames import Frame, Id
from paddock_sdk.protocol.errors import API_ERROR_CODES, INVALID_ARGUMENT, NOT_FOUND, RUNTIME_ERROR, UNAUTHORIZED
from paddock_sdk.protocol.frames import INVALID_PARAMS, INVALID_REQUEST, MAX_RESULT_BYTES, METHOD_NOT_FOUND, PARSE_ERROR

MAX_RUNNING = 256
MAX_WAITING = 1024
MAX_WAITING_BYTES = 16 * 1024 * 1024
CLOSE_SECONDS = 5.0
"""How long the source of a cut-off answer may take to clean up."""
ENDS_WITH_ITS_RUN = frozenset({"models.invoke", "models.rerank", "tools.call"})
RUN_IS_OVER = "the run is over"
REFUSED = -32000

API_CODE: Mapping[ErrorCode, str] = {
    **{code: code.value for code in ErrorCode if code in API_ERROR_CODES},
    ErrorCode.UNAUTHENTICATED: UNAUTHORIZED,
    ErrorCode.CONFLICT: INVALID_ARGUMENT,
    ErrorCode.SESSION_CLOSED: UNAUTHORIZED,
    ErrorCode.UNAVAILABLE: RUNTIME_ERROR,
    ErrorCode.CURSOR_EXPIRED: NOT_FOUND,
}
"""The code on the wire for each of ours."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Chunks(Protocol):
    """An answer that comes in pieces: `async for` gives each one's data, then `result` is the response.

    It is closed with `aclose`, if it has one, whether or not it was read to its end.
    """

    result: Mapping[str, Any]

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]: ...


class _Stream:
    """One answer on its way in chunks, sent by the task that makes it.

    It ends as a cancel scope would end it, at a fifth of what one costs: every answer of a model passes here.
    """

    def __init__(self, run_id: object, credit: int) -> None:
        self.run_id = run_id
        self.all_sent = False
        self._credit = credit
        self._more = asyncio.Event()
        self._sender = cast("asyncio.Task[Any]", asyncio.current_task())
        self._sending = True
        self._cut = False

    def cut(self) -> None:
        """Its run is over. Not at once, because whoever says so may be the sender itself."""
        asyncio.get_running_loop().call_soon(self._cancel)

    def _cancel(self) -> None:
        if self._sending and not self._cut:
            self._cut = self._sender.cancel()

    def ended(self) -> bool:
        """Nothing more is sent. True if it was cut, and nothing else cancelled the sender, which then goes on."""
        was_cut, self._sending, self._cut = self._cut, False, False
        return was_cut and not self._sender.uncancel()

    def give(self, credit: int) -> None:
        self._credit += credit
        self._more.set()

    async def pay(self) -> None:
        while self._credit <= 0:
            self._more.clear()
            await self._more.wait()
        self._credit -= 1


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Limits both sides agree to; the peer gets them in the handshake."""

    max_frame_bytes: int = frames.MAX_FRAME_BYTES
    max_result_bytes: int = MAX_RESULT_BYTES
    run_credit: int = frames.RUN_CREDIT
    call_credit: int = frames.CALL_CREDIT
    calls_at_once: int = MAX_RUNNING
    """Calls at work at the same time; the peer is not told."""


@dataclass(eq=False)
class WireCalls:
    """Takes requests from the peer and writes one answer each."""

    caller: Caller
    handler: HostCallHandler
    methods: Collection[str]
    _: KW_ONLY
    send: Callable[[bytes], None]
    drained: Callable[[], Awaitable[None]]
    limits: WireLimits = field(default_factory=WireLimits)
    is_live: Callable[[object], bool] = lambda _run_id: True
    """Whether a run is still going on at this peer; chunks are only sent to one that is."""
    overloaded: Callable[[str, Any], None] = lambda _method, _params: None
    """Hears of calls that were refused unread."""
    at_work: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]], init=False)
    _streams: dict[Id, _Stream] = field(default_factory=dict[Id, _Stream], init=False)
    _long_calls: dict[str, set[anyio.CancelScope]] = field(
        default_factory=dict[str, set[anyio.CancelScope]], init=False
    )
    """Those at work, by the run they are made for."""
    _unanswered: set[Id] = field(default_factory=set[Id], init=False)
    _waiting: deque[tuple[Frame, int]] = field(default_factory=deque[tuple[Frame, int]], init=False)
    _waiting_bytes: int = field(default=0, init=False)

    def take(self, frame: Frame, size: int) -> None:
        """Start a call, let it wait its turn, or refuse it unread: too many wait, or its id is another call's."""
        if frame.id in self._unanswered:
            text = "a call of this id is still being answered; every call needs an id of its own"
            self.send(frames.refusal(frame.id, INVALID_REQUEST, _error("invalid_argument", text)))
        elif len(self.at_work) < self.limits.calls_at_once:
            self._start(frame, size)
        elif len(self._waiting) < MAX_WAITING and self._waiting_bytes + size <= MAX_WAITING_BYTES:
            self._begin(frame)
            self._waiting.append((frame, size))
            self._waiting_bytes += size
        else:
            text = "too many host calls are waiting on this connection"
            self.send(frames.refusal(frame.id, REFUSED, _error("rate_limited", text, retry=True)))
            self.overloaded(cast("str", frame.method), frame.params)

    def give_credit(self, params: Any) -> bool:
        """The peer's `call_credit`; False when it cannot be read. Credit for what is answered already is no fault."""
        given = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        number, credit = given.get("id"), given.get("credit")
        if not isinstance(number, str | int) or type(credit) is not int or credit < 0:
            return False
        if (stream := self._streams.get(number)) is not None:
            stream.give(credit)
        return True

    def run_over(self, run_id: str) -> None:
        """Answers in chunks and calls that may take long end with their run."""
        for scope in self._long_calls.pop(run_id, ()):
            scope.cancel()
        for stream in self._streams.values():
            if stream.run_id == run_id:
                stream.cut()

    def close(self) -> None:
        """Nobody listens any more: drop what waits, cancel what is at work."""
        self._waiting.clear()
        for task in self.at_work:
            task.cancel()

    def _begin(self, frame: Frame) -> None:
        if frame.id is not None:
            self._unanswered.add(frame.id)

    def _start(self, frame: Frame, size: int) -> None:
        self._begin(frame)
        task = asyncio.create_task(self._work(frame, size))
        self.at_work.add(task)
        task.add_done_callback(self.at_work.discard)

    async def _work(self, frame: Frame, size: int) -> None:
        await self._answer(frame, size)
        while self._waiting:
            frame, size = self._waiting.popleft()
            self._waiting_bytes -= size
            await self._answer(frame, size)
        if (me := asyncio.current_task()) is not None:
            self.at_work.discard(me)  # now: a call that comes before the task's callback would wait for nobody

    async def _answer(self, frame: Frame, size: int) -> None:
        number, method = frame.id, cast("str", frame.method)
        rpc_code = self._rpc_code(frame)
        try:
            answer: object = await self._handled(method, frame.params, size)
            if rpc_code != REFUSED:  # whatever the handler thinks of it, this is no call
                raise HostError(ErrorCode.INVALID_ARGUMENT, "this is no host call")
            if hasattr(answer, "__aiter__"):
                answer = await self._in_chunks(frame, cast("Chunks", answer))
            line = frames.response(cast("Id", number), answer)
            if len(line) > self.limits.max_frame_bytes:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"the answer exceeds {self.limits.max_frame_bytes} bytes")
        except HostError as refusal:
            is_misshapen = isinstance(refusal, WrongParamsError) and rpc_code == REFUSED
            line = frames.refusal(number, INVALID_PARAMS if is_misshapen else rpc_code, api_error(refusal))
        except StorageUnavailableError:
            unavailable = HostError(
                ErrorCode.UNAVAILABLE, "the host cannot store anything at the moment", retryable=True
            )
            line = frames.refusal(number, REFUSED, api_error(unavailable))
        except Exception:
            log.exception(
                "the host failed to answer a host call",
                action="host_call.failed",
                plugin=self.caller.plugin,
                method=method,
            )
            line = frames.refusal(number, REFUSED, _error("runtime_error", "the host failed to answer"))
        await self.drained()
        self._unanswered.discard(cast("Id", number))
        self.send(line)

    async def _handled(self, method: str, params: Any, size: int) -> object:
        """The handler's answer. What may take long is given up when its run is over: nobody waits for it any more."""
        if method not in ENDS_WITH_ITS_RUN or not isinstance(params, dict):
            return await self.handler(self.caller, method, params, size)
        run_id, scope = str(cast("dict[str, Any]", params).get("run_id")), anyio.CancelScope()
        scopes = self._long_calls.setdefault(run_id, set())
        scopes.add(scope)
        try:
            with scope:
                return await self.handler(self.caller, method, cast("dict[str, Any]", params), size)
            raise HostError(ErrorCode.UNAUTHORIZED, RUN_IS_OVER)
        finally:
            scopes.discard(scope)
            if not scopes and self._long_calls.get(run_id) is scopes:
                del self._long_calls[run_id]

    async def _in_chunks(self, frame: Frame, chunks: Chunks) -> Mapping[str, Any]:
        """Send every chunk, as the peer can take them, and give back the response that ends them."""
        number = cast("Id", frame.id)
        stream = _Stream(cast("dict[str, Any]", frame.params).get("run_id"), self.limits.call_credit)
        try:
            if number in self._streams:
                raise HostError(ErrorCode.INVALID_ARGUMENT, "a call of this id is still being answered")
            if not self.is_live(stream.run_id):
                raise HostError(ErrorCode.UNAUTHORIZED, RUN_IS_OVER)
            self._streams[number] = stream
            await self._send_chunks(number, stream, chunks)
        except asyncio.CancelledError:
            if stream.ended():
                raise HostError(ErrorCode.UNAUTHORIZED, RUN_IS_OVER) from None
            raise
        else:
            return chunks.result
        finally:
            stream.ended()
            if self._streams.get(number) is stream:
                del self._streams[number]
            await _closed(chunks, read_to_its_end=stream.all_sent)

    async def _send_chunks(self, number: Id, stream: _Stream, chunks: Chunks) -> None:
        sequence = 0
        async for data in chunks:
            sequence += 1
            line = frames.notification("call_chunk", {"id": number, "sequence": sequence, "data": data})
            if len(line) > self.limits.max_frame_bytes:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a chunk exceeds {self.limits.max_frame_bytes} bytes")
            await stream.pay()
            await self.drained()
            self.send(line)
        stream.all_sent = True

    def _rpc_code(self, frame: Frame) -> int:
        """Return the JSON-RPC code of a refused frame. The handler refuses it and records that."""
        if isinstance(frame.params, Unreadable):
            return INVALID_REQUEST if frame.params.is_json else PARSE_ERROR
        if frame.method not in self.methods:
            return METHOD_NOT_FOUND
        return REFUSED if isinstance(frame.params, dict) else INVALID_PARAMS


async def _closed(chunks: Chunks, *, read_to_its_end: bool) -> None:
    """Let the source clean up, in its own words if it has any, and not for ever. One that has come to its end has
    cleaned up already."""
    close = getattr(chunks, "aclose", None)
    if close is None:
        return
    try:
        if read_to_its_end:
            await close()
            return
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await close()
    except Exception:
        log.exception("the source of an answer could not be closed", action="host_call.close_failed")


def api_error(refusal: HostError) -> dict[str, Any]:
    return _error(API_CODE[refusal.code], refusal.message, retry=refusal.retryable, details=refusal.details)


def _error(code: str, message: str, *, retry: bool = False, details: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "retryable": retry, "details": details or {}}
