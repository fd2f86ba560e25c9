"""What goes on once something has ended: whoever waited for it takes the next step, in the same breath."""

from paddock.rules.session import wording
from paddock.rules.session.chains import advance_handover, give_back, leave, reject, request
from paddock.rules.session.commands import Command, EndRun, RunEnd
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Fact
from paddock.rules.session.messages import LineResumed
from paddock.rules.session.routing import dispatch, next_agent
from paddock.rules.session.state import Pending, SessionState, Transaction, Turn
from paddock.rules.session.unfolding import Unfolding


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
    go_on(story, at)
    return story.decision()


def _forget_its_handover(story: Unfolding, turn: Turn, status: str, at: float) -> None:
    """An agent that failed or was stopped hands nothing over."""
    for transaction in story.state.transactions:
        if transaction.kind == "handover" and transaction.turn_id == turn.turn_id:
            reject(story, transaction, f"turn_{status}", at)


def go_on(story: Unfolding, at: float) -> None:
    """Removals first, then a handover, then the line, and the end of the session when nothing else is left."""
    if story.state.turn is not None or story.state.held:
        return
    for transaction in _waiting_for_turns(story.state, "remove_agent"):
        leave(story, transaction, at)
    for transaction in _waiting_for_turns(story.state, "handover"):
        advance_handover(story, transaction, at)
    while story.state.turn is None and story.state.queue:
        _serve_the_line(story, at)
    _close_when_quiet(story, at)


def resume_line(state: SessionState, message: LineResumed) -> Decision:
    """Go on with what an owner left waiting that was stopped; nothing else is decided again."""
    story = Unfolding(state)
    go_on(story, message.at)
    return story.decision()


def _waiting_for_turns(state: SessionState, kind: str) -> list[Transaction]:
    return [found for found in state.transactions if found.kind == kind and found.waiting is Pending.TURN_END]


def _serve_the_line(story: Unfolding, at: float) -> None:
    turn = story.state.queue[0]
    agent_id = next_agent(story.state, turn)
    if agent_id is None:
        story.say(wording.failure(turn, wording.error("no_agent", "There is no agent to answer."), at))
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
