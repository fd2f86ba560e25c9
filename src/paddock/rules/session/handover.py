"""One agent asks for another to go on; the user decides; then the other one takes over (scenario F)."""

from collections.abc import Mapping
from typing import Any

from paddock.rules.session import wording
from paddock.rules.session.chains import go_on, handover_word, join, reject
from paddock.rules.session.commands import AwaitConfirm
from paddock.rules.session.decision import Decision, Unfolding, ignored
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import ConfirmTimedOut, HandoverAnswered, HandoverRequested
from paddock.rules.session.state import Pending, SessionState, Transaction, Turn


def request_handover(state: SessionState, message: HandoverRequested) -> Decision:
    """Only the live turn's own agent may ask, once at a time; nothing changes before the user has said yes."""
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id or turn.agent_id != message.agent_id:
        return ignored("handover_ignored", message.turn_id, "turn_not_live")
    if why := _not_now(state, turn, message):
        return ignored("handover_ignored", message.turn_id, why)
    story = Unfolding(state, [_wish(turn, message)])
    transaction = story.state.transaction(message.tx_id)
    if transaction is None:
        return ignored("handover_ignored", message.turn_id, "no_transaction")
    if message.target_agent_id not in message.known or state.is_leaving(message.target_agent_id):
        reject(story, transaction, "agent_not_found", message.at)
        return story.decision()
    story.say(_prompt(turn, transaction, message.at))
    story.ask(AwaitConfirm(message.tx_id))
    return story.decision()


def _not_now(state: SessionState, turn: Turn, message: HandoverRequested) -> str | None:
    if turn.is_being_cancelled or state.closing:
        return "turn_is_being_stopped"
    if any(found.kind == "handover" for found in state.transactions):
        return "already_pending"
    return "to_itself" if message.target_agent_id == turn.agent_id else None


def _wish(turn: Turn, message: HandoverRequested) -> Fact:
    payload = {"target_agent_id": message.target_agent_id, "reason": message.reason, "summary": message.summary}
    by = wording.agent(turn.agent_id)
    marks = {"default_agent_id": message.default_agent_id} if message.default_agent_id else {}
    return wording.asked("HANDOVER_REQUEST", message.tx_id, payload, message.at, by, turn=turn, metadata=marks)


def _prompt(turn: Turn, transaction: Transaction, at: float) -> Fact:
    payload = {
        "from_agent_id": transaction.from_agent_id,
        "target_agent_id": transaction.agent_id,
        "reason": transaction.reason,
        "summary": transaction.summary,
        "turn_id": transaction.turn_id,
    }
    return wording.of_chain(
        Event.CONTROL, "HANDOVER_UI_PROMPT", Target.FRONTEND, transaction.tx_id, payload, at, turn=turn
    )


def answer_handover(state: SessionState, message: HandoverAnswered) -> Decision:
    """A word counts once, and only while the question is open."""
    transaction = _pending(state, message.tx_id)
    if transaction is None:
        return ignored("handover_answer_ignored", None, "nothing_pending")
    story = Unfolding(state)
    by = wording.user(message.user_id)
    if not message.confirmed:
        reject(story, transaction, "user", message.at, by=by)
        return go_on(story, message.at)
    story.say(handover_word("HANDOVER_CONFIRM", transaction, message.at, sender=by, next_turn_id=message.turn_id))
    return go_on(story, message.at)


def _pending(state: SessionState, tx_id: str | None) -> Transaction | None:
    asked = (found for found in state.transactions if found.waiting is Pending.CONFIRM)
    return next((found for found in asked if tx_id in (None, found.tx_id)), None)


def confirm_timed_out(state: SessionState, message: ConfirmTimedOut) -> Decision:
    transaction = _pending(state, message.tx_id)
    if transaction is None:
        return ignored("confirm_timeout_ignored", None, "not_waiting")
    story = Unfolding(state)
    reject(story, transaction, "timeout", message.at)
    return go_on(story, message.at)


def heir_added(state: SessionState, transaction: Transaction, info: Mapping[str, Any], at: float) -> Decision:
    """The agent that is handed over to has joined; it takes over as soon as nothing is live."""
    told = {"agent_id": transaction.agent_id, **info}
    done = wording.from_manager("ADD_AGENT_DONE", transaction.tx_id, told, at)
    story = Unfolding(state, [done])
    if transaction.agent_id not in story.state.members:
        join(story, transaction, info, at)
    if state.closing:
        reject(story, transaction, "session_closing", at)
    return go_on(story, at)
