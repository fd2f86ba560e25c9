"""The session as people ask about it: who is here, who is active, who speaks, which turns and which chains are open.

A view, computed from the state; nothing decides by it. Ended turns are looked up as runs.
"""

from collections.abc import Mapping
from typing import Literal

from paddock.rules.session.state import QueuedTurn, SessionState, Transaction, Turn
from paddock.rules.values import Value

InflightStatus = Literal["QUEUED", "ROUTING", "RUNNING"]


class Inflight(Value, frozen=True):
    """One turn that has not ended. What it said so far is the range of the log under its `turn_id`."""

    turn_id: str
    trace_id: str
    requested_by: str
    target_agent_id: str
    status: InflightStatus
    created_at: float
    last_output_at: float | None
    collected_output: str
    """Where its words are: the facts of this turn."""
    waiting: tuple[str, ...]
    parent_turn_id: str | None = None


class SessionContext(Value, frozen=True):
    active_agent_id: str | None
    agents_in_session: tuple[str, ...]
    speaking_agent_id: str | None
    user_interruptible: bool
    inflight: Mapping[str, Inflight]
    transactions: Mapping[str, Transaction]
    opened: bool
    closed: bool


def session_context(state: SessionState) -> SessionContext:
    live = {state.turn.turn_id: _live(state.turn)} if state.turn else {}
    return SessionContext(
        active_agent_id=state.active_agent_id,
        agents_in_session=state.members,
        speaking_agent_id=state.speaking_agent_id,
        user_interruptible=state.user_interruptible,
        inflight={**live, **{queued.turn_id: _waiting(queued) for queued in state.queue}},
        transactions={found.tx_id: found for found in state.transactions},
        opened=state.opened,
        closed=state.closed,
    )


def _live(turn: Turn) -> Inflight:
    return Inflight(
        turn_id=turn.turn_id,
        trace_id=turn.trace_id,
        requested_by=turn.requested_by,
        target_agent_id=turn.agent_id,
        status=turn.status.value,
        created_at=turn.created_at,
        last_output_at=turn.last_output_at,
        collected_output=turn.turn_id,
        waiting=tuple(wait.value for wait in turn.waiting),
        parent_turn_id=turn.parent_turn_id,
    )


def _waiting(turn: QueuedTurn) -> Inflight:
    return Inflight(
        turn_id=turn.turn_id,
        trace_id=turn.trace_id,
        requested_by=turn.requested_by,
        target_agent_id=turn.agent_id,
        status="QUEUED",
        created_at=turn.created_at,
        last_output_at=None,
        collected_output=turn.turn_id,
        waiting=(),
    )
