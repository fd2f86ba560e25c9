"""Opening and closing the session, and the answers of the session manager (scenario H)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paddock.rules.session import wording
from paddock.rules.session.cancel import ask_to_stop
from paddock.rules.session.chains import go_on, reject, request
from paddock.rules.session.commands import EndRun
from paddock.rules.session.decision import Decision, Unfolding, ignored
from paddock.rules.session.facts import Event, Target
from paddock.rules.session.handover import heir_added
from paddock.rules.session.members import adding_failed, agent_added, agent_removed, refusing_controls, removing_failed
from paddock.rules.session.messages import CloseRequested, ManagerReplied, ManagerTimedOut, OpenRequested
from paddock.rules.session.state import Pending, SessionState, Transaction


def request_open(state: SessionState, message: OpenRequested) -> Decision:
    if state.opened and not state.closed:
        return ignored("open_ignored", None, "already_open")
    if any(found.kind == "session_open" for found in state.transactions):
        return ignored("open_ignored", None, "already_being_opened")
    story = Unfolding(state)
    story.say(wording.asked("SESSION_OPEN", message.tx_id, {}, message.at, wording.user(message.user_id)))
    request(story, "session_open", message.tx_id, message.at)
    return story.decision()


def request_close(state: SessionState, message: CloseRequested) -> Decision:
    """Nothing new is taken any more; what is live is stopped, what waits is let go, and then the manager closes."""
    if why := refusing_controls(state):
        return ignored("close_ignored", None, why)
    story = Unfolding(state)
    by = wording.user(message.user_id)
    story.say(wording.asked("SESSION_CLOSE", message.tx_id, {"reason": message.reason}, message.at, by))
    for queued in state.queue:
        payload = {"reason": "session_closing", "by": by}
        story.say(wording.to_frontend(Event.EVENT, "CANCELED", queued, payload, message.at))
        story.ask(EndRun(queued.turn_id, "cancelled"))
    for transaction in state.transactions:
        if transaction.kind == "handover" and transaction.waiting is not Pending.MANAGER:
            reject(story, transaction, "session_closing", message.at)
    if state.turn is not None and not state.turn.is_being_cancelled:
        facts, commands = ask_to_stop(state.turn, "session_closing", message.at)
        story.say(*facts)
        story.ask(*commands)
    return go_on(story, message.at)


def _opened(state: SessionState, transaction: Transaction, payload: Mapping[str, Any], at: float) -> Decision:
    """A first input may have opened the session meanwhile; then it stays as it is."""
    story = Unfolding(state)
    if state.closed or not state.opened:
        told = {"members": list(payload.get("members") or ()), "active_agent_id": payload.get("active_agent_id")}
        story.say(wording.from_manager("SESSION_OPENED", transaction.tx_id, told, at, Target.BROADCAST))
    seen = {"members": list(story.state.members), "active_agent_id": story.state.active_agent_id}
    story.say(wording.tell(Event.EVENT, "SESSION_OPENED", transaction.tx_id, seen, at))
    return go_on(story, at)


def _closed(state: SessionState, transaction: Transaction, payload: Mapping[str, Any], at: float) -> Decision:
    told = {"reason": transaction.reason, **payload}
    control = wording.from_manager("SESSION_CLOSED", transaction.tx_id, told, at, Target.BROADCAST)
    story = Unfolding(state, [control])
    story.say(wording.tell(Event.EVENT, "SESSION_CLOSED", transaction.tx_id, told, at))
    return story.decision()


def _session_failed(story: Unfolding, transaction: Transaction, error: Mapping[str, Any], at: float) -> Decision:
    told = {**error, "request": transaction.kind}
    story.say(wording.tell(Event.ERROR, "SESSION_FAILED", transaction.tx_id, told, at))
    return go_on(story, at)


class _Answers(NamedTuple):
    done: str
    failed: str
    when_done: Callable[[SessionState, Transaction, Mapping[str, Any], float], Decision]
    when_failed: Callable[[Unfolding, Transaction, Mapping[str, Any], float], Decision]


_CHAINS: Mapping[str, _Answers] = {
    "add_agent": _Answers("ADD_AGENT_DONE", "ADD_AGENT_FAILED", agent_added, adding_failed),
    "handover": _Answers("ADD_AGENT_DONE", "ADD_AGENT_FAILED", heir_added, adding_failed),
    "remove_agent": _Answers("REMOVE_AGENT_DONE", "REMOVE_AGENT_FAILED", agent_removed, removing_failed),
    "session_open": _Answers("SESSION_OPENED", "SESSION_FAILED", _opened, _session_failed),
    "session_close": _Answers("SESSION_CLOSED", "SESSION_FAILED", _closed, _session_failed),
}


def manager_replied(state: SessionState, message: ManagerReplied) -> Decision:
    """An answer counts once, and only while it is waited for."""
    transaction = _asked(state, message.tx_id)
    if transaction is None:
        return ignored("manager_answer_ignored", None, "not_waiting")
    answers = _CHAINS[transaction.kind]
    if message.answer == answers.done:
        return answers.when_done(state, transaction, message.payload, message.at)
    if message.answer == answers.failed:
        told = {} if answers.failed == "SESSION_FAILED" else {"agent_id": transaction.agent_id}
        said = wording.from_manager(answers.failed, transaction.tx_id, {**told, **message.payload}, message.at)
        return answers.when_failed(Unfolding(state, [said]), transaction, message.payload, message.at)
    return ignored("manager_answer_ignored", None, "another_question")


def manager_timed_out(state: SessionState, message: ManagerTimedOut) -> Decision:
    transaction = _asked(state, message.tx_id)
    if transaction is None:
        return ignored("manager_timeout_ignored", None, "not_waiting")
    error = wording.error("manager_timeout", "The session manager did not answer in time.", retryable=True)
    return _CHAINS[transaction.kind].when_failed(Unfolding(state), transaction, error, message.at)


def _asked(state: SessionState, tx_id: str) -> Transaction | None:
    found = state.transaction(tx_id)
    return found if found is not None and found.waiting is Pending.MANAGER else None
