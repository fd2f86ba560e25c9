"""Apply a fact to the session's state. The only place where state changes; nothing is decided here.

Recovery folds recorded facts through here, so old history is read, never decided again. A fact without a line in the
table changes nothing; so does a fact about a turn that is not there.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from msgspec import convert

from paddock.rules.session.facts import ENDINGS, Event, Fact, Target
from paddock.rules.session.state import (
    Chain,
    Fallback,
    Pending,
    QueuedTurn,
    SessionState,
    Transaction,
    Turn,
    TurnStatus,
    Wait,
)
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
    return replace(
        state,
        members=tuple(payload.get("members", ())),
        active_agent_id=payload.get("active_agent_id"),
        opened=True,
        closed=False,
        transactions=_other_transactions(state, fact),
        fallback=None,
    )


def _session_closed(state: SessionState, fact: Fact) -> SessionState:
    return replace(state, closed=True, transactions=_other_transactions(state, fact))


def _agent_added(state: SessionState, fact: Fact) -> SessionState:
    agent_id = _payload(fact).get("agent_id")
    known = agent_id is None or agent_id in state.members
    return state if known else replace(state, members=(*state.members, agent_id))


def _agent_left(state: SessionState, fact: Fact) -> SessionState:
    agent_id = _payload(fact).get("agent_id")
    if agent_id not in state.members:
        return state
    return replace(state, members=tuple(member for member in state.members if member != agent_id))


def _agent_switched(state: SessionState, fact: Fact) -> SessionState:
    return replace(state, active_agent_id=_payload(fact).get("to"), fallback=None)


def _payload(fact: Fact) -> Mapping[str, Any]:
    return fact.payload or {}


# --- transactions -----------------------------------------------------------------------------------------------------


def _begins(kind: Chain, waiting: Pending) -> Callable[[SessionState, Fact], SessionState]:
    def begin(state: SessionState, fact: Fact) -> SessionState:
        if fact.tx_id is None:
            return state
        known = state.transaction(fact.tx_id)
        if known is not None:
            return _with_transaction(state, replace(known, waiting=waiting))
        return replace(state, transactions=(*state.transactions, _begun(kind, waiting, fact)))

    return begin


def _begun(kind: Chain, waiting: Pending, fact: Fact) -> Transaction:
    payload = _payload(fact)
    return Transaction(
        tx_id=fact.tx_id or "",
        kind=kind,
        waiting=waiting,
        agent_id=payload.get("agent_id") or payload.get("target_agent_id"),
        requested_by=fact.sender,
        reason=str(payload.get("reason") or ""),
        created_at=fact.time,
        activate=bool(payload.get("activate")),
        default_agent_id=fact.metadata.get("default_agent_id"),
        from_agent_id=fact.sender.removeprefix("agent:") if kind == "handover" else None,
        turn_id=fact.turn_id,
        trace_id=fact.trace_id,
        summary=str(payload.get("summary") or ""),
    )


_begin_handover = _begins("handover", Pending.CONFIRM)


def _handover_requested(state: SessionState, fact: Fact) -> SessionState:
    """An agent that can ask for another one is at work: it counts as its first word."""
    if state.fallback is not None and state.turn is not None:
        state = replace(state, fallback=_fallback_after_word(state.fallback, state.turn))
    return _begin_handover(state, fact)


def _handover_confirmed(state: SessionState, fact: Fact) -> SessionState:
    known = state.transaction(fact.tx_id)
    if known is None:
        return state
    next_turn_id = _payload(fact).get("next_turn_id")
    confirmed = replace(known, waiting=Pending.TURN_END, requested_by=fact.sender, next_turn_id=next_turn_id)
    return _with_transaction(state, confirmed)


def _handed_over(state: SessionState, fact: Fact) -> SessionState:
    if fact.target is not Target.AGENT or fact.tx_id is None:
        return state
    turn = Turn(
        fact.turn_id or "",
        fact.trace_id or "",
        str(fact.metadata.get("requested_by") or ""),
        fact.target_id or "",
        TurnStatus.ROUTING,
        WAITING_FOR_INPUT_ACK,
        fact.time,
        None,
        str(_payload(fact).get("parent_turn_id") or ""),
    )
    fallback = Fallback(
        turn.agent_id, str(_payload(fact).get("from_agent_id") or ""), fact.metadata.get("default_agent_id")
    )
    return replace(state, turn=turn, transactions=_other_transactions(state, fact), fallback=fallback)


def _joined_for_a_handover(state: SessionState, fact: Fact) -> SessionState:
    known = state.transaction(fact.tx_id)
    if known is not None and known.kind == "handover":
        return _with_transaction(state, replace(known, waiting=Pending.TURN_END))
    return _transaction_over(state, fact)


def _adding_failed(state: SessionState, fact: Fact) -> SessionState:
    known = state.transaction(fact.tx_id)
    return state if known is not None and known.kind == "handover" else _transaction_over(state, fact)


def _transaction_over(state: SessionState, fact: Fact) -> SessionState:
    if state.transaction(fact.tx_id) is None:
        return state
    return replace(state, transactions=_other_transactions(state, fact))


def _with_transaction(state: SessionState, changed: Transaction) -> SessionState:
    new = tuple(changed if found.tx_id == changed.tx_id else found for found in state.transactions)
    return replace(state, transactions=new)


def _other_transactions(state: SessionState, fact: Fact) -> tuple[Transaction, ...]:
    if not state.transactions:
        return ()
    return tuple(found for found in state.transactions if found.tx_id != fact.tx_id)


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
        steers=bool(marks.get("steers")),
        default_agent_id=marks.get("default_agent_id"),
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
    if state.fallback is not None:
        state = replace(state, fallback=_fallback_after_word(state.fallback, turn))
    return replace(state, speaking_agent_id=turn.agent_id, turn=replace(turn, last_output_at=fact.time))


def _fallback_after_word(fallback: Fallback, turn: Turn) -> Fallback | None:
    """The agent that took over keeps the conversation from its first word on."""
    return None if turn.agent_id == fallback.agent_id else fallback


def _ended(state: SessionState, fact: Fact) -> SessionState:
    turn = state.turn
    if turn is not None and turn.turn_id == fact.turn_id:
        if state.fallback is not None and fact.event is Event.AGENT_OUTPUT:
            state = replace(state, fallback=_fallback_after_word(state.fallback, turn))
        return replace(state, turn=None, speaking_agent_id=None)
    return replace(state, queue=_without(state, fact.turn_id)) if _find(state, fact.turn_id) else state


def _trimmed(state: SessionState, fact: Fact) -> SessionState:
    kept = _payload(fact).get("state")
    return convert(kept, SessionState) if kept is not None else state


_CHANGES: Mapping[tuple[Event, str], Callable[[SessionState, Fact], SessionState]] = {
    (Event.EVENT, "LOG_TRIMMED"): _trimmed,
    (Event.CONTROL, "SESSION_OPENED"): _session_opened,
    (Event.CONTROL, "SESSION_CLOSED"): _session_closed,
    (Event.CONTROL, "SWITCH_AGENT"): _agent_switched,
    (Event.CONTROL, "INPUT_ACK"): _acknowledged,
    (Event.CONTROL, "HANDOVER_ACCEPTED"): _acknowledged,
    (Event.CONTROL, "CANCEL"): _told_to_stop,
    (Event.EVENT, "AGENT_ADDED"): _agent_added,
    (Event.EVENT, "AGENT_REMOVED_LOCAL"): _agent_left,
    (Event.CONTROL, "REQUEST_ADD_AGENT"): _begins("add_agent", Pending.MANAGER),
    (Event.CONTROL, "ADD_AGENT_DONE"): _joined_for_a_handover,
    (Event.ERROR, "ADD_AGENT_FAILED"): _adding_failed,
    (Event.CONTROL, "REMOVE_AGENT"): _begins("remove_agent", Pending.TURN_END),
    (Event.CONTROL, "REQUEST_REMOVE_AGENT"): _begins("remove_agent", Pending.MANAGER),
    (Event.CONTROL, "REMOVE_AGENT_DONE"): _transaction_over,
    (Event.ERROR, "REMOVE_AGENT_FAILED"): _transaction_over,
    (Event.CONTROL, "HANDOVER_REQUEST"): _handover_requested,
    (Event.CONTROL, "HANDOVER_CONFIRM"): _handover_confirmed,
    (Event.CONTROL, "HANDOVER_REJECT"): _transaction_over,
    (Event.CONTROL, "HANDOVER_CONTEXT"): _handed_over,
    (Event.CONTROL, "REQUEST_SESSION_OPEN"): _begins("session_open", Pending.MANAGER),
    (Event.EVENT, "SESSION_OPENED"): _transaction_over,
    (Event.CONTROL, "SESSION_CLOSE"): _begins("session_close", Pending.TURN_END),
    (Event.CONTROL, "REQUEST_SESSION_CLOSE"): _begins("session_close", Pending.MANAGER),
    (Event.ERROR, "SESSION_FAILED"): _transaction_over,
    (Event.EVENT, "TURN_QUEUED"): _queued,
    (Event.USER_INPUT, ""): _input,
    (Event.AGENT_OUTPUT, "CHUNK"): _spoke,
    (Event.AGENT_OUTPUT, "MESSAGE"): _spoke,
    **dict.fromkeys(ENDINGS, _ended),
}
