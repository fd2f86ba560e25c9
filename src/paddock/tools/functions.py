"""Python functions as tools: called with checked arguments, within a time, so many at once. One source of tools.

A function that is not `async` runs on a thread; when it takes too long nobody waits for it any more, but a thread
cannot be stopped: the outcome is then unknown, and is said to be.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import anyio
import anyio.to_thread
import structlog
from pydantic import ValidationError

from paddock.ports.places import Places
from paddock.ports.tools import ToolAnswer, ToolInfo, ToolUse
from paddock.rules.errors import HostError
from paddock.tools.answers import NotJsonError, failed, given
from paddock.tools.signatures import Signature
from paddock_sdk.causes import cause_of

log = structlog.get_logger("paddock.tools")

MAX_AT_ONCE = 32
"""Calls of functions at once on this host; more wait their turn, within their own time."""
EACH = 24
"""Of them, calls of one workspace, so that the next one finds a thread at once."""
WAITING, WAITING_IN_ALL = 256, 2048


class FunctionTool:
    """One function and what it takes."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.info = signature.info
        self.signature = signature
        self._function = function
        self._is_async = inspect.iscoroutinefunction(function)

    async def run(self, arguments: dict[str, Any], threads: anyio.CapacityLimiter) -> ToolAnswer:
        if self._is_async:
            async with threads:
                return await self._awaited(arguments)
        return await anyio.to_thread.run_sync(self._on_thread, arguments, abandon_on_cancel=True, limiter=threads)

    async def _awaited(self, arguments: dict[str, Any]) -> ToolAnswer:
        try:
            return given(await self._function(**arguments))
        except SystemExit as error:
            raise RuntimeError("the tool tried to end the program") from error

    def _on_thread(self, arguments: dict[str, Any]) -> ToolAnswer:
        try:
            return given(self._function(**arguments))
        except SystemExit as error:  # it must not end the host
            raise RuntimeError("the tool tried to end the program") from error


class FunctionTools:
    """Functions by name. The `Tools` port."""

    def __init__(
        self, tools: Sequence[FunctionTool], *, clock: Callable[[], float], timeout_seconds: float = 60.0
    ) -> None:
        self._tools = {tool.info.name: tool for tool in tools}
        self._clock = clock
        self._timeout = timeout_seconds
        self._threads: anyio.CapacityLimiter | None = None
        self._places = Places(MAX_AT_ONCE, each=EACH, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._earlier: dict[str, Mapping[str, FunctionTool]] = {}
        """Runs that began with other functions, and those."""

    def take(self, tools: Sequence[FunctionTool], live: Iterable[str] = ()) -> None:
        """These are the tools from now on; calls under way go on, and runs that are live keep those they began with."""
        self._earlier = {run_id: self._earlier.get(run_id, self._tools) for run_id in live}
        self._tools = {tool.info.name: tool for tool in tools}

    def list(self, workspace: str) -> Sequence[ToolInfo]:  # noqa: ARG002 - the same for every workspace
        return [tool.info for tool in self._tools.values()]

    def find(self, workspace: str, name: str) -> ToolInfo | None:  # noqa: ARG002 - as above
        every = (self._tools, *self._earlier.values())  # who may call one that is gone is in the grants
        tool = next((known[name] for known in every if name in known), None)
        return tool.info if tool else None

    async def call(self, use: ToolUse) -> ToolAnswer:
        tool = self._earlier.get(use.run_id, self._tools).get(use.name) or self._tools[use.name]
        try:
            arguments = tool.signature.read(use.parameters)
        except ValidationError as error:
            return failed(tool.signature.complaint(error))
        seconds = max(0.0, min(self._timeout, use.deadline_at - self._clock()))
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._places.enter(use.workspace_id)
        except TimeoutError:
            return failed(f"{use.name}: its turn did not come within {seconds:.3g} seconds; it was not called")
        except HostError as error:
            return failed(f"{use.name}: {error.message}")
        try:
            return await self._call_now(tool, use, arguments, until=limit.when(), seconds=seconds)
        finally:
            self._places.leave(use.workspace_id)

    async def _call_now(
        self, tool: FunctionTool, use: ToolUse, arguments: dict[str, Any], *, until: float | None, seconds: float
    ) -> ToolAnswer:
        """`seconds` is the whole time of the call, `until` its end on the clock of the event loop."""
        try:
            async with asyncio.timeout_at(until):
                return await tool.run(arguments, self._limiter())
        except TimeoutError:
            return failed(
                f"{use.name} did not answer within {seconds:.3g} seconds; whether it did its work is not known",
                unknown=True,
            )
        except HostError as error:
            return failed(f"{use.name}: {error.message}")
        except NotJsonError as error:
            return failed(f"{use.name}: {error}")
        except Exception as error:
            log.warning("a tool raised", action="tools.call", tool=use.name, run_id=use.run_id, exc_info=error)
            return failed(f"{use.name} failed: {cause_of(error)}")

    def _limiter(self) -> anyio.CapacityLimiter:
        """Made where the loop runs."""
        self._threads = self._threads or anyio.CapacityLimiter(MAX_AT_ONCE)
        return self._threads
