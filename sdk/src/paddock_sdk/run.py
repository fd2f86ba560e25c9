"""One run at work: its results under credit, its cancel, its one end. Frames come from and go to the connection."""

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from paddock_sdk.calls import RunCalls
from paddock_sdk.causes import cause_of
from paddock_sdk.encoding import ResultEncoder
from paddock_sdk.host_api import HostApi
from paddock_sdk.protocol.errors import PAYLOAD_TOO_LARGE, RUNNER_ERROR
from paddock_sdk.protocol.frames import Limits, longest_result
from paddock_sdk.protocol.results import TERMINAL_TYPES
from paddock_sdk.results import Delta, Result, completed, failed
from paddock_sdk.runner import AgentRunner, Results, RunContext
from paddock_sdk.secrets import NO_SECRETS

log = logging.getLogger("paddock_sdk")


class ResultTooLargeError(Exception):
    """A result the host would not take. Sending it could cost every run of this process its connection."""


class Run:
    """Drives one `run()`. After a cancel nothing is said any more but the runner's own run.failed."""

    def __init__(
        self,
        runner: AgentRunner,
        ctx: RunContext,
        calls: RunCalls,
        send: Callable[[bytes], None],
        limits: Limits,
        secrets: Mapping[str, str] = NO_SECRETS,
    ) -> None:
        self.run_id = ctx.run_id
        self._runner, self._ctx, self._calls, self._send = runner, ctx, calls, send
        self._secrets = secrets
        self._encode = ResultEncoder(ctx.run_id)
        self._max_bytes = limits.max_result_bytes
        self._credit = limits.run_credit
        self._more_credit: asyncio.Future[None] | None = None
        self._sequence = 0
        self._cancelled = False
        self._task: asyncio.Task[None] | None = None
        self.cancel_ids: list[object] = []
        """Requests to answer when this run has ended."""

    def start(self, on_end: "Callable[[Run], None]") -> None:
        self._task = asyncio.get_running_loop().create_task(self._drive())
        self._task.add_done_callback(lambda _: on_end(self))

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    def steering_waits(self) -> None:
        self._calls.steering_waits()

    def give_credit(self, count: int) -> None:
        self._credit += count
        if self._credit > 0 and self._more_credit is not None and not self._more_credit.done():
            self._more_credit.set_result(None)

    async def _drive(self) -> None:
        try:
            ended = await self._pump(await self._open())
            if not (ended or self._cancelled):
                self._say(completed())
        except asyncio.CancelledError:
            self._fail(RUNNER_ERROR, "the runner cancelled itself")
        except ResultTooLargeError as error:
            self._fail(PAYLOAD_TOO_LARGE, str(error))
        except Exception as error:
            log.exception("run %s failed", self.run_id)
            self._fail(RUNNER_ERROR, cause_of(error))

    async def _open(self) -> Results:
        api = HostApi(self._calls, self._secrets)
        length = self._runner.tail_length(self._ctx) if self._runner.bootstrap == "recent_tail" else 0
        if length > 0 and self._ctx.context.available_apis.history_page:
            page = await api.history.page(before_cursor=self._ctx.context.latest_cursor, limit=length)
            self._ctx.keep_recent_tail(page.items)
        results: Any = self._runner.run(self._ctx, api)
        if not hasattr(results, "__aiter__"):
            raise TypeError(f"{type(self._runner).__name__}.run() {_why_no_results(results)}")
        return cast("Results", results)

    async def _pump(self, results: Results) -> bool:
        """Send what the runner says until it ends; True when it said so itself."""
        try:
            async for result in results:
                if getattr(result, "type", None) is None:
                    raise TypeError(f"{type(self._runner).__name__}.run() {_why_no_result(result)}")
                if result.type in TERMINAL_TYPES or self._cancelled:
                    return self._say_last(result)
                while self._credit <= 0:
                    await self._wait_for_credit()
                self._say(result)
            return False
        finally:
            close = getattr(results, "aclose", None)
            if close is not None:
                await close()

    def _say_last(self, result: Result) -> bool:
        if not self._cancelled or result.type == "run.failed":
            self._say(result)
        return True

    async def _wait_for_credit(self) -> None:
        self._more_credit = asyncio.get_running_loop().create_future()
        await self._more_credit

    def _fail(self, code: str, message: str) -> None:
        if not self._cancelled:
            self._say(failed(code, message))

    def _say(self, result: Result) -> None:
        sequence, now = self._sequence + 1, int(time.time())
        if type(result) is Delta:
            line = self._encode.delta(result.text, sequence, now)
        else:
            line = self._encode.result(result.type, result.data, sequence, now)
        if len(line) > self._max_bytes and len(line) > (most := longest_result(result.type, self._max_bytes)):
            raise ResultTooLargeError(f"{result.type} has {len(line)} bytes; the host takes {most}")
        self._sequence = sequence
        self._credit -= 1
        self._send(line)


def _why_no_results(returned: Any) -> str:
    """Explain what an author wrote in place of an async generator, and what to write."""
    if inspect.iscoroutine(returned):
        returned.close()
        return "never yields: write `yield message(...)` in it, also where it returns something"
    if inspect.isgenerator(returned):
        return "is not async: write `async def run(self, ctx, api)`"
    kind = type(returned).__name__
    return f"returned {kind}: write `async def run(self, ctx, api)` and `yield message(...)` in it"


def _why_no_result(said: object) -> str:
    if isinstance(said, str):
        return "yielded plain text: write `yield delta(...)` for a piece of the answer or `yield message(...)` for all"
    return f"yielded {type(said).__name__}: write `yield delta(...)`, `yield message(...)` or another result"
