"""The words of a session: which (event, subtype) pairs exist, and what one recorded fact holds.

A fact is a bus message that happened. Facts are the only thing the log stores; everything else is computed from them.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, Literal, get_args

from paddock.rules.values import Value, nothing


class Event(StrEnum):
    USER_INPUT = "USER_INPUT"
    AGENT_OUTPUT = "AGENT_OUTPUT"
    CONTROL = "CONTROL"
    EVENT = "EVENT"
    ERROR = "ERROR"


class Target(StrEnum):
    SYSTEM = "SYSTEM"
    AGENT = "AGENT"
    FRONTEND = "FRONTEND"
    BROADCAST = "BROADCAST"


SYSTEM_SENDER = "system"
"""The sender of what the session itself says. Users are `user:<id>`, agents `agent:<id>`; the host sets it."""
MANAGER_SENDER = "session_manager"

OutputKind = Literal["CHUNK", "MESSAGE", "FINAL"]
ManagerAnswer = Literal[
    "ADD_AGENT_DONE",
    "ADD_AGENT_FAILED",
    "REMOVE_AGENT_DONE",
    "REMOVE_AGENT_FAILED",
    "SESSION_OPENED",
    "SESSION_CLOSED",
    "SESSION_FAILED",
]

VOCABULARY: Mapping[Event, frozenset[str]] = {
    Event.USER_INPUT: frozenset({"", "MENTION"}),
    Event.AGENT_OUTPUT: frozenset(get_args(OutputKind)),
    Event.CONTROL: frozenset(
        {
            "INPUT_ACK",
            "CANCEL",
            "CANCEL_ACK",
            "SWITCH_AGENT",
            "INVITE_AGENT",
            "REMOVE_AGENT",
            "REQUEST_ADD_AGENT",
            "REQUEST_REMOVE_AGENT",
            "HANDOVER_REQUEST",
            "HANDOVER_UI_PROMPT",
            "HANDOVER_CONFIRM",
            "HANDOVER_REJECT",
            "HANDOVER_CONTEXT",
            "HANDOVER_ACCEPTED",
            "SESSION_OPEN",
            "SESSION_CLOSE",
            "REQUEST_SESSION_OPEN",
            "REQUEST_SESSION_CLOSE",
            *get_args(ManagerAnswer),
        }
    ),
    Event.EVENT: frozenset(
        {
            "TURN_ACCEPTED",
            "TURN_QUEUED",
            "TURN_STEERED",
            "RUN_GRANTED",
            "AGENT_STARTED",
            "CANCEL_SENT",
            "CANCELED",
            "NO_ACTIVE_SPEAKING",
            "ADDING_AGENT",
            "AGENT_ADDED",
            "AGENT_REMOVING",
            "AGENT_REMOVED_LOCAL",
            "AGENT_REMOVED",
            "SESSION_OPENED",
            "SESSION_CLOSED",
        }
    ),
    Event.ERROR: frozenset(
        {
            "RUN_FAILED",
            "ROUTE_TIMEOUT",
            "CANCEL_TIMEOUT",
            "AGENT_NOT_IN_SESSION",
            "ADD_AGENT_FAILED",
            "REMOVE_AGENT_FAILED",
            "SESSION_FAILED",
        }
    ),
}
"""Every pair a session may put on record. TURN_QUEUED, TURN_STEERED, RUN_GRANTED, RUN_FAILED and the kinds of output
are our own names; the host adds EVENT:LOG_TRIMMED when it forgets the beginning of a log, and EVENT:CLIENT_SUPPLIED for
what a client brought along with its message."""


ENDINGS: Mapping[tuple[Event, str], str] = {
    (Event.AGENT_OUTPUT, "FINAL"): "completed",
    (Event.ERROR, "RUN_FAILED"): "failed",
    (Event.ERROR, "ROUTE_TIMEOUT"): "failed",
    (Event.ERROR, "AGENT_NOT_IN_SESSION"): "failed",
    (Event.EVENT, "CANCELED"): "cancelled",
    (Event.EVENT, "TURN_STEERED"): "completed",
}
"""The facts that end the turn they name, and the run's status then. Without a turn they end nothing."""


@cache
def kind_of(event: Event, subtype: str) -> str:
    return f"{event}:{subtype}" if subtype else str(event)


class Fact(Value, frozen=True):
    """One message of the session as it will be recorded. `time` is a value given by the host."""

    event: Event
    subtype: str
    target: Target
    sender: str = SYSTEM_SENDER
    target_id: str | None = None
    turn_id: str | None = None
    trace_id: str | None = None
    tx_id: str | None = None
    payload: Any = None
    metadata: Mapping[str, Any] = nothing
    time: float = 0.0

    @property
    def kind(self) -> str:
        return kind_of(self.event, self.subtype)

    @property
    def is_delta(self) -> bool:
        """A piece of a message still being written: kept only until the message is finished."""
        return self.subtype == "CHUNK"

    @property
    def ending(self) -> str | None:
        """The end of the turn named by this fact: completed, failed or cancelled; None when it goes on."""
        return ENDINGS.get((self.event, self.subtype)) if self.turn_id is not None else None
