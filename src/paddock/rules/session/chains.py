"""The single steps of transactions: leave, join, hand over, close. What each says is here; when, is not."""

from collections.abc import Mapping
from typing import Any

from paddock.rules.rows.rows import RunEnd
from paddock.rules.session import wording
from paddock.rules.session.commands import (
    AskManager,
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    ChainCommand,
    Command,
    EndRun,
    ManagerRequest,
    StartRun,
)
from paddock.rules.session.decision import Decision, Unfolding
from paddock.rules.session.facts import SYSTEM_SENDER, Event, Fact, Target
from paddock.rules.session.messages import LineResumed
from paddock.rules.session.routing import dispatch, next_agent
from paddock.rules.session.state import Fallback, Pending, QueuedTurn, SessionState, Transaction, Turn, Wait

_REQUESTS: Mapping[ManagerRequest, str] = {
    "add_agent": "REQUEST_ADD_AGENT",
    "remove_agent": "REQUEST_REMOVE_AGENT",
    "session_open": "REQUEST_SESSION_OPEN",
    "session_close": "REQUEST_SESSION_CLOSE",
}


def request(
    story: Unfolding, what: ManagerRequest, tx_id: str, at: float, *, agent_id: str | None = None, **about: Any
) -> None:
    payload = {"agent_id": agent_id, **about} if agent_id else about
    story.say(wording.of_chain(Event.CONTROL, _REQUESTS[what], Target.SYSTEM, tx_id, payload, at))
    story.ask(AskManager(tx_id, what, agent_id, about), AwaitManager(tx_id))


# --- members ----------------------------------------------------------------------------------------------------------


def join(story: Unfolding, transaction: Transaction, info: Mapping[str, Any], at: float) -> None:
    """The agent is a member from here on, with what was kept of it when it was here before."""
    payload = {"agent_id": transaction.agent_id, **info}
    story.say(wording.tell(Event.EVENT, "AGENT_ADDED", transaction.tx_id, payload, at))


def leave(story: Unfolding, transaction: Transaction, at: float) -> None:
    """Nothing of the agent is live any more: unbind it here, then have the manager keep what must be kept of it."""
    agent_id = transaction.agent_id or ""
    told = {"agent_id": agent_id}
    story.say(wording.tell(Event.EVENT, "AGENT_REMOVED_LOCAL", transaction.tx_id, told, at))
    if story.state.active_agent_id == agent_id:
        heir = _heir(story.state, transaction.default_agent_id)
        story.say(wording.switched(heir, agent_id, "agent_removed", "REMOVE_AGENT", at, tx_id=transaction.tx_id))
    _drop_what_asked_for_it(story, agent_id, at)
    request(story, "remove_agent", transaction.tx_id, at, agent_id=agent_id, reason=transaction.reason)


def _heir(state: SessionState, default_agent_id: str | None) -> str | None:
    """The default if it is a member, else who joined first, else nobody."""
    staying = staying_members(state)
    return default_agent_id if default_agent_id in staying else next(iter(staying), None)


def staying_members(state: SessionState, *, but: str | None = None) -> list[str]:
    return [member for member in state.members if member != but and not state.is_leaving(member)]


def _drop_what_asked_for_it(story: Unfolding, agent_id: str, at: float) -> None:
    for queued in story.state.queue:
        if queued.asked and queued.agent_id == agent_id:
            story.say(not_in_session(queued, agent_id, story.state, at))
            story.ask(EndRun(queued.turn_id, "failed"))
    for transaction in story.state.transactions:
        if transaction.kind == "handover" and transaction.agent_id == agent_id:
            reject(story, transaction, "agent_removed", at)


def not_in_session(turn: QueuedTurn, agent_id: str | None, state: SessionState, at: float) -> Fact:
    return wording.to_frontend(Event.ERROR, "AGENT_NOT_IN_SESSION", turn, who_is_here(agent_id, state), at)


def who_is_here(agent_id: str | None, state: SessionState) -> dict[str, Any]:
    """The error for an agent that is not there, with those who are."""
    here = staying_members(state)
    listed = ", ".join(here) or "nobody"
    error = wording.end("agent_not_in_session", f"Agent {agent_id!r} is not in this session; here are: {listed}.")
    return {**error, "agent_id": agent_id, "members": here}


