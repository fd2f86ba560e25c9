"""Stopping a turn: ask the agent, wait for its answer, and end the turn whether or not one comes (scenario C)."""

from typing import Any

from paddock.rules.session import wording
from paddock.rules.session.chains import end_turn
from paddock.rules.session.commands import AwaitCancelAck, CancelRun, Command, EndRun, ForceStop
from paddock.rules.session.decision import Decision, ignored
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import CancelAcknowledged, CancelRequested, CancelTimedOut
from paddock.rules.session.state import QueuedTurn, SessionState, Turn


def request_cancel(state: SessionState, message: CancelRequested) -> Decision:
    """Cancel means the live turn, whether or not its agent has said a word yet."""
    if state.closed:
        return ignored("cancel_ignored", message.turn_id, "session_closed")
    turn = state.turn
    if turn is not None and message.turn_id in {None, turn.turn_id}:
        return _cancel_live(turn, message)
    queued = next((queued for queued in state.queue if queued.turn_id == message.turn_id), None)
    return _cancel_queued(queued, message) if queued else _nothing_to_cancel(message)


def _cancel_live(turn: Turn, message: CancelRequested) -> Decision:
    if turn.is_being_cancelled:
        return ignored("cancel_repeated", turn.turn_id, "already_pending")
    asked = wording.to_system(
        "CANCEL", turn, {"reason": message.reason}, message.at, sender=wording.user(message.user_id)
    )
    facts, commands = ask_to_stop(turn, message.reason, message.at)
    return Decision((asked, *facts), commands)


def ask_to_stop(turn: Turn, reason: str, at: float) -> tuple[tuple[Fact, ...], tuple[Command, ...]]:
    facts = (
        tell_agent_to_stop(turn, reason, at),
        wording.to_frontend(Event.EVENT, "CANCEL_SENT", turn, {"agent_id": turn.agent_id, "reason": reason}, at),
    )
    return facts, (CancelRun(turn.turn_id, turn.agent_id, reason), AwaitCancelAck(turn.turn_id))


def tell_agent_to_stop(turn: Turn, reason: str, at: float) -> Fact:
    return wording.to_agent(Event.CONTROL, "CANCEL", turn, turn.agent_id, {"reason": reason}, at)


def _cancel_queued(turn: QueuedTurn, message: CancelRequested) -> Decision:
    payload = {"reason": message.reason, "by": wording.user(message.user_id)}
    return Decision((_canceled(turn, payload, message.at),), (EndRun(turn.turn_id, "cancelled"),))


def _nothing_to_cancel(message: CancelRequested) -> Decision:
    """Said to the session, not to the turn: a turn that has ended hears nothing more."""
    fact = Fact(
        Event.EVENT,
        "NO_ACTIVE_SPEAKING",
        Target.FRONTEND,
        payload={"turn_id": message.turn_id},
        metadata=wording.NOTHING,
        time=message.at,
    )
    return Decision((fact,))


def acknowledge_cancel(state: SessionState, message: CancelAcknowledged) -> Decision:
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id:
        return ignored("cancel_ack_ignored", message.turn_id, "turn_not_live")
    if not turn.is_being_cancelled:
        return ignored("cancel_ack_ignored", message.turn_id, "not_asked_to_stop")
    return stopped(state, turn, {}, message.at)


def stopped(state: SessionState, turn: Turn, payload: Any, at: float) -> Decision:
    ack = wording.to_system("CANCEL_ACK", turn, None, at, sender=wording.agent(turn.agent_id))
    return end_turn(state, turn, "cancelled", [ack, _canceled(turn, payload, at)], at)


def cancel_timed_out(state: SessionState, message: CancelTimedOut) -> Decision:
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id or not turn.is_being_cancelled:
        return ignored("cancel_timeout_ignored", message.turn_id, "not_waiting")
    error = wording.error("cancel_timeout", "The agent did not stop in time; it was cut off.")
    facts = [
        wording.to_frontend(Event.ERROR, "CANCEL_TIMEOUT", turn, error, message.at),
        _canceled(turn, {"forced": True}, message.at),
    ]
    return end_turn(state, turn, "cancelled", facts, message.at, (ForceStop(turn.turn_id, turn.agent_id),))


def _canceled(turn: Turn | QueuedTurn, payload: Any, at: float) -> Fact:
    return wording.to_frontend(Event.EVENT, "CANCELED", turn, payload, at)
