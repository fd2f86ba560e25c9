"""Scenarios A, B and G: an input gets to its agent, the agent takes it, speaks, and ends it."""

from paddock.rules.session.commands import AwaitAck, CancelRun, EndRun, StartRun
from paddock.rules.session.facts import Target
from paddock.rules.session.messages import AckTimedOut, Agents, InputAcknowledged, RunFailed, RunGranted
from paddock.rules.session.state import SessionState, TurnStatus, Wait
from rules.session.playing import T1, T2, A, B, agents, output, play, says, spec

ACCEPTED = ["USER_INPUT>SYSTEM", "USER_INPUT>AGENT", "EVENT:TURN_ACCEPTED>FRONTEND"]
STARTED = ["CONTROL:INPUT_ACK>SYSTEM", "EVENT:AGENT_STARTED>FRONTEND"]


@spec("session/opens-with-the-first-input")
def test_the_first_input_opens_the_session_with_the_agent_that_answers() -> None:
    session = play(says(T1))

    assert session.said == ["CONTROL:SESSION_OPENED>BROADCAST", *ACCEPTED]
    assert session.facts[0].payload == {"members": [A], "active_agent_id": A, "implicit": True}
    assert session.state.opened
    assert session.state.members == (A,)


@spec("session/opens-with-the-first-input")
def test_a_first_input_that_asks_for_an_agent_opens_the_session_with_that_one() -> None:
    session = play(says(T1, to=B))

    assert session.facts[0].payload["members"] == [B]
    assert "CONTROL:SWITCH_AGENT>BROADCAST" not in session.said


def test_the_timer_of_an_ack_that_came_in_time_is_not_worth_an_audit_row() -> None:
    """Every turn of more than five seconds left one, in the name of its user: dropped, not_waiting."""
    session = play(AckTimedOut(T1), after=play(says(T1), InputAcknowledged(T1)))

    assert (session.facts, session.commands, session.notes) == ((), (), ())
    assert session.state.turn is not None


@spec("input/stored-once")
def test_an_input_is_stored_once_and_sent_to_the_agent_by_reference() -> None:
    _, stored, sent, accepted = play(says(T1, {"choice": 3}, at=7.0)).facts

    assert (stored.sender, stored.payload, stored.metadata, stored.time) == (
        "user:uma",
        {"choice": 3},
        {"lang": "en"},
        7.0,
    )
    assert (sent.target_id, sent.payload, sent.turn_id, sent.trace_id) == (A, None, T1, "trace-t1")
    assert accepted.payload == {"agent_id": A}


@spec("input/started-and-awaited")
def test_an_accepted_input_starts_a_run_and_a_timer_for_its_ack() -> None:
    session = play(says(T1))

    assert session.commands == (StartRun(T1, A), AwaitAck(T1))
    assert session.state.turn is not None
    assert session.state.turn.status is TurnStatus.ROUTING
    assert session.state.turn.waiting == (Wait.INPUT_ACK,)
    assert session.state.user_interruptible


@spec("route/mention")
def test_a_mention_adds_the_agent_switches_to_it_and_stays_with_it() -> None:
    session = play(output("FINAL"), after=play(says(T1)))
    session = play(says(T2, to=B), after=session)

    assert session.said[1:3] == ["EVENT:AGENT_ADDED>FRONTEND", "CONTROL:SWITCH_AGENT>BROADCAST"]
    assert session.facts[2].payload == {"from": A, "to": B, "reason": "mention", "trigger": "USER_INPUT"}
    assert session.commands[0] == StartRun(T2, B)

    session = play(output("FINAL", T2, B), says("t3"), after=session)
    assert StartRun("t3", B) in session.commands


@spec("route/unknown-agent")
def test_asking_for_an_agent_that_does_not_exist_fails_the_turn_and_no_other() -> None:
    session = play(says(T1, to="nobody"))

    assert session.said[1:] == ["USER_INPUT>SYSTEM", "ERROR:AGENT_NOT_IN_SESSION>FRONTEND"]
    assert (session.last.payload["code"], session.last.payload["retryable"]) == ("agent_not_in_session", False)
    assert session.commands == (EndRun(T1, "failed"),)
    assert play(says(T2), after=session).said == ACCEPTED