# --- handover ---------------------------------------------------------------------------------------------------------


def reject(story: Unfolding, transaction: Transaction, reason: str, at: float, *, by: str | None = None) -> None:
    """The handover does not happen; everybody who shows a prompt hears so."""
    story.say(handover_word("HANDOVER_REJECT", transaction, at, sender=by, reason=reason))


def handover_word(subtype: str, transaction: Transaction, at: float, *, sender: str | None, **more: Any) -> Fact:
    about = {
        "from_agent_id": transaction.from_agent_id,
        "target_agent_id": transaction.agent_id,
        "turn_id": transaction.turn_id,
        **more,
    }
    by = sender or SYSTEM_SENDER
    return wording.of_chain(Event.CONTROL, subtype, Target.BROADCAST, transaction.tx_id, about, at, sender=by)


def advance_handover(story: Unfolding, transaction: Transaction, at: float) -> None:
    """The user said yes and nothing is live: the new agent joins if need be, then takes over."""
    if transaction.agent_id not in story.state.members:
        told = {"agent_id": transaction.agent_id}
        story.say(wording.tell(Event.EVENT, "ADDING_AGENT", transaction.tx_id, told, at))
        request(story, "add_agent", transaction.tx_id, at, agent_id=transaction.agent_id, reason="handover")
    else:
        _take_over(story, transaction, at)


def _take_over(story: Unfolding, transaction: Transaction, at: float) -> None:
    agent_id, tx_id = transaction.agent_id or "", transaction.tx_id
    if story.state.active_agent_id != agent_id:
        active = story.state.active_agent_id
        story.say(wording.switched(agent_id, active, "handover", "HANDOVER_CONFIRM", at, tx_id=tx_id))
    turn = QueuedTurn(
        transaction.next_turn_id or "", transaction.trace_id or "", transaction.requested_by, created_at=at
    )
    payload = {
        "from_agent_id": transaction.from_agent_id,
        "parent_turn_id": transaction.turn_id,
        "reason": transaction.reason,
        "summary": transaction.summary,
    }
    context = Fact(
        Event.CONTROL,
        "HANDOVER_CONTEXT",
        Target.AGENT,
        wording.agent(transaction.from_agent_id or ""),
        agent_id,
        turn.turn_id,
        turn.trace_id,
        tx_id,
        payload,
        _marks(transaction),
        at,
    )
    accepted = {"agent_id": agent_id, "parent_turn_id": transaction.turn_id}
    story.say(context, wording.to_frontend(Event.EVENT, "TURN_ACCEPTED", turn, accepted, at))
    story.ask(StartRun(turn.turn_id, agent_id), AwaitAck(turn.turn_id))


def _marks(transaction: Transaction) -> dict[str, Any]:
    marks = {"requested_by": transaction.requested_by}
    return {**marks, "default_agent_id": transaction.default_agent_id} if transaction.default_agent_id else marks


def give_back(story: Unfolding, fallback: Fallback, trigger: str, at: float) -> None:
    """The agent that took over has failed without a word: the one who handed over is active again, or who is left."""
    to = fallback_agent(story.state, fallback)
    if to != fallback.agent_id:
        story.say(wording.switched(to, fallback.agent_id, "handover_failed", trigger, at))


def fallback_agent(state: SessionState, fallback: Fallback) -> str | None:
    """Find who handed over, else the default, else who joined first; None lets the default join with the next input."""
    staying = staying_members(state, but=fallback.agent_id)
    for likely in (fallback.by_agent_id, fallback.default_agent_id):
        if likely in staying:
            return likely
    if staying:
        return staying[0]
    return fallback.agent_id if fallback.default_agent_id in {None, fallback.agent_id} else None


