"""Build every fact about a turn. Nothing here decides when it is recorded."""

from collections.abc import Mapping
from typing import Any, NewType

from paddock.rules.errors import EndCode
from paddock.rules.session.facts import MANAGER_SENDER, SYSTEM_SENDER, Event, Fact, Target
from paddock.rules.session.messages import OutputReceived, UserInput
from paddock.rules.session.state import QueuedTurn, Turn

NOTHING: Mapping[str, Any] = {}

RunError = NewType("RunError", Mapping[str, Any])
"""An error with a code that a run may end with."""


def user(user_id: str) -> str:
    return f"user:{user_id}"


def agent(agent_id: str) -> str:
    return f"agent:{agent_id}"


def input_received(message: UserInput) -> Fact:
    """The input itself, stored here and nowhere else."""
    return Fact(
        Event.USER_INPUT,
        "",
        Target.SYSTEM,
        user(message.user_id),
        None,
        message.turn_id,
        message.trace_id,
        None,
        message.payload,
        message.metadata,
        message.at,
    )


def output(turn: Turn, message: OutputReceived) -> Fact:
    """Forward the agent's output unchanged. The hot path: arguments by position."""
    return Fact(
        Event.AGENT_OUTPUT,
        message.kind,
        Target.FRONTEND,
        f"agent:{turn.agent_id}",
        None,
        turn.turn_id,
        turn.trace_id,
        None,
        message.payload,
        message.metadata,
        message.at,
    )


def to_frontend(
    event: Event, subtype: str, turn: Turn | QueuedTurn, payload: Any, at: float, sender: str = SYSTEM_SENDER
) -> Fact:
    return Fact(event, subtype, Target.FRONTEND, sender, None, turn.turn_id, turn.trace_id, None, payload, NOTHING, at)


def to_agent(
    event: Event,
    subtype: str,
    turn: Turn | QueuedTurn,
    agent_id: str,
    payload: Any,
    at: float,
    sender: str = SYSTEM_SENDER,
) -> Fact:
    """The recorded form of a command; the host performs the command, nobody subscribes to the fact."""
    return Fact(event, subtype, Target.AGENT, sender, agent_id, turn.turn_id, turn.trace_id, None, payload, NOTHING, at)


def to_system(subtype: str, turn: Turn, payload: Any, at: float, sender: str) -> Fact:
    return Fact(
        Event.CONTROL, subtype, Target.SYSTEM, sender, None, turn.turn_id, turn.trace_id, None, payload, NOTHING, at
    )


def grant(turn: Turn, granted: Mapping[str, Any], at: float) -> Fact:
    """Record the grant of this turn's run, where the dispatch could not say it yet."""
    told = {"agent_id": turn.agent_id}
    return Fact(
        Event.EVENT,
        "RUN_GRANTED",
        Target.SYSTEM,
        turn_id=turn.turn_id,
        trace_id=turn.trace_id,
        payload=told,
        metadata=granted,
        time=at,
    )


def failure(turn: Turn | QueuedTurn, error: RunError, at: float, sender: str = SYSTEM_SENDER) -> Fact:
    return to_frontend(Event.ERROR, "RUN_FAILED", turn, error, at, sender)


def error(code: str, message: str, *, retryable: bool = False) -> Mapping[str, Any]:
    """An error that ends no run."""
    return {"code": code, "message": message, "retryable": retryable}


def end(code: EndCode, message: str, *, retryable: bool = False) -> RunError:
    """The error that a run ends with."""
    return RunError(error(code, message, retryable=retryable))


def of_chain(
    event: Event,
    subtype: str,
    target: Target,
    tx_id: str | None,
    payload: Any,
    at: float,
    *,
    sender: str = SYSTEM_SENDER,
    turn: Turn | None = None,
    metadata: Mapping[str, Any] = NOTHING,
) -> Fact:
    """A fact about a transaction, which has no turn of its own; `turn` when it happens inside a live one."""
    turn_id, trace_id = (turn.turn_id, turn.trace_id) if turn else (None, None)
    return Fact(event, subtype, target, sender, None, turn_id, trace_id, tx_id, payload, metadata, at)


def tell(event: Event, subtype: str, tx_id: str | None, payload: Any, at: float) -> Fact:
    """Something about a transaction that people should see."""
    return of_chain(event, subtype, Target.FRONTEND, tx_id, payload, at)


def asked(subtype: str, tx_id: str, payload: Any, at: float, sender: str, **more: Any) -> Fact:
    """A control message that somebody sent to the session, beginning or answering a transaction."""
    return of_chain(Event.CONTROL, subtype, Target.SYSTEM, tx_id, payload, at, sender=sender, **more)


def from_manager(subtype: str, tx_id: str | None, payload: Any, at: float, target: Target = Target.SYSTEM) -> Fact:
    return of_chain(Event.CONTROL, subtype, target, tx_id, payload, at, sender=MANAGER_SENDER)


def switched(to: str | None, state_active: str | None, reason: str, trigger: str, at: float, **more: Any) -> Fact:
    """The active agent changes: on the bus and in the state in one step."""
    payload = {"from": state_active, "to": to, "reason": reason, "trigger": trigger}
    return of_chain(Event.CONTROL, "SWITCH_AGENT", Target.BROADCAST, more.pop("tx_id", None), payload, at, **more)
