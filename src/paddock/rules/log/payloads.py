"""Payloads of facts: the event that an input reports, and the words of a message. Pure.

A plain message of a session's user is the usual input and has no event. Doors fill an event in from what they have
authenticated; nothing in it may be taken over from a client unchecked. What runners sent is read leniently.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from paddock.rules.values import Value, nothing

_encode = msgspec.json.Encoder().encode

MESSAGE = "message.received"
SCHEDULE = "schedule.triggered"
HANDOVER = "handover.received"
CONTINUED = "conversation.continued"
"""The user's client answered what the last run left open, and nobody said anything: the agent goes on."""
MEMBER_JOINED = "group.member_joined"


MAX_INLINE_DATA = 32 * 1024
"""Bytes of an event's data that ride along in a run's context; more is read by its `raw_ref`."""


class RunEvent(Value, frozen=True, omit_defaults=True):
    """An event in the protocol's words. The mappings have the shape of the run context's parts."""

    event_type: str = MESSAGE
    event_time: float | None = None
    """When it happened; when it was accepted if nobody said."""
    source_event_type: str | None = None
    raw_ref: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = nothing
    actor: Mapping[str, Any] | None = None
    subject: Mapping[str, Any] | None = None
    delivery: Mapping[str, Any] | None = None
    subthread_id: str | None = msgspec.field(default=None, name="thread_id")
    """The platform's thread inside the conversation; on record under the name it has on the wire."""
    launcher_type: str | None = None
    launcher_id: str | None = None
    tools: tuple[str, ...] | None = None
    """Of its agent's tools only these, when something that asks says so; it can only take away."""


def is_large(event: RunEvent | None) -> bool:
    return event is not None and len(_encode(event.data)) > MAX_INLINE_DATA


def to_payload(event: RunEvent | None) -> Mapping[str, Any]:
    """Encode the event for the record of the input; empty for a plain message."""
    return {} if event is None else {"event": msgspec.to_builtins(event)}


def from_payload(about: Mapping[str, Any]) -> RunEvent | None:
    known = about.get("event")
    return None if known is None else msgspec.convert(known, RunEvent)


def is_message(event_type: str) -> bool:
    """Return true if the event is a message to the agent, and so an item of the conversation."""
    return event_type == MESSAGE


def is_of_the_user(event_type: str) -> bool:
    """Return true if the session's user caused it, by writing or by answering."""
    return event_type in (MESSAGE, CONTINUED)


PLATFORM = "platform"
"""The source of events where more than one person may speak."""
UNNAMED: Mapping[str, Any] = {"named": False}
"""Metadata of an actor where the platform did not say who it was."""


def actor_of(event: RunEvent | None, user_id: str, source: str) -> Mapping[str, Any]:
    """Return the actor: the event's own, else the user for messages and answers, else the system."""
    if event is not None and event.actor:
        return event.actor
    theirs = event is None or is_of_the_user(event.event_type)
    kind, name = ("user", user_id) if theirs else ("system", source)
    actor = {"actor_type": kind, "actor_id": name}
    return actor if source != PLATFORM else {**actor, "metadata": UNNAMED}


def subject_of(event: RunEvent | None, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the subject: the event's own, else the message itself."""
    if event is None or (event.subject is None and is_message(event.event_type)):
        return {"subject_type": "message", "subject_id": message.get("id")}
    return event.subject


def text_of(content: object) -> str:
    """The words of a message's content: a string, or the text elements of a list."""
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return "".join(_text_part(part) for part in parts)


def _text_part(part: object) -> str:
    element = as_object(part)
    text = element.get("text") if element.get("type") == "text" else None
    return text if isinstance(text, str) else ""


def as_object(value: Any) -> Mapping[str, object]:
    """A JSON object, or an empty one: what a runner sends may be anything."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - a cast is a call


def delta_text(data: Mapping[str, Any]) -> str:
    return text_of(as_object(data.get("chunk")).get("content"))


def a_delta(text: str) -> dict[str, Any]:
    return {"type": "message.delta", "data": {"chunk": {"role": "assistant", "content": text}}}
