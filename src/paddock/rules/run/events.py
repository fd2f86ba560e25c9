"""The event a run answers: who did what, about what, and where an answer goes. Pure.

A plain message of a session's user is the usual case and needs none of this. Doors fill it in from what they have
authenticated; nothing in it may be taken over from a client unchecked.
"""

from collections.abc import Mapping
from typing import Any

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
    """What happened, in the protocol's words. The mappings have the shape of the run context's parts."""

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
    """Whether its data are too much for a run's context."""
    return event is not None and len(_encode(event.data)) > MAX_INLINE_DATA


def to_payload(event: RunEvent | None) -> Mapping[str, Any]:
    """What is recorded of it with the input; nothing of a plain message."""
    return {} if event is None else {"event": msgspec.to_builtins(event)}


def from_payload(about: Mapping[str, Any]) -> RunEvent | None:
    known = about.get("event")
    return None if known is None else msgspec.convert(known, RunEvent)


def is_message(event_type: str) -> bool:
    """Whether the event is somebody's words to the agent, and so an item of the conversation as theirs."""
    return event_type == MESSAGE


def is_of_the_user(event_type: str) -> bool:
    """Whether it was the session's user who did it, by talking or by answering."""
    return event_type in (MESSAGE, CONTINUED)


def actor_of(event: RunEvent | None, user_id: str, source: str) -> Mapping[str, Any]:
    """Who did it: the user, unless the event says who; what nobody did was done by the system."""
    if event is None or (event.actor is None and is_of_the_user(event.event_type)):
        return {"actor_type": "user", "actor_id": user_id}
    return event.actor or {"actor_type": "system", "actor_id": source}


def subject_of(event: RunEvent | None, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What it is about: the message itself, unless the event says what."""
    if event is None or (event.subject is None and is_message(event.event_type)):
        return {"subject_type": "message", "subject_id": message.get("id")}
    return event.subject
