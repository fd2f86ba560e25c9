"""Facts of the log as events for a runner, and the cursors and ids by which runners name places in it. Pure.

Told are inputs and whatever else a platform or a schedule reported, what agents said and did, who took over from whom,
how runs ended and who joined or left; and, beside the log, the host's calls of tools and what was to be delivered to a
platform. Kept back are the machinery (acks, queues, dispatches with their grants, pieces of messages) and the values of
state, which belong to one agent alone.

A cursor says which conversation and which of its threads it is of, and a check goes with it: one of elsewhere, or one
that nobody was given, names no place. It opens nothing that a run may not read anyhow, so nothing in it is secret.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from paddock.rules.access.permissions import RunScope
from paddock.rules.log.chain import ERASED, StoredFact
from paddock.rules.log.payloads import (
    CONTINUED,
    HANDOVER,
    MESSAGE,
    RunEvent,
    actor_of,
    as_object,
    from_payload,
    subject_of,
    text_of,
)
from paddock.rules.rows.calls import PlacedCall
from paddock.rules.rows.deliveries import PARTS, DeliveryRow
from paddock.rules.rows.rows import View
from paddock.rules.values import Value, nothing, replace
from paddock_sdk.protocol.history import AgentEventRecord
from paddock_sdk.protocol.results import KNOWN_RESULTS

CHECK_BYTES = 6
MAX_CURSOR = 128
MAX_SEQ, MAX_NUMBER = 1 << 52, 1 << 62
ALL_SUBTHREADS = "*"


class Place(Value, frozen=True):
    """Before the fact of this number; or, of what happened after it and has no number, before one of these."""

    seq: int
    as_of: int | None = None
    """What a page that begins here shows is as it was when this fact was recorded."""
    after: int = 0
    """0 for the fact itself; else which kind of thing that follows it."""
    number: int = 0
    """Which of that kind."""


def cursor_of(place: Place, session_id: str, view: View) -> str:
    numbers = (place.seq, place.as_of or 0, place.after, place.number)
    body = ".".join(f"{number:x}" for number in numbers).encode()
    return urlsafe_b64encode(_check(body, session_id, view) + body).decode().rstrip("=")


def place_of(cursor: str, session_id: str, view: View) -> Place | None:
    """The place a cursor names in this part of a conversation; None when it was never given out for it."""
    if len(cursor) > MAX_CURSOR or not cursor.isascii():
        return None
    try:
        whole = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        check, body = whole[:CHECK_BYTES], whole[CHECK_BYTES:]
        numbers = [int(number, 16) for number in body.decode("ascii").split(".")]
    except ValueError:
        return None
    if check != _check(body, session_id, view) or len(numbers) != 4:
        return None
    if max(numbers) > MAX_NUMBER or numbers[0] > MAX_SEQ:
        return None
    seq, as_of, after, number = numbers
    return Place(seq, as_of or None, after, number)


def _check(body: bytes, session_id: str, view: View) -> bytes:
    of = ALL_SUBTHREADS if view.all_subthreads else f"={view.subthread_id}" if view.subthread_id is not None else ""
    where = f"{session_id}\0{of}\0".encode(errors="surrogatepass")
    return blake2b(where + body, digest_size=CHECK_BYTES, person=b"paddock cursor").digest()


INLINE_BYTES = 8192
"""Data up to this rides along in `metadata.data`; more is behind `raw_ref`. A page of 100 then fits a frame."""
SUMMARY_CHARS = 1000

OUTPUT, HANDED_OVER = "AGENT_OUTPUT:MESSAGE", "CONTROL:HANDOVER_CONTEXT"
EVENT_TYPES: Final[Mapping[str, str]] = {
    "USER_INPUT": MESSAGE,
    "USER_INPUT:MENTION": MESSAGE,
    OUTPUT: "",
    "AGENT_OUTPUT:FINAL": "run.completed",
    "ERROR:RUN_FAILED": "run.failed",
    "ERROR:ROUTE_TIMEOUT": "run.failed",
    "ERROR:AGENT_NOT_IN_SESSION": "run.failed",
    "EVENT:CANCELED": "run.cancelled",
    "EVENT:TURN_STEERED": "run.steered",
    "CONTROL:SESSION_OPENED": "session.opened",
    "CONTROL:SESSION_CLOSED": "session.closed",
    "CONTROL:SWITCH_AGENT": "session.agent_switched",
    "EVENT:AGENT_ADDED": "session.agent_added",
    "EVENT:AGENT_REMOVED": "session.agent_removed",
    "CONTROL:HANDOVER_REQUEST": "handover.requested",
    "CONTROL:HANDOVER_CONFIRM": "handover.confirmed",
    "CONTROL:HANDOVER_REJECT": "handover.rejected",
    HANDED_OVER: HANDOVER,
    "CONTROL:HANDOVER_ACCEPTED": "handover.accepted",
    "ERROR:ADD_AGENT_FAILED": "session.agent_not_added",
    "ERROR:REMOVE_AGENT_FAILED": "session.agent_not_removed",
}
"""Kind of fact to type of event. An output is named by its own type, an input by what happened."""
KINDS: Final = tuple(EVENT_TYPES)

TOOL_CALLED, DELIVERY_MADE = "tool.called", "delivery.made"
HOST_EVENTS: Final = {*EVENT_TYPES.values(), *KNOWN_RESULTS, CONTINUED, TOOL_CALLED, DELIVERY_MADE} - {"", MESSAGE}
"""Events that only the host makes: what it did, what agents said, what became of runs and sessions."""
CALL, DELIVERY, RAW = "call.", "delivery.", "raw_"
"""How the ids of events begin that are beside the log, after their session; and how references to data begin."""
CALLS, DELIVERIES = 1, 2
"""What stands after a fact, in this order."""
OUR_SOURCES = frozenset({"runner", "system", "host"})
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_encode = msgspec.json.Encoder().encode


class EventContent(Value, frozen=True):
    """One fact as an event: its type, who did it, what it is about, what it is in one line, and its data."""

    event_type: str
    source: str
    summary: str | None
    data: Mapping[str, Any]
    actor: Mapping[str, Any] = nothing
    subject: Mapping[str, Any] = nothing
    event_time: float | None = None
    """When it happened, where that is not when it was recorded."""
    source_event_type: str | None = None
    given: RunEvent | None = None
    """The event as its door took it in."""


class PlacedEvent(Value, frozen=True):
    """One event of a conversation, wherever it is on record, and where it stands there."""

    event_id: str
    place: Place
    """Of a fact its position; of what is beside the log the fact after which it stands."""
    seq: int
    run_id: str | None
    time: float
    told: EventContent
    erased: bool = False

    @property
    def order(self) -> tuple[int, int, int]:
        return self.place.seq, self.place.after, self.place.number


def event_id_of(session_id: str, seq: int) -> str:
    return f"{session_id}.{seq}"


def number_in(session_id: str, event_id: str) -> int | None:
    """The number of an event of this very session; None for every other id."""
    number = _within(session_id, event_id)
    return int(number) if number is not None and _NUMBER.fullmatch(number) else None


def call_in(session_id: str, event_id: str) -> str | None:
    """The id of the call of a tool that an event of this session stands for."""
    return _named(CALL, session_id, event_id)


def delivery_in(session_id: str, event_id: str) -> str | None:
    return _named(DELIVERY, session_id, event_id)


def _within(session_id: str, event_id: str) -> str | None:
    prefix = f"{session_id}."
    return event_id[len(prefix) :] if event_id.startswith(prefix) else None


def _named(kind: str, session_id: str, event_id: str) -> str | None:
    within = _within(session_id, event_id)
    return within[len(kind) :] if within is not None and within.startswith(kind) else None


def raw_ref_of(session_id: str, seq: int) -> str:
    return f"{RAW}{event_id_of(session_id, seq)}"


def event_of_raw(ref: str) -> str | None:
    return ref[len(RAW) :] if ref.startswith(RAW) else None


def of_fact(fact: StoredFact, session_id: str) -> PlacedEvent | None:
    event = told(fact)
    if event is None:
        return None
    erased = fact.payload.startswith(ERASED)
    event_id = event_id_of(session_id, fact.seq)
    return PlacedEvent(event_id, Place(fact.position), fact.seq, fact.turn_id, fact.time, event, erased)


def of_call(call: PlacedCall, agent_id: str) -> PlacedEvent:
    """A call of a tool by the host. What was given to it and what came back is told to the agent that made the call."""
    row = call.row
    data: dict[str, Any] = {
        "call_id": row.call_id,
        "tool_name": row.tool_name,
        "status": row.status,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }
    erased = not row.parameters
    if row.agent_id == agent_id and not erased:
        data |= {"parameters": msgspec.Raw(row.parameters), "artifact_id": row.artifact_id}
        data["result"] = msgspec.Raw(row.result) if row.result else None
    event = EventContent(
        TOOL_CALLED,
        "host",
        row.tool_name,
        msgspec.json.decode(_encode(data)),
        {"actor_type": "agent", "actor_id": row.agent_id},
        {"subject_type": "tool", "subject_id": row.tool_name},
    )
    event_id = f"{row.session_id}.{CALL}{row.call_id}"
    return PlacedEvent(
        event_id, Place(call.after, None, CALLS, call.number), call.after, row.run_id, row.started_at, event, erased
    )


def of_delivery(row: DeliveryRow) -> PlacedEvent:
    """Something to be delivered to a platform, and what became of it. What it says is the event that it is about."""
    seq = row.number // PARTS
    body = as_object(msgspec.json.decode(row.body))
    data = {
        "platform": row.platform,
        "status": row.status,
        "attempts": row.attempts,
        "part": body.get("part"),
        "parts": body.get("parts"),
        "ended_at": row.ended_at,
    }
    event = EventContent(
        DELIVERY_MADE,
        "host",
        None,
        {name: value for name, value in data.items() if value is not None},
        {"actor_type": "agent", "actor_id": body.get("agent_id")},
        {"subject_type": "event", "subject_id": event_id_of(row.session_id, seq)},
        source_event_type=str(body.get("type")),
    )
    event_id = f"{row.session_id}.{DELIVERY}{row.delivery_id}"
    return PlacedEvent(event_id, Place(seq, None, DELIVERIES, row.number), seq, row.run_id, row.created_at, event)


def told(fact: StoredFact) -> EventContent | None:
    """A fact as an event, or None when it is none of a runner's business."""
    name = EVENT_TYPES.get(fact.kind)
    if name is None or (fact.target == "AGENT" and fact.kind != HANDED_OVER):
        return None
    payload = as_object(fact.read_payload())
    if name == MESSAGE:
        return _input(payload)
    if fact.kind == OUTPUT:
        return replace(_output(payload), actor=_sender(fact))
    if fact.kind == HANDED_OVER:
        payload = handover_data(payload)
    data = as_object(payload.get("data")) if "type" in payload else payload
    summary = data.get("message") if name == "run.failed" else data.get("reason") if name == HANDOVER else None
    return EventContent(name, "system", summary if isinstance(summary, str) else None, data, _sender(fact))


