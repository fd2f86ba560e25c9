"""Which facts of the log are events for a runner, and how each is told. Pure.

Told are inputs, what agents said and did, how runs ended and who joined or left. Kept back are the machinery (acks,
queues, dispatches with their grants, pieces of messages) and the values of state, which belong to one agent alone.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from paddock.rules.chain import ERASED, StoredFact
from paddock.rules.outputs import as_object, text_of
from paddock.rules.values import Value
from paddock_sdk.protocol.history import AgentEventRecord

INLINE_BYTES = 8192
"""Data up to this rides along in `metadata.data`; more is behind `raw_ref`. A page of 100 then fits a frame."""
SUMMARY_CHARS = 1000

INPUT, OUTPUT = "message.received", "AGENT_OUTPUT:MESSAGE"
EVENT_TYPES: Final[Mapping[str, str]] = {
    "USER_INPUT": INPUT,
    "USER_INPUT:MENTION": INPUT,
    OUTPUT: "",
    "AGENT_OUTPUT:FINAL": "run.completed",
    "ERROR:RUN_FAILED": "run.failed",
    "ERROR:ROUTE_TIMEOUT": "run.failed",
    "ERROR:AGENT_NOT_IN_SESSION": "run.failed",
    "EVENT:CANCELED": "run.cancelled",
    "CONTROL:SESSION_OPENED": "session.opened",
    "CONTROL:SESSION_CLOSED": "session.closed",
    "CONTROL:SWITCH_AGENT": "session.agent_switched",
    "EVENT:AGENT_ADDED": "session.agent_added",
    "EVENT:AGENT_REMOVED": "session.agent_removed",
    "CONTROL:HANDOVER_REQUEST": "handover.requested",
    "CONTROL:HANDOVER_CONFIRM": "handover.confirmed",
    "CONTROL:HANDOVER_REJECT": "handover.rejected",
    "CONTROL:HANDOVER_ACCEPTED": "handover.accepted",
}
"""Kind of fact to type of event. An output is named by its own type."""
KINDS: Final = tuple(EVENT_TYPES)

_PLACE = re.compile(r"e[0-9a-f]{1,15}", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_encode = msgspec.json.Encoder().encode


class Told(Value, frozen=True):
    """One fact as an event: its type, who did it, what it is about in one line, and its data."""

    event_type: str
    source: str
    summary: str | None
    data: Mapping[str, Any]


def event_id_of(session_id: str, seq: int) -> str:
    return f"{session_id}.{seq}"


def number_in(session_id: str, event_id: str) -> int | None:
    """The number of an event of this very session; None for every other id."""
    prefix = f"{session_id}."
    number = event_id[len(prefix) :] if event_id.startswith(prefix) else ""
    return int(number) if _NUMBER.fullmatch(number) else None


def raw_ref_of(session_id: str, seq: int) -> str:
    return f"raw_{event_id_of(session_id, seq)}"


def number_of_raw(session_id: str, ref: str) -> int | None:
    return number_in(session_id, ref[4:]) if ref.startswith("raw_") else None


def cursor_at(position: int) -> str:
    return f"e{position:x}"


def position_of(cursor: str) -> int | None:
    return int(cursor[1:], 16) if _PLACE.fullmatch(cursor) else None


def told(fact: StoredFact) -> Told | None:
    """A fact as an event, or None when it is none of a runner's business."""
    name = EVENT_TYPES.get(fact.kind)
    if name is None or fact.target == "AGENT":
        return None
    payload = as_object(fact.read_payload())
    if name == INPUT:
        return _input(payload)
    if fact.kind == OUTPUT:
        return _output(payload)
    data = as_object(payload.get("data")) if "type" in payload else payload
    summary = data.get("message") if name == "run.failed" else None
    return Told(name, "system", summary if isinstance(summary, str) else None, data)


def _input(payload: Mapping[str, object]) -> Told:
    about = as_object(payload.get("run"))
    message = as_object(payload.get("message"))
    text = payload.get("text")
    data = {"message": message} if message else {}
    kind, source = about.get("event_type") or INPUT, about.get("source") or "api"
    return Told(str(kind), str(source), text if isinstance(text, str) else None, data)


def _output(payload: Mapping[str, object]) -> Told:
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
    return Told(name, "runner", summary if isinstance(summary, str) else None, data)


def raw_bytes(event: Told) -> bytes:
    return _encode(event.data)


def record(fact: StoredFact, event: Told, session_id: str, workspace_id: str) -> AgentEventRecord:
    """The event as a runner gets it: never a large payload, always where to read one."""
    who, _, name = fact.sender.partition(":")
    raw = raw_bytes(event)
    large = len(raw) > INLINE_BYTES
    ref = raw_ref_of(session_id, fact.seq) if large else None
    metadata: dict[str, Any] = {"run_id": fact.turn_id} if fact.turn_id else {}
    if fact.payload.startswith(ERASED):
        metadata["erased"] = True
    elif not large:
        metadata["data"] = dict(event.data)
    return AgentEventRecord(
        event_id=event_id_of(session_id, fact.seq),
        event_type=event.event_type,
        event_time=fact.time,
        source=event.source,
        bot_id=name if who == "agent" else None,
        workspace_id=workspace_id,
        conversation_id=session_id,
        actor_type=who,
        actor_id=name or None,
        input_summary=None if event.summary is None else event.summary[:SUMMARY_CHARS],
        input_ref=ref if event.source not in {"runner", "system"} else None,
        raw_ref=ref,
        seq=fact.seq,
        cursor=cursor_at(fact.position),
        created_at=fact.time,
        metadata=metadata,
    )
