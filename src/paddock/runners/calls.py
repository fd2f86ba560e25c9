"""Host calls of one connection: at most so many at work, at most so many waiting, every one answered once.

Whether a call is allowed is the handler's business. Nothing here trusts a field of the frame to say who calls.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, cast

import structlog

from paddock.ports import Caller, HostCallHandler
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.runners import frames
from paddock.runners.frames import Frame, Id

MAX_RUNNING = 256
MAX_WAITING = 1024
MAX_WAITING_BYTES = 16 * 1024 * 1024
UNKNOWN_METHOD, INVALID_PARAMS, REFUSED = -32601, -32602, -32000

API_CODE: Mapping[ErrorCode, str] = {
    ErrorCode.UNAUTHENTICATED: "unauthorized",
    ErrorCode.UNAUTHORIZED: "unauthorized",
    ErrorCode.NOT_FOUND: "not_found",
    ErrorCode.CONFLICT: "invalid_argument",
    ErrorCode.SESSION_CLOSED: "unauthorized",
    ErrorCode.INVALID_ARGUMENT: "invalid_argument",
    ErrorCode.PAYLOAD_TOO_LARGE: "payload_too_large",
    ErrorCode.RATE_LIMITED: "rate_limited",
    ErrorCode.DEADLINE_EXCEEDED: "deadline_exceeded",
    ErrorCode.RUNTIME_ERROR: "runtime_error",
    ErrorCode.UNAVAILABLE: "runtime_error",
    ErrorCode.CURSOR_EXPIRED: "not_found",
}
"""The wire knows seven codes; ours are said in those."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HostCalls:
    """Takes requests from the peer and writes one answer each."""

    def __init__(
        self,
        caller: Caller,
        handler: HostCallHandler,
        methods: Collection[str],
        *,
        send: Callable[[bytes], None],
        drained: Callable[[], Awaitable[None]],
        max_running: int = MAX_RUNNING,
        max_frame_bytes: int = frames.MAX_FRAME_BYTES,
    ) -> None:
        self._caller = caller
        self._handler = handler
        self._methods = methods
        self._send = send
        self._drained = drained
        self._max_running = max_running
        self._max_frame_bytes = max_frame_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Frame, int]] = deque()
        self._waiting_bytes = 0

    def take(self, frame: Frame, size: int) -> None:
        """Start a call, let it wait its turn, or refuse it at once."""
        number = cast("Id", frame.id)
        if frame.method not in self._methods:
            self._refuse(
                number, UNKNOWN_METHOD, "invalid_argument", f"the host has no method {str(frame.method)[:80]!r}"
            )
        elif not isinstance(frame.params, dict):
            self._refuse(number, INVALID_PARAMS, "invalid_argument", "params must be an object")
        elif len(self._tasks) < self._max_running:
            self._start(frame, size)
        elif len(self._waiting) < MAX_WAITING and self._waiting_bytes + size <= MAX_WAITING_BYTES:
            self._waiting.append((frame, size))
            self._waiting_bytes += size
        else:
            self._refuse(
                number, REFUSED, "rate_limited", "too many host calls are waiting on this connection", retry=True
            )

    def close(self) -> None:
        """Nobody listens any more: drop what waits, cancel what is at work."""
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    def _start(self, frame: Frame, size: int) -> None:
        task = asyncio.create_task(self._work(frame, size))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, frame: Frame, size: int) -> None:
        """Answer one call, then whichever waits next."""
        await self._answer(frame, size)
        while self._waiting:
            frame, size = self._waiting.popleft()
            self._waiting_bytes -= size
            await self._answer(frame, size)

    async def _answer(self, frame: Frame, size: int) -> None:
        number, method = cast("Id", frame.id), cast("str", frame.method)
        try:
            answer = await self._handler(self._caller, method, cast("dict[str, Any]", frame.params), size)
            line = frames.response(number, answer)
            if len(line) > self._max_frame_bytes:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"the answer exceeds {self._max_frame_bytes} bytes")
        except HostError as refusal:
            line = frames.refusal(number, REFUSED, api_error(refusal))
        except StorageUnavailableError:
            unavailable = HostError(
                ErrorCode.UNAVAILABLE, "the host cannot store anything at the moment", retryable=True
            )
            line = frames.refusal(number, REFUSED, api_error(unavailable))
        except Exception:
            log.exception("host_call.failed", plugin=self._caller.plugin, method=method)
            line = frames.refusal(number, REFUSED, _error("runtime_error", "the host failed to answer"))
        await self._drained()
        self._send(line)

    def _refuse(self, number: Id, rpc: int, code: str, message: str, *, retry: bool = False) -> None:
        self._send(frames.refusal(number, rpc, _error(code, message, retry=retry)))


def api_error(refusal: HostError) -> dict[str, Any]:
    """A refusal as the wire's AgentAPIError."""
    return _error(API_CODE[refusal.code], refusal.message, retry=refusal.retryable, details=refusal.details)


def _error(code: str, message: str, *, retry: bool = False, details: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "retryable": retry, "details": details or {}}
