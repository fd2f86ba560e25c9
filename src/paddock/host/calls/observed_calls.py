"""Measures the time of host calls for metrics and traces. It changes no answer."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec

from paddock.host.calls.work import Chunks, close
from paddock.ports import Caller
from paddock.ports.runners import Observer
from paddock.rules.access.gate import LOOKED_AT, named
from paddock.rules.errors import ErrorCode, HostError

OnWire = Callable[[Caller, str, Any, int], Awaitable[msgspec.Raw | Chunks]]
Ended = Callable[[str], None]
ALLOWED = "allowed"


class ObservedCalls:
    def __init__(self, calls: OnWire, observer: Observer, clock: Callable[[], float]) -> None:
        self._calls = calls
        self._observer = observer
        self._clock = clock

    async def __call__(self, caller: Caller, method: str, params: Any, size: int) -> msgspec.Raw | Chunks:
        ended = self._watch(method, params)
        try:
            answer = await self._calls(caller, method, params, size)
        except Exception as error:
            ended(_result(error))
            raise
        if not isinstance(answer, msgspec.Raw):
            return ObservedStream(answer, ended)
        ended(ALLOWED)
        return answer

    def _watch(self, method: str, params: Any) -> Ended:
        began = self._clock()

        def ended(result: str) -> None:
            given = cast("Mapping[str, Any]", params if isinstance(params, dict) else {})
            looked = LOOKED_AT.get(method)
            resource = named(given, looked.resource) if looked is not None else ""
            run_id = given.get("run_id")
            run_id = run_id if isinstance(run_id, str) else ""
            self._observer.host_call(run_id, method, resource or "", result, began, self._clock())

        return ended


class ObservedStream:
    """A streamed answer; it is timed until its last piece."""

    def __init__(self, chunks: Chunks, ended: Ended) -> None:
        self._chunks = chunks
        self._ended: Ended | None = ended
        self._pieces: AsyncIterator[Mapping[str, Any]] | None = None

    @property
    def result(self) -> Mapping[str, Any]:
        return self._chunks.result

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        self._pieces = aiter(self._chunks)
        return self

    async def __anext__(self) -> Mapping[str, Any]:
        assert self._pieces is not None
        try:
            return await anext(self._pieces)
        except StopAsyncIteration:
            self._end(ALLOWED)
            raise
        except Exception as error:
            self._end(_result(error))
            raise

    async def aclose(self) -> None:
        self._end(ALLOWED)
        await close(self._chunks)

    def _end(self, result: str) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(result)


def _result(error: Exception) -> str:
    return str(error.code) if isinstance(error, HostError) else str(ErrorCode.RUNTIME_ERROR)