def end_turn(
    state: SessionState,
    turn: Turn,
    status: RunEnd,
    facts: list[Fact],
    at: float,
    stopping: tuple[Command, ...] = (),
    *,
    by_the_host: bool = False,
) -> Decision:
    """The live turn is over (one of `facts` says so); in the same breath the next one goes to its agent."""
    commands = (*stopping, EndRun(turn.turn_id, status))
    if not state.queue and not state.transactions and state.fallback is None:
        return Decision(tuple(facts), commands)
    story = Unfolding(state, facts, commands)
    if status != "completed":
        _forget_its_handover(story, turn, status, at)
    fallback = story.state.fallback
    if status == "failed" and fallback is not None and fallback.agent_id == turn.agent_id and not by_the_host:
        give_back(story, fallback, facts[0].subtype, at)
    return go_on(story, at)


def _forget_its_handover(story: Unfolding, turn: Turn, status: str, at: float) -> None:
    """An agent that failed or was stopped hands nothing over."""
    for transaction in story.state.transactions:
        if transaction.kind == "handover" and transaction.turn_id == turn.turn_id:
            reject(story, transaction, f"turn_{status}", at)


def go_on(story: Unfolding, at: float) -> Decision:
    """Removals first, then a handover, then the line, and the end of the session when nothing else is left."""
    if story.state.turn is not None or story.state.held:
        return story.decision()
    for transaction in _waiting_for_turns(story.state, "remove_agent"):
        leave(story, transaction, at)
    for transaction in _waiting_for_turns(story.state, "handover"):
        advance_handover(story, transaction, at)
    while story.state.turn is None and story.state.queue:
        _serve_the_line(story, at)
    _close_when_quiet(story, at)
    return story.decision()


def resume_line(state: SessionState, message: LineResumed) -> Decision:
    """Go on with what an owner left waiting that was stopped; nothing else is decided again."""
    story = Unfolding(state)
    return go_on(story, message.at)


def _waiting_for_turns(state: SessionState, kind: str) -> list[Transaction]:
    return [found for found in state.transactions if found.kind == kind and found.waiting is Pending.TURN_END]


def _serve_the_line(story: Unfolding, at: float) -> None:
    turn = story.state.queue[0]
    agent_id = next_agent(story.state, turn)
    if agent_id is None:
        story.say(wording.failure(turn, wording.end("no_agent", "There is no agent to answer."), at))
        story.ask(EndRun(turn.turn_id, "failed"))
        return
    facts, commands = dispatch(story.state, turn, agent_id, at)
    story.say(*facts)
    story.ask(*commands)


def _close_when_quiet(story: Unfolding, at: float) -> None:
    """Closing waits for every turn and for every other transaction: what was begun is finished first."""
    state = story.state
    if state.turn is None and not state.queue and len(state.transactions) == 1:
        [last] = state.transactions
        if last.kind == "session_close" and last.waiting is Pending.TURN_END:
            request(story, "session_close", last.tx_id, at, reason=last.reason)


# --- after a restart -------------------------------------------------------------------------------------------------


def timers(state: SessionState) -> tuple[Command, ...]:
    """One timer for each wait, armed again in full, because nobody was there to hear the answer; and every request to
    the session manager once more, under its old name."""
    turn = state.turn
    waits: tuple[Command, ...] = tuple(_TIMERS[wait](turn.turn_id) for wait in turn.waiting) if turn else ()
    return (*waits, *transaction_timers(state))


def transaction_timers(state: SessionState) -> tuple[ChainCommand, ...]:
    if not state.transactions:
        return ()
    return tuple(command for found in state.transactions for command in _again(found))


def _again(transaction: Transaction) -> tuple[ChainCommand, ...]:
    tx_id = transaction.tx_id
    match transaction.waiting:
        case Pending.MANAGER:
            what = "add_agent" if transaction.kind == "handover" else transaction.kind
            about = {"reason": transaction.reason} if transaction.reason else {}
            return AskManager(tx_id, what, transaction.agent_id, about), AwaitManager(tx_id)
        case Pending.CONFIRM:
            return (AwaitConfirm(tx_id),)
        case Pending.TURN_END:
            return ()


_TIMERS = {Wait.INPUT_ACK: AwaitAck, Wait.CANCEL_ACK: AwaitCancelAck}
