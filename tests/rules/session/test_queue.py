"""What happens to input that arrives while a turn is live: the policy of the agent that is busy decides."""

import pytest

from paddock.rules.session.commands import AwaitAck, AwaitCancelAck, CancelRun, EndRun, StartRun
from paddock.rules.session.messages import AckTimedOut, CancelAcknowledged, CancelRequested, CancelTimedOut, RunFailed
from rules.session.playing import T1, T2, T3, T4, A, B, Session, agents, output, play, says, spec

ENDS = {
    "final": (output("FINAL"),),
    "failure": (RunFailed(T1, "runner.crashed", "gone"),),
    "ack timeout": (AckTimedOut(T1),),
    "cancel": (CancelRequested(T1, "uma"), CancelAcknowledged(T1)),
    "cancel timeout": (CancelRequested(T1, "uma"), CancelTimedOut(T1)),
}


def waiting(session: Session) -> list[str]:
    return [queued.turn_id for queued in session.state.queue]


@spec("queue/queue")
def test_input_to_a_busy_agent_waits_in_line() -> None:
    session = play(says(T2), after=play(says(T1)))

    assert session.said == ["USER_INPUT>SYSTEM", "EVENT:TURN_QUEUED>FRONTEND"]
    assert session.last.payload == {"agent_id": A, "position": 1, "while_busy": "queue"}
    assert session.commands == ()
    assert waiting(session) == [T2]


@spec("queue/next-in-the-same-breath")
@pytest.mark.parametrize("end", ENDS)
def test_the_next_turn_starts_with_the_facts_that_end_the_one_before(end: str) -> None:
    session = play(*ENDS[end], after=play(says(T1), says(T2)))

    assert session.said[-2:] == ["USER_INPUT>AGENT", "EVENT:TURN_ACCEPTED>FRONTEND"]
    assert session.commands[-2:] == (StartRun(T2, A), AwaitAck(T2))
    assert session.commands[-3] == session.ends[0]
    assert session.state.turn is not None
    assert session.state.turn.turn_id == T2


@spec("queue/next-in-the-same-breath")
def test_a_turn_keeps_its_trace_its_user_and_its_time_of_admission_while_it_waits() -> None:
    session = play(says(T1, at=1.0), says(T2, at=2.0), output("FINAL", at=9.0))

    assert session.state.turn is not None
    turn = session.state.turn
    assert (turn.trace_id, turn.requested_by, turn.created_at) == ("trace-t2", "user:uma", 2.0)
    assert all(fact.trace_id == f"trace-{fact.turn_id}" for fact in session.facts)
    assert session.last.time == 9.0


@spec("queue/admission-order")
def test_turns_run_one_after_the_other_in_the_order_of_admission() -> None:
    session = play(says(T1), says(T2), says(T3), output("FINAL"), output("FINAL", T2), output("FINAL", T3))

    assert [command.turn_id for command in session.commands if isinstance(command, StartRun)] == [T1, T2, T3]
    assert session.ends == [EndRun(T1, "completed"), EndRun(T2, "completed"), EndRun(T3, "completed")]


@spec("route/mention")
def test_a_queued_mention_switches_when_its_turn_comes_and_not_before() -> None:
    queued = play(says(T1), says(T2, to=B))
    assert queued.state.active_agent_id == A
    assert queued.last.payload["agent_id"] == B

    session = play(output("FINAL"), after=queued)
    assert session.said[3:5] == ["EVENT:AGENT_ADDED>FRONTEND", "CONTROL:SWITCH_AGENT>BROADCAST"]
    assert session.state.active_agent_id == B


@spec("route/follows-the-conversation")
def test_queued_input_without_a_mention_goes_to_whoever_is_active_then() -> None:
    queued = play(says(T1), says(T2, to=B), says(T3))
    assert queued.last.payload == {"agent_id": B, "position": 2, "while_busy": "queue"}
    assert play(says(T4, to=A), says("t5"), after=queued).last.payload == {
        "agent_id": A,
        "position": 4,
        "while_busy": "queue",
    }

    session = play(output("FINAL"), output("FINAL", T2, B), after=queued)
    assert StartRun(T3, B) in session.commands


@spec("route/follows-the-conversation")
def test_when_the_mention_before_it_is_withdrawn_queued_input_stays_with_the_active_agent() -> None:
    queued = play(says(T1), says(T2, to=B), says(T3), CancelRequested(T2, "uma"))

    assert StartRun(T3, A) in play(output("FINAL"), after=queued).commands


@spec("queue/interrupt")
def test_interrupting_input_stops_the_live_turn_and_goes_first() -> None:
    busy = play(says(T1), says(T2))
    session = play(says(T3, among=agents(ada="interrupt")), after=busy)

    assert session.said == [
        "USER_INPUT>SYSTEM",
        "EVENT:TURN_QUEUED>FRONTEND",
        "CONTROL:CANCEL>AGENT",
        "EVENT:CANCEL_SENT>FRONTEND",
    ]
    assert session.commands == (CancelRun(T1, A, "interrupted"), AwaitCancelAck(T1))
    assert waiting(session) == [T3, T2]
    assert StartRun(T3, A) in play(CancelAcknowledged(T1), after=session).commands


@spec("queue/interrupt")
def test_inputs_that_interrupt_together_keep_their_order_and_cancel_once() -> None:
    among = agents(ada="interrupt")
    session = play(says(T1), says(T2), says(T3, among=among), says(T4, among=among))

    assert waiting(session) == [T3, T4, T2]
    assert sum(isinstance(command, CancelRun) for command in session.commands) == 1


@spec("queue/reject")
def test_a_busy_agent_that_rejects_fails_the_new_turn_only() -> None:
    session = play(says(T2, among=agents(ada="reject")), after=play(says(T1)))

    assert session.said == ["USER_INPUT>SYSTEM", "ERROR:RUN_FAILED>FRONTEND"]
    assert (session.last.payload["code"], session.last.payload["retryable"]) == ("session_busy", True)
    assert session.ends == [EndRun(T2, "failed")]
    assert session.state.live_turn_ids == (T1,)


@spec("queue/busy-agents-policy")
def test_the_policy_of_the_busy_agent_counts_and_not_that_of_the_agent_asked_for() -> None:
    session = play(says(T2, to=B, among=agents(ada="queue", bob="reject")), after=play(says(T1)))

    assert waiting(session) == [T2]


@spec("queue/full")
@pytest.mark.parametrize("policy", ["queue", "interrupt"])
def test_a_full_line_turns_input_away(policy: str) -> None:
    among = agents(ada=policy, max_queue=1)
    session = play(says(T3, among=among), after=play(says(T1, among=among), says(T2, among=among)))

    assert session.last.payload["code"] == "session_busy"
    assert waiting(session) == [T2]


@spec("queue/expires")
def test_a_turn_can_fail_while_it_waits() -> None:
    session = play(RunFailed(T2, "deadline_exceeded", "too long in line"), after=play(says(T1), says(T2)))

    assert session.said == ["ERROR:RUN_FAILED>FRONTEND"]
    assert session.last.sender == "system"
    assert session.ends == [EndRun(T2, "failed")]
    assert session.state.live_turn_ids == (T1,)
