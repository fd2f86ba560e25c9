"""Tools called for a model: at once, in order, each with an answer the model can read. Never an exception but for the
run's own end.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from paddock_runners.toolkit.replies import Called
from paddock_runners.toolkit.transcript import Said, result_message
from paddock_sdk import HostApi, HostCallError, Results, tool_completed, tool_started
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED
from paddock_sdk.protocol.resources import ToolResource

AT_ONCE = 8
"""Tools of one answer that work at the same time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    result: Any = None
    error: str | None = None
    artifact: Mapping[str, Any] | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """As the transcript will tell it later."""
        return {"result": self.result, "error": self.error, "artifact": self.artifact}


OwnTool = Callable[[dict[str, Any]], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as the model is shown it, and who answers it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    own: OwnTool | None = None
    """Done by the runner itself; else by the host."""
    by_client: bool = False

    def shown(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def granted_tools(tools: Sequence[ToolResource]) -> list[Offer]:
    """The host's tools that may be called, and the client's own."""
    return [
        Offer(
            tool.tool_name,
            tool.description or tool.tool_name,
            tool.parameters or NO_PARAMETERS,
            by_client=tool.tool_type == "frontend",
        )
        for tool in tools
        if tool.tool_type == "frontend" or "call" in tool.operations
    ]


class Toolbox:
    """The tools of one run. Of two with one name the first counts."""

    def __init__(self, api: HostApi, offers: Sequence[Offer]) -> None:
        self._api = api
        self._offers: dict[str, Offer] = {}
        for offer in offers:
            self._offers.setdefault(offer.name, offer)

    @property
    def shown(self) -> list[dict[str, Any]]:
        return [offer.shown() for offer in self._offers.values()]

    def by_client(self, call: Called) -> bool:
        offer = self._offers.get(call.name)
        return offer is not None and offer.by_client

    async def perform(self, calls: Sequence[Called], messages: list[Said]) -> Results:
        """Say that they are called, call them, say what came back; `messages` gets one result for each, in order."""
        for call in calls:
            yield started(call)
        gate = asyncio.Semaphore(AT_ONCE)
        tasks = [asyncio.ensure_future(self._one(call, gate)) for call in calls]
        try:
            for call, task in zip(calls, tasks, strict=True):
                outcome = await task
                messages.append(result_message(call.call_id, outcome.about))
                yield finished(call, outcome)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, call: Called, gate: asyncio.Semaphore) -> Outcome:
        offer = self._offers.get(call.name)
        if offer is None:
            return Outcome(error=f"there is no tool {call.name!r}; there are: {', '.join(self._offers) or 'none'}")
        try:
            arguments = arguments_of(call)
        except ValueError as problem:
            return Outcome(error=f"the arguments of {call.name} are no JSON object ({problem}); write them again")
        async with gate:
            return await (offer.own(arguments) if offer.own is not None else self._ask_host(call.name, arguments))

    async def _ask_host(self, name: str, arguments: dict[str, Any]) -> Outcome:
        try:
            said = await self._api.tools.call(name, arguments)
        except HostCallError as error:
            if error.code == DEADLINE_EXCEEDED:
                raise
            return Outcome(error=error.error.message)
        if said.is_error:
            return Outcome(error=_error_text(said.result))
        return Outcome(said.result, artifact=said.artifact.to_wire() if said.artifact else None)


def started(call: Called) -> Any:
    """Result that shows a call to people; arguments that are no object are shown as text."""
    try:
        return tool_started(call.call_id, call.name, arguments_of(call))
    except ValueError:
        return tool_started(call.call_id, call.name, {"arguments": call.arguments})


def finished(call: Called, outcome: Outcome) -> Any:
    return tool_completed(
        call.call_id, call.name, result=outcome.result, artifact=outcome.artifact, error=outcome.error
    )


def arguments_of(call: Called) -> dict[str, Any]:
    """Raises ValueError."""
    read = json.loads(call.arguments or "{}")
    if not isinstance(read, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one kind of problem for the caller
    return cast("dict[str, Any]", read)


def _error_text(result: object) -> str:
    if isinstance(result, dict) and "error" in result:
        return str(cast("dict[str, Any]", result)["error"])
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
