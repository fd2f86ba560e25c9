"""What a fact makes of the state. The only place where state changes, and it never asks whether it should.

Recovery folds recorded facts through here, so old history is read, never decided again. A fact without a line in the
table changes nothing; so does a fact about a turn that is not there.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from paddock.rules.session.facts import ENDINGS, Event, Fact, Target
from paddock.rules.session.state import QueuedTurn, SessionState, Turn, TurnStatus, Wait
from paddock.rules.values import replace

WAITING_FOR_INPUT_ACK = (Wait.INPUT_ACK,)
WAITING_FOR_CANCEL_ACK = (Wait.CANCEL_ACK,)


def evolve(state: SessionState, fact: Fact) -> SessionState:
    change = _CHANGES.get((fact.event, fact.subtype))
    return change(state, fact) if change is not None else state


def fold(state: SessionState, facts: Iterable[Fact]) -> SessionState:
    return reduce(evolve, facts, state)


# --- the session and its members -------------------------------------------------------------------------------------


def _session_opened(state: SessionState, fact: Fact) -> SessionState:
    payload = _payload(fact)
    members = tuple(payload.get("members", ()))
    return replace(state, members=members, active_agent_id=payload.get("active_agent_id"), opened=True, closed=False)


def _session_closed(state: SessionState, _fact: Fact) -> SessionState:
    return replace(state, closed=True)


def _agent_added(state: SessionState, fact: Fact) -> SessionState:
    agent_id = _payload(fact).get("agent_id")
    known = agent_id is None or agent_id in state.members
    return state if known else replace(state, members=(*state.members, agent_id))


def _agent_switched(state: SessionState, fact: Fact) -> SessionState:
    return replace(state, active_agent_id=_payload(fact).get("to"))


def _payload(fact: Fact) -> Mapping[str, Any]:
    return fact.payload or {}


# --- a turn begins ---------------------------------------------------------------------------------------------------


def _input(state: SessionState, fact: Fact) -> SessionState:
    if fact.target is Target.AGENT:
        return _dispatched(state, fact)
    admitted = QueuedTurn(fact.turn_id or "", fact.trace_id or "", fact.sender, created_at=fact.time)
    return replace(state, queue=(*state.queue, admitted))


def _dispatched(state: SessionState, fact: Fact) -> SessionState:
    queued = _find(state, fact.turn_id)
    turn = Turn(
        fact.turn_id or "",
        fact.trace_id or "",
        fact.sender,
        fact.target_id or "",
        TurnStatus.ROUTING,
        WAITING_FOR_INPUT_ACK,
        queued.created_at if queued else fact.time,
    )
    return replace(state, turn=turn, queue=_without(state, fact.turn_id))


def _queued(state: SessionState, fact: Fact) -> SessionState:
    turn = _find(state, fact.turn_id)
    if turn is None:
        return state
    payload, marks = _payload(fact), fact.metadata
    turn = replace(
        turn,
        agent_id=payload["agent_id"],
        asked=bool(marks.get("asked")),
        interrupts=bool(marks.get("interrupts")),
    )
    others = _without(state, fact.turn_id)
    place = payload["position"] - 1
    return replace(state, queue=(*others[:place], turn, *others[place:]))


def _find(state: SessionState, turn_id: str | None) -> QueuedTurn | None:
    return next((queued for queued in state.queue if queued.turn_id == turn_id), None)


def _without(state: SessionState, turn_id: str | None) -> tuple[QueuedTurn, ...]:
    return tuple(queued for queued in state.queue if queued.turn_id != turn_id)


# --- a turn goes on, and ends ----------------------------------------------------------------------------------------


def _acknowledged(state: SessionState, fact: Fact) -> SessionState:
    turn = state.turn
    if turn is None or turn.turn_id != fact.turn_id:
        return state
    waiting = tuple(wait for wait in turn.waiting if wait is not Wait.INPUT_ACK)
    return replace(state, turn=replace(turn, status=TurnStatus.RUNNING, waiting=waiting))


def _told_to_stop(state: SessionState, fact: Fact) -> SessionState:
    """From here on only the answer to the cancel is waited for: it or its timer ends the turn, acknowledged or not."""
    turn = state.turn
    if fact.target is not Target.AGENT or turn is None or turn.turn_id != fact.turn_id:
        return state
    return replace(state, turn=replace(turn, waiting=WAITING_FOR_CANCEL_ACK))


def _spoke(state: SessionState, fact: Fact) -> SessionState:
    turn = state.turn
    if turn is None or turn.turn_id != fact.turn_id:
        return state
    return replace(state, speaking_agent_id=turn.agent_id, turn=replace(turn, last_output_at=fact.time))


def _ended(state: SessionState, fact: Fact) -> SessionState:
    if state.turn is not None and state.turn.turn_id == fact.turn_id:
        return replace(state, turn=None, speaking_agent_id=None)
    return replace(state, queue=_without(state, fact.turn_id)) if _find(state, fact.turn_id) else state


_CHANGES: Mapping[tuple[Event, str], Callable[[SessionState, Fact], SessionState]] = {
    (Event.CONTROL, "SESSION_OPENED"): _session_opened,
    (Event.CONTROL, "SESSION_CLOSED"): _session_closed,
    (Event.CONTROL, "SWITCH_AGENT"): _agent_switched,
    (Event.CONTROL, "INPUT_ACK"): _acknowledged,
    (Event.CONTROL, "CANCEL"): _told_to_stop,
    (Event.EVENT, "AGENT_ADDED"): _agent_added,
    (Event.EVENT, "TURN_QUEUED"): _queued,
    (Event.USER_INPUT, ""): _input,
    (Event.AGENT_OUTPUT, "CHUNK"): _spoke,
    (Event.AGENT_OUTPUT, "MESSAGE"): _spoke,
    **dict.fromkeys(ENDINGS, _ended),
}
