"""Members of the session and the active one: invite, remove, switch (scenarios B, D and E)."""

from collections.abc import Mapping
from typing import Any

from paddock.rules.session import wording
from paddock.rules.session.cancel import ask_to_stop
from paddock.rules.session.chains import go_on, join, leave, reject, request, who_is_here
from paddock.rules.session.decision import Decision, Unfolding, ignored
from paddock.rules.session.facts import Event, Fact
from paddock.rules.session.messages import InviteRequested, RemoveRequested, SwitchRequested
from paddock.rules.session.state import SessionState, Transaction


def refusing_controls(state: SessionState) -> str | None:
    """Return why the session takes no controls now, or None."""
    if not state.opened:
        return "session_not_open"
    if state.closed:
        return "session_closed"
    return "session_closing" if state.closing else None


def request_switch(state: SessionState, message: SwitchRequested) -> Decision:
    """Only to a member. The wish and the change are one message on the bus."""
    if why := refusing_controls(state):
        return ignored("switch_ignored", None, why)
    if message.agent_id == state.active_agent_id:
        return ignored("switch_ignored", None, "already_active")
    if message.agent_id not in state.members or state.is_leaving(message.agent_id):
        error = who_is_here(message.agent_id, state)
        return Decision((wording.tell(Event.ERROR, "AGENT_NOT_IN_SESSION", None, error, message.at),))
    by = wording.user(message.user_id)
    active = state.active_agent_id
    return Decision((wording.switched(message.agent_id, active, "user", "SWITCH_AGENT", message.at, sender=by),))


def request_invite(state: SessionState, message: InviteRequested) -> Decision:
    if why := refusing_controls(state):
        return ignored("invite_ignored", None, why)
    if any(found.agent_id == message.agent_id and _adds(found) for found in state.transactions):
        return ignored("invite_ignored", None, "already_being_added")
    if state.is_leaving(message.agent_id):
        return Decision((_invite_failed(message, "agent_leaving", f"Agent {message.agent_id!r} is being removed."),))
    story = Unfolding(state)
    asked = {"agent_id": message.agent_id, "activate": message.activate}
    story.say(wording.asked("INVITE_AGENT", message.tx_id, asked, message.at, wording.user(message.user_id)))
    told = {"agent_id": message.agent_id}
    if message.agent_id in state.members:
        already = {**told, "already_member": True}
        story.say(wording.tell(Event.EVENT, "AGENT_ADDED", message.tx_id, already, message.at))
        _activate(story, message.agent_id, message.tx_id, message.at, wanted=message.activate)
        return story.decision()
    story.say(wording.tell(Event.EVENT, "ADDING_AGENT", message.tx_id, told, message.at))
    more = {"activate": True} if message.activate else {}
    request(story, "add_agent", message.tx_id, message.at, agent_id=message.agent_id, **more)
    return story.decision()


def _adds(transaction: Transaction) -> bool:
    return transaction.kind == "add_agent" or (transaction.kind == "handover" and transaction.waiting == "MANAGER")


def _invite_failed(message: InviteRequested, code: str, text: str) -> Fact:
    error = {**wording.error(code, text), "agent_id": message.agent_id}
    return wording.tell(Event.ERROR, "ADD_AGENT_FAILED", None, error, message.at)


def agent_added(state: SessionState, transaction: Transaction, info: Mapping[str, Any], at: float) -> Decision:
    story = Unfolding(state, [_from_manager("ADD_AGENT_DONE", transaction, info, at)])
    agent_id = transaction.agent_id or ""
    if agent_id not in story.state.members:
        join(story, transaction, info, at)
    _activate(story, agent_id, transaction.tx_id, at, wanted=transaction.activate)
    return go_on(story, at)


def _activate(story: Unfolding, agent_id: str, tx_id: str, at: float, *, wanted: bool) -> None:
    """Also when nobody else is active: a session with members has somebody to talk to."""
    active = story.state.active_agent_id
    if agent_id != active and (wanted or active is None):
        story.say(wording.switched(agent_id, active, "invited", "INVITE_AGENT", at, tx_id=tx_id))


def adding_failed(story: Unfolding, transaction: Transaction, error: Mapping[str, Any], at: float) -> Decision:
    told = {**error, "agent_id": transaction.agent_id}
    story.say(wording.tell(Event.ERROR, "ADD_AGENT_FAILED", transaction.tx_id, told, at))
    if transaction.kind == "handover":
        reject(story, transaction, "add_agent_failed", at)
    return go_on(story, at)


def request_remove(state: SessionState, message: RemoveRequested) -> Decision:
    """A live turn of the agent is stopped first; only its end lets the agent go."""
    if why := refusing_controls(state):
        return ignored("remove_ignored", None, why)
    if state.is_leaving(message.agent_id):
        return ignored("remove_ignored", None, "already_being_removed")
    if message.agent_id not in state.members:
        error = who_is_here(message.agent_id, state)
        return Decision((wording.tell(Event.ERROR, "REMOVE_AGENT_FAILED", None, error, message.at),))
    story = Unfolding(state)
    asked = {"agent_id": message.agent_id, "reason": message.reason}
    marks = {"default_agent_id": message.default_agent_id} if message.default_agent_id else {}
    by = wording.user(message.user_id)
    story.say(
        wording.asked("REMOVE_AGENT", message.tx_id, asked, message.at, by, metadata=marks),
        wording.tell(Event.EVENT, "AGENT_REMOVING", message.tx_id, {"agent_id": message.agent_id}, message.at),
    )
    _stop_and_go_on(story, message)
    return story.decision()


def _stop_and_go_on(story: Unfolding, message: RemoveRequested) -> None:
    turn = story.state.turn
    if turn is None or turn.agent_id != message.agent_id:
        _leave_now(story, message.tx_id, message.at)
    elif not turn.is_being_cancelled:
        facts, commands = ask_to_stop(turn, "agent_removed", message.at)
        story.say(*facts)
        story.ask(*commands)


def _leave_now(story: Unfolding, tx_id: str, at: float) -> None:
    transaction = story.state.transaction(tx_id)
    if transaction is not None:
        leave(story, transaction, at)


def agent_removed(state: SessionState, transaction: Transaction, info: Mapping[str, Any], at: float) -> Decision:
    story = Unfolding(state, [_from_manager("REMOVE_AGENT_DONE", transaction, info, at)])
    told = {"agent_id": transaction.agent_id}
    story.say(wording.tell(Event.EVENT, "AGENT_REMOVED", transaction.tx_id, told, at))
    return go_on(story, at)


def removing_failed(story: Unfolding, transaction: Transaction, error: Mapping[str, Any], at: float) -> Decision:
    """Make the agent a member again, because its state could not be kept."""
    agent_id = transaction.agent_id or ""
    told = {**error, "agent_id": agent_id}
    story.say(wording.tell(Event.ERROR, "REMOVE_AGENT_FAILED", transaction.tx_id, told, at))
    join(story, transaction, {"reason": "remove_failed"}, at)
    _activate(story, agent_id, transaction.tx_id, at, wanted=False)
    return go_on(story, at)


def _from_manager(subtype: str, transaction: Transaction, payload: Mapping[str, Any], at: float) -> Fact:
    told = {"agent_id": transaction.agent_id, **payload}
    return wording.from_manager(subtype, transaction.tx_id, told, at)
