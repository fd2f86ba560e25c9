"""One answer of a model, piece by piece: its words become deltas, and its tool calls, usage and end are kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock_runners.toolkit.transcript import Said, call_message
from paddock_sdk import HostApi, Results, delta
from paddock_sdk.protocol.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Asked:
    """Parameters of a question to a model besides its messages."""

    model_id: str
    tools: Sequence[Mapping[str, Any]] = ()
    extra_args: Mapping[str, Any] | None = None
    streams: bool = True


@dataclass(slots=True)
class Called:
    """A tool the model wants called. `arguments` is the text it wrote, good or bad."""

    call_id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Reply:
    """The model's reply so far."""

    text: str = ""
    calls: list[Called] = field(default_factory=list[Called])
    usage: dict[str, int] = field(default_factory=dict[str, int])
    extras: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def was_cut(self) -> bool:
        return self.extras.get("finish_reason") == "length" and not self.calls

    def as_message(self) -> Said:
        said: Said = {"role": "assistant", "content": self.text}
        if self.calls:
            said["tool_calls"] = [call_message(one.call_id, one.name, one.arguments) for one in self.calls]
        kept = {key: value for key, value in self.extras.items() if key != "finish_reason"}
        if kept:
            said["provider_specific_fields"] = kept
        return said


async def speak(api: HostApi, asked: Asked, messages: Sequence[Said], reply: Reply) -> Results:
    """Ask, and say every piece as it comes. What is known at the end is in `reply`. Raises HostCallError."""
    if not asked.streams:
        whole = await api.models.invoke(asked.model_id, messages, asked.tools or None, asked.extra_args)
        _take(reply, whole.message)
        _count(reply, whole.usage)
        if reply.text:
            yield delta(reply.text)
        return
    async for piece in api.models.stream(asked.model_id, messages, asked.tools or None, asked.extra_args):
        if piece.chunk is not None:
            text = piece.chunk.text
            _take(reply, piece.chunk)
            if text:
                yield delta(text)
        _count(reply, piece.usage)


def _take(reply: Reply, said: Message) -> None:
    reply.text += said.text
    if said.tool_calls:
        reply.calls += [_called(call) for call in said.tool_calls]
    extras = said.provider_specific_fields
    if not extras:
        return
    if isinstance(thought := extras.get("reasoning_content"), str) and "reasoning_content" in reply.extras:
        extras = {**extras, "reasoning_content": reply.extras["reasoning_content"] + thought}
    reply.extras |= extras


def _called(call: ToolCall) -> Called:
    return Called(call.id, call.function.name, call.function.arguments)


def _count(reply: Reply, usage: Any) -> None:
    if usage is not None:
        reply.usage = usage.to_wire()


def added(total: dict[str, int], more: Mapping[str, int]) -> None:
    """Add one answer's usage to a run's. What was never counted stays absent."""
    for name, count in more.items():
        if type(count) is int:
            total[name] = total.get(name, 0) + count


def unique(calls: Sequence[Called], seen: set[str]) -> None:
    """Some models number their calls afresh in every answer; within a run each needs a name of its own."""
    for call in calls:
        call_id, number = call.call_id or "call", 1
        while call_id in seen:
            number += 1
            call_id = f"{call.call_id or 'call'}-{number}"
        seen.add(call_id)
        call.call_id = call_id
