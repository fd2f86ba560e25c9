"""The life of a turn: input comes in, an agent takes it, speaks, and ends it (scenarios A, B and G)."""

from typing import Any

from paddock.rules.cluster import WHY
from paddock.rules.session import messages, wording
from paddock.rules.session.cancel import ask_to_stop, stopped, tell_agent_to_stop
from paddock.rules.session.chains import end_turn, go_on, not_in_session
from paddock.rules.session.commands import CancelRun, Command, EndRun, OfferSteering
from paddock.rules.session.decision import Decision, Unfolding, ignored
from paddock.rules.session.evolve import evolve
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.routing import configured, dispatch, opening, route
from paddock.rules.session.state import QueuedTurn, SessionState, Turn, TurnStatus, Wait


def take_input(state: SessionState, message: messages.UserInput) -> Decision:
    """Every input is put on record; then it goes to its agent, waits in line, or is refused with a reason."""
    if message.turn_id in state.live_turn_ids:
        return ignored("input_repeated", message.turn_id, "turn_is_live")
    facts: list[Fact] = [] if state.opened else [opening(message)]
    state = evolve(state, facts[0]) if facts else state
    facts.append(wording.input_received(message))
    turn = _admitted(message, route(state, message) or "")
    if refusal := _refusal(state, turn, message):
        return Decision((*facts, refusal), (EndRun(turn.turn_id, "failed"),))
    if state.turn is not None:
        more, commands = _wait_in_line(state, state.turn, turn, message)
    elif state.held or state.queue:
        return _behind_what_waits(state, turn, message, facts)
    else:
        more, commands = dispatch(state, turn, turn.agent_id, message.at)
    return Decision((*facts, *more), commands)


def _behind_what_waits(
    state: SessionState, turn: QueuedTurn, message: messages.UserInput, facts: list[Fact]
) -> Decision:
    """Nothing is live because the owner before was stopped, or this one is: the line keeps its order."""
    story = Unfolding(state, facts[-1:])
    story.say(_queued(state, turn, len(state.queue) + 1, message, "queue", {}))
    decision = go_on(story, message.at)
    return Decision((*facts[:-1], *decision.facts), decision.commands)


def _admitted(message: messages.UserInput, agent_id: str) -> QueuedTurn:
    return QueuedTurn(
        message.turn_id,
        message.trace_id,
        wording.user(message.user_id),
        agent_id,
        asked=message.agent_id is not None,
        created_at=message.at,
    )


def _refusal(state: SessionState, turn: QueuedTurn, message: messages.UserInput) -> Fact | None:
    if state.closed or (state.transactions and state.closing):
        error = wording.end("session_closed", "The session is closed.")
        return wording.failure(turn, error, message.at)
    if not turn.agent_id:
        return _nobody_answers(state, turn, message)
    full = len(state.queue) >= message.agents.max_queue
    policy = "queue" if state.turn is None else _while_busy(state.turn, message)
    if full or policy == "reject":
        error = wording.end("session_busy", "The session is busy with another turn.", retryable=True)
        return wording.failure(turn, wording.RunError({**error, "while_busy": policy}), message.at)
    return None


def _nobody_answers(state: SessionState, turn: QueuedTurn, message: messages.UserInput) -> Fact:
    if turn.asked:
        return not_in_session(turn, message.agent_id, state, message.at)
    return wording.failure(turn, wording.end("no_agent", "There is no agent to answer."), message.at)


def _while_busy(live: Turn, message: messages.UserInput) -> str:
    """The policy of the agent that is busy, not of the one asked for."""
    return message.agents.while_busy.get(live.agent_id, "queue")


def _wait_in_line(
    state: SessionState, live: Turn, turn: QueuedTurn, message: messages.UserInput
) -> tuple[list[Fact], tuple[Command, ...]]:
    """Admission order; input that interrupts goes before input that does not, and stops the live turn."""
    policy = _while_busy(live, message)
    if policy != "interrupt":
        # Input for another agent is not this one's business: it waits its turn.
        steers = policy == "steer" and not live.is_being_cancelled and message.agent_id in (None, live.agent_id)
        marks = {"steers": True} if steers else {}
        offer = (OfferSteering(live.turn_id, live.agent_id, turn.turn_id),) if steers else ()
        how = "steer" if steers else "queue"
        return [_queued(state, turn, len(state.queue) + 1, message, how, marks)], offer
    position = 1 + sum(queued.interrupts for queued in state.queue)
    queued = _queued(state, turn, position, message, policy, {"interrupts": True})
    facts, commands = ((), ()) if live.is_being_cancelled else ask_to_stop(live, "interrupted", message.at)
    return [queued, *facts], commands


