"""An agent that took over and fails before its first word gives the conversation back."""

import pytest

from paddock.rules.errors import EndCode
from paddock.rules.session.evolve import fold
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    HandoverAnswered,
    HandoverRequested,
    InputAcknowledged,
    Message,
    RemoveRequested,
    RunFailed,
    SwitchRequested,
)
from paddock.rules.session.state import SessionState, from_bytes, to_bytes
from rules.session.playing import T1, T2, T3, T4, A, B, Session, agents, output, play, says, spec

C = "cyd"
THREE = agents(A, cyd="queue")


def handed_over(*before: Message, default: str | None = A) -> Session:
    """Ada was asked and has handed over to bob, who is a member and has not taken his turn yet."""
    asked = HandoverRequested("h1", T1, A, B, frozenset({A, B, C}), default_agent_id=default)
    yes = HandoverAnswered("h1", "uma", confirmed=True, turn_id=T2)
    return play(says(T1), *before, asked, yes, output("FINAL"), after=SessionState(members=(B,), opened=True))


CRASH = RunFailed(T2, "runner.crashed", "gone")


@spec("handover/falls-back")
@pytest.mark.parametrize("failing", [[CRASH], [AckTimedOut(T2)], [InputAcknowledged(T2), CRASH]], ids=str)
def test_the_one_who_handed_over_is_active_again_when_the_other_cannot_start(failing: list[Message]) -> None:
    failed = play(*failing, after=handed_over())

    assert failed.state.active_agent_id == A
    assert failed.last.payload == {
        "from": B,
        "to": A,
        "reason": "handover_failed",
        "trigger": failed.facts[-2].subtype if failing[-1] is CRASH else "ROUTE_TIMEOUT",
    }
    answered = play(says(T3), after=failed)
    assert answered.state.turn is not None
    assert answered.state.turn.agent_id == A


@spec("handover/falls-back")
def test_an_agent_that_has_said_a_word_keeps_the_conversation_when_it_fails_later() -> None:
    spoke = play(output("CHUNK", T2, B), after=handed_over())
    assert play(CRASH, after=spoke).state.active_agent_id == B

    done = play(output("FINAL", T2, B), says(T3), after=handed_over())
    assert play(RunFailed(T3, "runner.crashed", "gone"), after=done).state.active_agent_id == B


@spec("handover/falls-back")
@pytest.mark.parametrize("code", ["host_restarted", "host_shutdown", "host_lost"])
def test_the_end_of_the_host_gives_nothing_back_but_the_next_failure_does(code: EndCode) -> None:
    ended = play(RunFailed(T2, code, "the host ended"), after=handed_over())
    assert ended.state.active_agent_id == B

    restored = from_bytes(to_bytes(ended.state))
    failed = play(says(T3), RunFailed(T3, "runner.crashed", "gone"), after=restored)
    assert failed.state.active_agent_id == A


@spec("handover/falls-back")
def test_the_log_alone_tells_who_gets_the_conversation_back() -> None:
    begun = SessionState(members=(B,), opened=True)
    story = handed_over()
    assert fold(begun, story.facts) == story.state
    assert play(CRASH, after=fold(begun, story.facts)).state.active_agent_id == A


@spec("handover/falls-back")
def test_who_stops_the_new_agent_has_not_sent_it_away() -> None:
    stopped = play(CancelRequested(T2, "uma"), CancelAcknowledged(T2), after=handed_over())
    assert stopped.state.active_agent_id == B


@spec("handover/falls-back")
def test_who_made_another_agent_active_has_decided() -> None:
    chosen = play(SwitchRequested(A, "uma"), SwitchRequested(B, "uma"), CRASH, after=handed_over())
    assert chosen.state.active_agent_id == B


@spec("handover/falls-back")
@pytest.mark.parametrize(("default", "heir"), [(C, C), (A, C), (None, C)])
def test_when_the_first_agent_has_left_the_default_answers_or_who_joined_first(default: str | None, heir: str) -> None:
    begun = SessionState(members=(B, C), opened=True)
    asked = HandoverRequested("h1", T1, A, B, frozenset({A, B, C}), default_agent_id=default)
    yes = HandoverAnswered("h1", "uma", confirmed=True, turn_id=T2)
    left = play(says(T1), asked, yes, output("FINAL"), RemoveRequested("x1", A, "uma"), CRASH, after=begun)

    assert left.state.active_agent_id == heir


@spec("handover/falls-back")
def test_when_nobody_else_is_left_the_default_joins_with_the_next_input() -> None:
    alone = play(RemoveRequested("x1", A, "uma"), CRASH, after=handed_over(default=C))
    assert alone.state.active_agent_id is None

    answered = play(says(T3, among=agents(C, cyd="queue")), after=alone)
    assert answered.state.turn is not None
    assert answered.state.turn.agent_id == C


@spec("handover/falls-back")
@pytest.mark.parametrize("default", [None, B])
def test_when_there_is_nobody_to_fall_back_to_nothing_changes(default: str | None) -> None:
    alone = play(RemoveRequested("x1", A, "uma"), CRASH, after=handed_over(default=default))
    assert alone.state.active_agent_id == B


@spec("handover/falls-back")
def test_when_the_first_agent_fails_as_well_nothing_goes_round() -> None:
    waiting = play(says(T3), CRASH, after=handed_over())
    assert (waiting.state.active_agent_id, waiting.state.turn and waiting.state.turn.agent_id) == (A, A)

    both = play(RunFailed(T3, "runner.crashed", "gone"), after=waiting)
    assert both.said == ["ERROR:RUN_FAILED>FRONTEND"]
    assert play(says(T4), after=both).state.active_agent_id == A