@spec("route/nobody")
def test_an_input_that_nobody_can_answer_fails_with_no_agent() -> None:
    session = play(says(T1, among=Agents(None, {})))

    assert session.said[1:] == ["USER_INPUT>SYSTEM", "ERROR:RUN_FAILED>FRONTEND"]
    assert session.last.payload["code"] == "no_agent"
    assert session.ends == [EndRun(T1, "failed")]


@spec("route/default")
def test_without_an_active_agent_the_default_joins_and_answers() -> None:
    nobody_there = play(says(T1, among=Agents(None, {})))
    session = play(says(T2), after=nobody_there)

    assert session.said[1:3] == ["EVENT:AGENT_ADDED>FRONTEND", "CONTROL:SWITCH_AGENT>BROADCAST"]
    assert session.facts[2].payload["reason"] == "default_agent"
    assert session.state.active_agent_id == A


@spec("route/default")
def test_an_active_agent_that_is_no_longer_configured_gives_way_to_the_default() -> None:
    session = play(output("FINAL", T1, B), after=play(says(T1, to=B)))
    session = play(says(T2, among=Agents(A, {A: "queue"})), after=session)

    assert session.commands[0] == StartRun(T2, A)
    assert session.state.active_agent_id == A


@spec("ack/starts")
def test_an_ack_makes_the_turn_run() -> None:
    session = play(InputAcknowledged(T1, at=2.0), after=play(says(T1)))

    assert session.said == STARTED
    assert session.facts[0].sender == f"agent:{A}"
    assert session.state.turn is not None
    assert (session.state.turn.status, session.state.turn.waiting) == (TurnStatus.RUNNING, ())


@spec("ack/repeated")
def test_an_ack_that_comes_twice_or_late_is_noted_and_changes_nothing() -> None:
    running = play(says(T1), InputAcknowledged(T1))
    again = play(InputAcknowledged(T1), after=running)
    late = play(InputAcknowledged(T1), after=play(output("FINAL"), after=running))

    assert (again.facts, again.commands, late.facts, late.commands) == ((), (), (), ())
    assert [note.reason for note in (*again.notes, *late.notes)] == ["already_running", "turn_not_live"]


@spec("ack/first-output")
def test_the_first_output_counts_as_the_ack() -> None:
    session = play(output("CHUNK"), after=play(says(T1)))

    assert session.said == [*STARTED, "AGENT_OUTPUT:CHUNK>FRONTEND"]
    assert play(AckTimedOut(T1), after=session).facts == ()


@spec("ack/timeout-fails-and-cancels")
def test_no_ack_in_time_fails_the_turn_and_tells_the_agent_to_stop() -> None:
    session = play(AckTimedOut(T1), after=play(says(T1)))

    assert session.said == ["ERROR:ROUTE_TIMEOUT>FRONTEND", "CONTROL:CANCEL>AGENT"]
    assert (session.facts[0].payload["code"], session.facts[0].payload["retryable"]) == ("route_timeout", True)
    assert session.commands == (CancelRun(T1, A, "route_timeout"), EndRun(T1, "failed"))
    assert session.state.turn is None


@spec("output/unchanged")
def test_output_is_forwarded_as_it_is() -> None:
    word = output("MESSAGE", payload={"type": "tool.call.started"}, at=3.0)
    session = play(word, after=play(says(T1), InputAcknowledged(T1)))

    [fact] = session.facts
    assert (fact.kind, fact.target, fact.sender) == ("AGENT_OUTPUT:MESSAGE", Target.FRONTEND, f"agent:{A}")
    assert fact.payload is word.payload
    assert fact.metadata is word.metadata


