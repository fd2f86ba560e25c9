"""The event a run answers: who did what, about what, and where an answer goes. Pure.

A plain message of a session's user is the usual case and needs none of this. Doors fill it in from what they have
authenticated; nothing in it may be taken over from a client unchecked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.rules.agents.resources import matches
from paddock.rules.errors import ErrorCode, HostError
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
    """Return true if the event's data are too large for a run's context."""
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


def actor_of(event: RunEvent | None, user_id: str, source: str) -> Mapping[str, Any]:
    """Return the actor: the event's own, else the user for messages and answers, else the system."""
    if event is None or (event.actor is None and is_of_the_user(event.event_type)):
        return {"actor_type": "user", "actor_id": user_id}
    return event.actor or {"actor_type": "system", "actor_id": source}


def subject_of(event: RunEvent | None, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the subject: the event's own, else the message itself."""
    if event is None or (event.subject is None and is_message(event.event_type)):
        return {"subject_type": "message", "subject_id": message.get("id")}
    return event.subject


Rules = Mapping[str, Sequence[str]]
"""Agent to the event types it answers; a type may end in `*`."""


def answers(patterns: Sequence[str], event_type: str) -> bool:
    return any(matches(pattern, event_type) for pattern in patterns)


def answering(event_type: str, rules: Rules, addressed: str | None = None) -> str:
    """The one agent that answers. Raises HostError with a sentence that says which rules to change.

    An event may be addressed to an agent; then it is that one's, if it answers such events at all.
    """
    if addressed is not None:
        if not answers(rules.get(addressed, ()), event_type):
            text = f"agent {addressed!r} does not answer {event_type}; add it to its events"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        return addressed
    found = sorted(agent_id for agent_id, patterns in rules.items() if answers(patterns, event_type))
    if not found:
        raise HostError(ErrorCode.NOT_FOUND, f"no agent answers {event_type}; add it to the events of one")
    if len(found) > 1:
        text = f"{len(found)} agents answer {event_type} ({', '.join(found)}); leave it to exactly one of them"
        raise HostError(ErrorCode.CONFLICT, text)
    return found[0]
