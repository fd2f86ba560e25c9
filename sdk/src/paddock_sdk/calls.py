"""Host calls on their way: who waits for which answer, until when, and with how much credit. Knows no call by name."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from typing import Any, Generic, Self, TypeVar, cast

from pydantic import ValidationError

from paddock_sdk import encoding
from paddock_sdk.host_call_error import HostCallError, host_call_error
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, RUNTIME_ERROR
from paddock_sdk.protocol.frames import INVALID_PARAMS, AgentAPIError, Limits

Answer = dict[str, Any]
T = TypeVar("T")


class Calls:
    """All calls of one connection that have no answer yet."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self.limits = Limits()

    def start(self, method: str, params: Mapping[str, Any], waiting: "_Waiting") -> int:
        """Write the request. Too large a frame would cost every run here its connection, so it is not sent."""
        call_id = next(self._ids)
        line = encoding.request(call_id, method, params)
        if len(line) > self.limits.max_frame_bytes:
            raise host_call_error(method, PAYLOAD_TOO_LARGE, f"the request exceeds {self.limits.max_frame_bytes} bytes")
        self._waiting[call_id] = waiting
        self._send(line)
        return call_id

    def give_credit(self, call_id: int, credit: int) -> None:
        self._send(encoding.notification("call_credit", {"id": call_id, "credit": credit}))

    def forget(self, call_id: int) -> None:
        self._waiting.pop(call_id, None)

    def answered(self, frame: Mapping[str, Any]) -> None:
        """A response has arrived; one nobody waits for any more is dropped."""
        waiting = self._find(frame.get("id"))
        if waiting is None:
            return
        error, result = frame.get("error"), frame.get("result")
        if isinstance(result, dict):
            waiting.end(cast("Answer", result))
        else:
            waiting.fail(_refusal(waiting.method, cast("Answer", error) if isinstance(error, dict) else {}))

    def chunk(self, params: Mapping[str, Any]) -> None:
        waiting = self._find(params.get("id"))
        if isinstance(waiting, _WaitingStream):
            waiting.add(params.get("data") or {})

    def _find(self, call_id: object) -> "_Waiting | None":
        return self._waiting.get(call_id) if isinstance(call_id, int) else None


def _refusal(method: str, error: Mapping[str, Any]) -> HostCallError:
    """The host's own words when it used them, else the nearest of the seven codes."""
    try:
        return HostCallError(method, AgentAPIError.from_wire(error.get("data")))
    except ValidationError:
        code = INVALID_ARGUMENT if error.get("code") == INVALID_PARAMS else RUNTIME_ERROR
        return host_call_error(method, code, str(error.get("message")))


class _Waiting:
    """Somebody waits for one answer."""

    __slots__ = ("future", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def end(self, answer: Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)

    def fail(self, error: HostCallError) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def late(self) -> None:
        self.fail(
            host_call_error(self.method, DEADLINE_EXCEEDED, "the run's deadline passed while waiting for the host")
        )


class _WaitingStream(_Waiting):
    """Somebody reads chunks; `future` is whatever the reader waits for right now."""

    __slots__ = ("answer", "chunks", "error")

    def __init__(self, method: str) -> None:
        super().__init__(method)
        self.chunks: deque[Answer] = deque()
        self.answer: Answer | None = None
        self.error: HostCallError | None = None

    def add(self, chunk: Answer) -> None:
        self.chunks.append(chunk)
        self._wake()

    def end(self, answer: Answer) -> None:
        self.answer = answer
        self._wake()

    def fail(self, error: HostCallError) -> None:
        self.error = self.error or error
        self._wake()

    def _wake(self) -> None:
        if not self.future.done():
            self.future.set_result({})

    async def more(self, deadline: float) -> bool:
        """Wait until there is a chunk (True) or the end (False). Raises HostCallError."""
        while not self.chunks:
            if self.error is not None:
                raise self.error
            if self.answer is not None:
                return False
            loop = asyncio.get_running_loop()
            self.future = loop.create_future()
            await _bounded(self, deadline)
        return True


async def _bounded(waiting: _Waiting, deadline: float) -> Answer:
    timer = asyncio.get_running_loop().call_at(deadline, waiting.late)
    try:
        return await waiting.future
    finally:
        timer.cancel()


class RunCalls:
    """The calls of one run: each names the run and ends by its deadline."""

    __slots__ = ("_calls", "_steering", "deadline", "run_id")

    def __init__(self, calls: Calls, run_id: str, deadline: float) -> None:
        self._calls = calls
        self.run_id = run_id
        self.deadline = deadline
        """On the event loop's clock."""
        self._steering: asyncio.Event | None = None
        """Made when the first one speaks of it: most runs never do."""

    @property
    def steering(self) -> asyncio.Event:
        """Set when the host says that input waits which this run may take in."""
        if self._steering is None:
            self._steering = asyncio.Event()
        return self._steering

    def steering_waits(self) -> None:
        self.steering.set()

    async def call(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Ask, and wait for the answer. Raises HostCallError."""
        waiting = _Waiting(method)
        call_id = self._calls.start(method, {"run_id": self.run_id, **params}, waiting)
        try:
            return await _bounded(waiting, self.deadline)
        finally:
            self._calls.forget(call_id)

    def stream(self, method: str, params: Mapping[str, Any], read: Callable[[Answer], T]) -> "HostStream[T]":
        return HostStream(self._calls, self.deadline, method, {"run_id": self.run_id, **params}, read)


class HostStream(AsyncIterator[T], Generic[T]):
    """A streaming call: `async for chunk in api.models.stream(...)`. Awaiting it first only sends it earlier."""

    def __init__(
        self,
        calls: Calls,
        deadline: float,
        method: str,
        params: Mapping[str, Any],
        read: Callable[[Answer], T],
    ) -> None:
        self._calls, self._deadline, self._method, self._params, self._read = calls, deadline, method, params, read
        self._waiting: _WaitingStream | None = None
        self._call_id = 0
        self._unpaid = 0

    @property
    def result(self) -> Answer:
        """The host's closing answer (such as usage); empty before the end."""
        return (self._waiting.answer or {}) if self._waiting else {}

    def __await__(self) -> Generator[None, None, Self]:
        self._start()
        return self
        yield

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        waiting = self._waiting or self._start()
        try:
            if not await waiting.more(self._deadline):
                raise StopAsyncIteration
        except BaseException:
            self._calls.forget(self._call_id)
            raise
        self._pay()
        return self._read(waiting.chunks.popleft())

    def _start(self) -> _WaitingStream:
        if self._waiting is None:
            self._waiting = _WaitingStream(self._method)
            self._call_id = self._calls.start(self._method, self._params, self._waiting)
        return self._waiting

    def _pay(self) -> None:
        """Give back credit for what was read, half a window at a time."""
        self._unpaid += 1
        if self._unpaid * 2 >= self._calls.limits.call_credit:
            self._calls.give_credit(self._call_id, self._unpaid)
            self._unpaid = 0