def _queued(
    state: SessionState, turn: QueuedTurn, position: int, message: messages.UserInput, how: str, marks: dict[str, Any]
) -> Fact:
    follows = position > 1 and not turn.asked
    agent_id = state.queue[position - 2].agent_id if follows else turn.agent_id
    if turn.asked:
        marks["asked"] = True
    elif default := configured(message.agents, message.agents.default_agent_id):
        marks["default_agent_id"] = default
    return Fact(
        Event.EVENT,
        "TURN_QUEUED",
        Target.FRONTEND,
        turn_id=turn.turn_id,
        trace_id=turn.trace_id,
        payload={"agent_id": agent_id, "position": position, "while_busy": how},
        metadata=marks,
        time=message.at,
    )


def take_steering(state: SessionState, message: messages.SteeringTaken) -> Decision:
    """The live turn takes an input in; its own turn is over with that. Otherwise it waits in line as before."""
    queued = next((found for found in state.queue if found.turn_id == message.turn_id and found.steers), None)
    live = state.turn
    if queued is None or live is None or live.turn_id != message.into_turn_id:
        return ignored("steering_ignored", message.turn_id, "not_offered")
    if live.is_being_cancelled:
        return ignored("steering_ignored", message.turn_id, "turn_is_being_stopped")
    payload = {"steered_into": live.turn_id, "agent_id": live.agent_id}
    steered = wording.to_frontend(Event.EVENT, "TURN_STEERED", queued, payload, message.at)
    return Decision((steered,), (EndRun(queued.turn_id, "completed"),))


def record_grant(state: SessionState, message: messages.RunGranted) -> Decision:
    """Put on record what the run may do, before its agent hears of it."""
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id or turn.is_being_cancelled:
        return ignored("grant_ignored", message.turn_id, "turn_not_live")
    return Decision((wording.grant(turn, message.granted, message.at),))


def acknowledge_input(state: SessionState, message: messages.InputAcknowledged) -> Decision:
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id:
        return ignored("input_ack_ignored", message.turn_id, "turn_not_live")
    if turn.status is not TurnStatus.ROUTING:
        return ignored("input_ack_ignored", message.turn_id, "already_running")
    return Decision(_started(turn, message.at))


def _started(turn: Turn, at: float) -> tuple[Fact, Fact]:
    word = "INPUT_ACK" if turn.parent_turn_id is None else "HANDOVER_ACCEPTED"
    ack = wording.to_system(word, turn, None, at, sender=wording.agent(turn.agent_id))
    return ack, wording.to_frontend(Event.EVENT, "AGENT_STARTED", turn, {"agent_id": turn.agent_id}, at)


def ack_timed_out(state: SessionState, message: messages.AckTimedOut) -> Decision:
    """No answer: the turn fails, and the agent is told to stop in case it works on it after all."""
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id:
        return ignored("ack_timeout_ignored", message.turn_id, "turn_not_live")
    if Wait.INPUT_ACK not in turn.waiting:
        return Decision()  # it came in time: the timer rings in every turn that takes longer, and that is no news
    error = wording.end("route_timeout", "The agent did not take the input in time.", retryable=True)
    facts = [
        wording.to_frontend(Event.ERROR, "ROUTE_TIMEOUT", turn, error, message.at),
        tell_agent_to_stop(turn, "route_timeout", message.at),
    ]
    stopping = (CancelRun(turn.turn_id, turn.agent_id, "route_timeout"),)
    return end_turn(state, turn, "failed", facts, message.at, stopping)


def receive_output(state: SessionState, message: messages.OutputReceived) -> Decision:
    """Forward what the live turn's own agent says, unchanged. A first word without an ack is the ack."""
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id:
        return ignored("output_dropped", message.turn_id, "turn_not_live")
    if turn.agent_id != message.agent_id:
        return ignored("output_dropped", message.turn_id, "foreign_agent")
    said = wording.output(turn, message)
    if turn.status is TurnStatus.RUNNING and message.kind != "FINAL":
        return Decision((said,))
    facts = [said] if turn.status is TurnStatus.RUNNING else [*_started(turn, message.at), said]
    if message.kind != "FINAL":
        return Decision(tuple(facts))
    return end_turn(state, turn, "completed", facts, message.at)


def fail_run(state: SessionState, message: messages.RunFailed) -> Decision:
    """The run says nothing more. Of a turn that was asked to stop, this is the answer; its error is kept."""
    error = wording.end(message.code, message.message, retryable=message.retryable)
    turn = state.turn
    if turn is None or turn.turn_id != message.turn_id:
        return _fail_queued(state, message.turn_id, error, message.at)
    if turn.is_being_cancelled:
        return stopped(state, turn, {"error": error}, message.at)
    failed = wording.failure(turn, error, message.at, sender=wording.agent(turn.agent_id))
    return end_turn(state, turn, "failed", [failed], message.at, by_the_host=message.code in WHY)


def _fail_queued(state: SessionState, turn_id: str, error: wording.RunError, at: float) -> Decision:
    turn = next((queued for queued in state.queue if queued.turn_id == turn_id), None)
    if turn is None:
        return ignored("failure_ignored", turn_id, "turn_not_live")
    return Decision((wording.failure(turn, error, at),), (EndRun(turn_id, "failed"),))
