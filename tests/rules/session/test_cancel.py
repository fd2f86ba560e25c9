"""Scenario C: a turn is asked to stop, and ends whether or not its agent answers."""

from paddock.rules.session.commands import AwaitCancelAck, CancelRun, EndRun, ForceStop
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    InputAcknowledged,
    RunFailed,
)
from paddock.rules.session.state import SessionState, TurnStatus, Wait
from rules.session.playing import T1, T2, A, output, play, says, spec

CANCEL = CancelRequested(T1, "uma")


@spec("cancel/needs-ack")
def test_a_turn_is_canceled_only_after_the_agent_acknowledges() -> None:
    session = play(CANCEL, after=play(says(T1), InputAcknowledged(T1)))
    assert session.said == ["CONTROL:CANCEL>SYSTEM", "CONTROL:CANCEL>AGENT", "EVENT:CANCEL_SENT>FRONTEND"]
    assert session.facts[0].sender == "user:uma"
    assert session.commands == (CancelRun(T1, A, "user"), AwaitCancelAck(T1))
    assert session.state.turn is not None

    session = play(CancelAcknowledged(T1), after=session)
    assert session.said == ["CONTROL:CANCEL_ACK>SYSTEM", "EVENT:CANCELED>FRONTEND"]
    assert session.facts[0].sender == f"agent:{A}"
    assert session.commands == (EndRun(T1, "cancelled"),)
    assert session.state.turn is None


@spec("cancel/means-the-turn")
def test_a_cancel_before_the_first_word_is_not_lost() -> None:
    session = play(CancelRequested(None, "uma"), after=play(says(T1)))

    assert session.state.speaking_agent_id is None
    assert session.state.turn is not None
    assert session.state.turn.is_being_cancelled


@spec("cancel/replaces-the-ack-wait")
def test_a_turn_that_is_being_cancelled_waits_only_for_the_answer_to_the_cancel() -> None:
    session = play(says(T1), CANCEL)
    assert session.state.turn is not None
    assert session.state.turn.waiting == (Wait.CANCEL_ACK,)
    assert play(AckTimedOut(T1), after=session).facts == ()

    session = play(InputAcknowledged(T1), after=session)
    assert session.state.turn is not None
    assert (session.state.turn.status, session.state.turn.waiting) == (TurnStatus.RUNNING, (Wait.CANCEL_ACK,))


@spec("cancel/idempotent")
def test_a_second_cancel_says_nothing_new() -> None:
    pending = play(says(T1), CANCEL)
    session = play(CANCEL, CancelRequested(None, "uma"), after=pending)

    assert (session.facts, session.commands, session.state) == ((), (), pending.state)
    assert [note.action for note in session.notes] == ["cancel_repeated"] * 2


@spec("cancel/comes-to-an-end")
def test_an_agent_that_does_not_answer_is_cut_off_and_the_turn_ends_as_canceled() -> None:
    session = play(CancelTimedOut(T1), after=play(says(T1), CANCEL))

    assert session.said == ["ERROR:CANCEL_TIMEOUT>FRONTEND", "EVENT:CANCELED>FRONTEND"]
    assert session.last.payload == {"forced": True}
    assert session.commands == (ForceStop(T1, A), EndRun(T1, "cancelled"))
    assert play(CancelAcknowledged(T1), after=session).facts == ()


@spec("cancel/failure-is-the-answer")
def test_a_run_that_fails_while_it_is_cancelled_ends_as_canceled_and_keeps_its_error() -> None:
    session = play(RunFailed(T1, "runner.crashed", "gone"), after=play(says(T1), CANCEL))

    assert session.said == ["CONTROL:CANCEL_ACK>SYSTEM", "EVENT:CANCELED>FRONTEND"]
    assert session.last.payload["error"]["code"] == "runner.crashed"
    assert session.ends == [EndRun(T1, "cancelled")]


@spec("cancel/final-wins")
def test_a_final_word_beats_a_cancel_still_on_its_way() -> None:
    session = play(output("FINAL"), after=play(says(T1), InputAcknowledged(T1), CANCEL))
    assert session.ends == [EndRun(T1, "completed")]

    late = play(CancelAcknowledged(T1), CancelTimedOut(T1), after=session)
    assert (late.facts, late.commands) == ((), ())
    assert [note.action for note in late.notes] == ["cancel_ack_ignored", "cancel_timeout_ignored"]


@spec("cancel/words-until-the-ack")
def test_what_the_agent_says_before_it_stops_is_still_forwarded() -> None:
    session = play(output("CHUNK"), after=play(says(T1), InputAcknowledged(T1), CANCEL))

    assert session.said == ["AGENT_OUTPUT:CHUNK>FRONTEND"]
    assert session.state.turn is not None
    assert session.state.turn.is_being_cancelled


@spec("cancel/nothing-live")
def test_a_cancel_with_nothing_to_stop_says_so_to_the_session_and_not_to_an_ended_turn() -> None:
    ended = play(says(T1), output("FINAL"))
    for cancel in (CANCEL, CancelRequested(None, "uma"), CancelRequested("t9", "uma")):
        session = play(cancel, after=ended)
        assert session.said == ["EVENT:NO_ACTIVE_SPEAKING>FRONTEND"]
        assert (session.last.turn_id, session.last.payload) == (None, {"turn_id": cancel.turn_id})
        assert session.commands == ()


@spec("cancel/nothing-live")
def test_a_cancel_of_an_ended_turn_leaves_the_live_one_alone() -> None:
    session = play(CANCEL, after=play(says(T1), output("FINAL"), says(T2)))

    assert session.said == ["EVENT:NO_ACTIVE_SPEAKING>FRONTEND"]
    assert session.state.live_turn_ids == (T2,)


@spec("cancel/queued")
def test_a_cancel_of_a_queued_turn_takes_it_out_of_the_line() -> None:
    session = play(CancelRequested(T2, "uma", "changed my mind"), after=play(says(T1), says(T2)))

    assert session.said == ["EVENT:CANCELED>FRONTEND"]
    assert session.last.payload == {"reason": "changed my mind", "by": "user:uma"}
    assert session.commands == (EndRun(T2, "cancelled"),)
    assert session.state.live_turn_ids == (T1,)


@spec("cancel/unasked-ack")
def test_an_ack_to_a_cancel_nobody_asked_for_does_not_end_the_turn() -> None:
    session = play(CancelAcknowledged(T1), CancelTimedOut(T1), after=play(says(T1), InputAcknowledged(T1)))

    assert (session.facts, session.state.live_turn_ids) == ((), (T1,))
    assert session.notes[0].reason == "not_asked_to_stop"


@spec("session/closed")
def test_a_closed_session_takes_no_cancel() -> None:
    session = play(CANCEL, after=SessionState(opened=True, closed=True))

    assert session.facts == ()
    assert session.notes[0].reason == "session_closed"