@spec("turn/one-speaker")
def test_who_speaks_is_known_from_the_first_word_to_the_end() -> None:
    session = play(says(T1), InputAcknowledged(T1))
    assert session.state.speaking_agent_id is None

    for kind in ("CHUNK", "MESSAGE"):
        speaking = play(output(kind, at=4.0), after=session)
        assert speaking.state.speaking_agent_id == A
        assert speaking.state.turn is not None
        assert speaking.state.turn.last_output_at == 4.0
        assert play(output("FINAL"), after=speaking).state.speaking_agent_id is None


@spec("output/final-ends-the-turn")
def test_the_final_output_completes_the_turn() -> None:
    session = play(output("FINAL"), after=play(says(T1), InputAcknowledged(T1)))

    assert session.said == ["AGENT_OUTPUT:FINAL>FRONTEND"]
    assert session.commands == (EndRun(T1, "completed"),)
    assert not session.state.user_interruptible


@spec("output/foreign-is-dropped")
def test_output_of_an_unknown_an_ended_or_anothers_turn_is_dropped_and_noted() -> None:
    running = play(says(T1), InputAcknowledged(T1))
    ended = play(output("FINAL"), after=running)
    for word, session in (
        (output("CHUNK", "t9"), running),
        (output("FINAL", T1, B), running),
        (output("CHUNK"), ended),
    ):
        heard = play(word, after=session)
        assert (heard.facts, heard.commands, heard.state) == ((), (), session.state)
        assert [note.action for note in heard.notes] == ["output_dropped"]


@spec("failure/ends-the-turn")
def test_a_failed_run_ends_its_turn_acknowledged_or_not() -> None:
    for begun in (play(says(T1)), play(says(T1), InputAcknowledged(T1), output("CHUNK"))):
        session = play(RunFailed(T1, "runner.crashed", "gone", retryable=True), after=begun)
        assert session.said == ["ERROR:RUN_FAILED>FRONTEND"]
        assert session.last.sender == f"agent:{A}"
        assert session.last.payload == {"code": "runner.crashed", "message": "gone", "retryable": True}
        assert session.ends == [EndRun(T1, "failed")]


@spec("turn/ends-once")
def test_nothing_wakes_an_ended_turn() -> None:
    ended = play(says(T1), output("FINAL"))
    late = (InputAcknowledged(T1), AckTimedOut(T1), output("FINAL"), RunFailed(T1, "runner.error", "y"))
    session = play(*late, after=ended)

    assert (session.facts, session.commands, session.state) == ((), (), ended.state)
    assert len(session.notes) == len(late)


@spec("input/repeated")
def test_the_same_turn_is_not_taken_twice_while_it_lives() -> None:
    waiting = play(says(T1), says(T2))
    session = play(says(T1), says(T2), after=waiting)

    assert (session.facts, session.state) == ((), waiting.state)
    assert [note.action for note in session.notes] == ["input_repeated"] * 2


@spec("session/closed")
def test_input_to_a_closed_session_is_on_record_and_fails() -> None:
    closed = SessionState(members=(A,), active_agent_id=A, opened=True, closed=True)
    session = play(says(T1, among=agents()), after=closed)

    assert session.said == ["USER_INPUT>SYSTEM", "ERROR:RUN_FAILED>FRONTEND"]
    assert session.last.payload["code"] == "session_closed"
    assert session.commands == (EndRun(T1, "failed"),)


@spec("input/granted-late")
def test_a_grant_that_comes_late_is_recorded_once_and_only_for_the_live_turn() -> None:
    granted = {"runner_id": "plugin:a/b/c", "deadline_at": 9.0, "grant": {"actions": []}}
    session = play(RunGranted(T1, granted, 3.0), after=play(says(T1)))

    assert session.said == ["EVENT:RUN_GRANTED>SYSTEM"]
    assert session.last.metadata == granted
    assert session.state.turn is not None
    assert session.state.turn.status is TurnStatus.ROUTING
    assert play(RunGranted(T2, granted), after=session).facts == ()