def _sender(fact: StoredFact) -> Mapping[str, Any]:
    who, _, name = fact.sender.partition(":")
    return {"actor_type": who, "actor_id": name or None}


def handover_data(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "from_agent_id": payload["from_agent_id"],
        "parent_run_id": payload["parent_turn_id"],
        "reason": payload["reason"],
        "summary": payload["summary"],
    }


def _input(payload: Mapping[str, Any]) -> EventContent:
    about, message = as_object(payload.get("run")), as_object(payload.get("message"))
    event, text = from_payload(about) or RunEvent(), payload.get("text")
    source = str(about.get("source") or "api")
    return EventContent(
        event.event_type,
        source,
        text if isinstance(text, str) else None,
        input_data(event, message),
        actor_of(event, str(about.get("user_id")), source),
        subject_of(event, message) or {},
        event.event_time,
        event.source_event_type,
        event,
    )


def input_data(event: RunEvent, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Join the data that a platform or a schedule reported with the message that came along."""
    return {"message": message, **event.data} if message else event.data


def _output(payload: Mapping[str, object]) -> EventContent:
    name, data = str(payload.get("type") or "message.completed"), as_object(payload.get("data"))
    match name:
        case "message.completed":
            summary: object = text_of(as_object(data.get("message")).get("content"))
        case "tool.call.started" | "tool.call.completed":
            summary = data.get("tool_name")
        case "state.updated":
            data = {key: data.get(key) for key in ("scope", "key")}
            summary = data["key"]
        case _:
            summary = data.get("name") or data.get("action")
    return EventContent(name, "runner", summary if isinstance(summary, str) else None, data)


def raw_bytes(event: EventContent) -> bytes:
    return _encode(event.data)


def record(happened: PlacedEvent, at: RunScope, cursor: str) -> AgentEventRecord:
    """The event as a run gets it: never a large payload, always where to read one."""
    event = happened.told
    raw = raw_bytes(event)
    large = len(raw) > INLINE_BYTES
    ref = f"{RAW}{happened.event_id}" if large else None
    metadata: dict[str, Any] = {"run_id": happened.run_id} if happened.run_id else {}
    if happened.erased:
        metadata["erased"] = True
    elif not large:
        metadata["data"] = dict(event.data)
    actor, subject = event.actor, event.subject
    return AgentEventRecord(
        event_id=happened.event_id,
        event_type=event.event_type,
        event_time=happened.time if event.event_time is None else event.event_time,
        source=event.source,
        source_event_type=event.source_event_type,
        bot_id=actor.get("actor_id") if actor.get("actor_type") == "agent" else None,
        workspace_id=at.workspace_id,
        conversation_id=at.session_id,
        thread_id=at.subthread_id if happened.run_id else None,
        actor_type=actor.get("actor_type"),
        actor_id=actor.get("actor_id"),
        actor_name=actor.get("actor_name"),
        subject_type=subject.get("subject_type"),
        subject_id=subject.get("subject_id"),
        input_summary=None if event.summary is None else event.summary[:SUMMARY_CHARS],
        input_ref=ref if event.source not in OUR_SOURCES else None,
        raw_ref=ref,
        seq=happened.seq,
        cursor=cursor,
        created_at=happened.time,
        metadata=metadata,
    )
