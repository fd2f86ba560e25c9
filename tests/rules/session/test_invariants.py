"""A check that never fails is not trusted: each one is shown a step that breaks its promise."""

from collections.abc import Callable

import pytest

from paddock.rules.session import invariants
from paddock.rules.session.commands import AwaitAck, AwaitCancelAck, CancelRun, EndRun, StartRun
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.invariants import violations
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    ConfirmTimedOut,
    HandoverRequested,
    InputAcknowledged,
    Message,
    RemoveRequested,
    RunFailed,
)
from paddock.rules.session.state import Fallback, QueuedTurn, SessionState, Turn, Wait
from paddock.rules.values import replace
from rules.session.playing import T1, T2, T3, A, B, output, play, says

Broken = tuple[SessionState, Message, Decision, SessionState]

NEW = SessionState()
ROUTED = play(says(T1)).state
RUNNING = play(says(T1), InputAcknowledged(T1)).state
BUSY = play(says(T1), says(T2), says(T3)).state
STOPPING = play(says(T1), CancelRequested(T1, "uma")).state
CLOSING = play(CloseRequested("c1", "uma"), after=RUNNING).state
LEAVING = play(RemoveRequested("x1", A, "uma"), after=RUNNING).state
ASKED = play(HandoverRequested("h1", T1, A, B, frozenset({A, B})), after=RUNNING).state
HANDED_OVER = SessionState(
    members=(A, B),
    active_agent_id=B,
    opened=True,
    turn=Turn(T2, "x", "user:uma", B, waiting=(Wait.INPUT_ACK,), parent_turn_id=T1),
    fallback=Fallback(B, A),
)
CLOSED = SessionState(members=(A,), active_agent_id=A, opened=True, closed=True)


def nothing_happens(before: SessionState, message: Message) -> Broken:
    return before, message, Decision(), before


def without(before: SessionState, message: Message, command: type) -> Broken:
    """A good step that forgets to ask the host for something."""
    after, decision = step(before, message)
    return before, message, replace(decision, commands=_others(decision, command)), after


def _others(decision: Decision, command: type) -> tuple[object, ...]:
    return tuple(other for other in decision.commands if not isinstance(other, command))


def with_fact(before: SessionState, message: Message, fact: Fact) -> Broken:
    after, decision = step(before, message)
    return before, message, replace(decision, facts=(*decision.facts, fact)), after


def but_after(before: SessionState, message: Message, **changes: object) -> Broken:
    after, decision = step(before, message)
    return before, message, decision, replace(after, **changes)


def changed_output() -> Broken:
    after, decision = step(RUNNING, word := output("MESSAGE"))
    [fact] = decision.facts
    return RUNNING, word, replace(decision, facts=(replace(fact, payload="something else"),)), after


def about(turn_id: str, subtype: str = "CANCELED") -> Fact:
    return Fact(Event.EVENT, subtype, Target.FRONTEND, turn_id=turn_id)


def left(agent_id: str) -> Fact:
    return Fact(Event.EVENT, "AGENT_REMOVED_LOCAL", Target.FRONTEND, payload={"agent_id": agent_id})


def takes_over() -> Fact:
    return Fact(Event.CONTROL, "HANDOVER_CONTEXT", Target.AGENT, target_id=A, turn_id=T2, tx_id="h1")


def heir_stays() -> Broken:
    after, decision = step(HANDED_OVER, failed := RunFailed(T2, "runner.crashed", "gone"))
    kept = tuple(fact for fact in decision.facts if fact.subtype != "SWITCH_AGENT")
    return HANDED_OVER, failed, replace(decision, facts=kept), replace(after, active_agent_id=B)


BROKEN: dict[str, Callable[[], Broken]] = {
    "turn/one-speaker": lambda: but_after(RUNNING, output("CHUNK"), speaking_agent_id=B),
    "route/active-is-a-member": lambda: but_after(NEW, says(T1), active_agent_id=B),
    "queue/behind-a-live-turn": lambda: but_after(RUNNING, output("FINAL"), queue=(QueuedTurn(T2, "x", "u"),)),
    "wait/has-a-timer": lambda: without(NEW, says(T1), AwaitAck),
    "turn/ends-once": lambda: with_fact(RUNNING, output("FINAL"), about(T1)),
    "turn/end-is-told-once": lambda: without(RUNNING, output("FINAL"), EndRun),
    "turn/silent-after-its-end": lambda: with_fact(RUNNING, output("FINAL"), about(T1, "AGENT_STARTED")),
    "input/never-lost": lambda: nothing_happens(RUNNING, says(T2)),
    "turn/one-at-a-time": lambda: without(NEW, says(T1), StartRun),
    "queue/admission-order": lambda: but_after(BUSY, InputAcknowledged(T1), queue=BUSY.queue[::-1]),
    "cancel/means-the-turn": lambda: nothing_happens(RUNNING, CancelRequested(None, "uma")),
    "cancel/comes-to-an-end": lambda: nothing_happens(STOPPING, CancelTimedOut(T1)),
    "ack/timeout-fails-and-cancels": lambda: without(ROUTED, AckTimedOut(T1), CancelRun),
    "failure/ends-the-turn": lambda: nothing_happens(RUNNING, RunFailed(T1, "runner.error", "y")),
    "output/final-ends-the-turn": lambda: nothing_happens(STOPPING, output("FINAL")),
    "output/unchanged": changed_output,
    "session/known-words": lambda: with_fact(RUNNING, output("CHUNK"), about(T1, "TURN_ADORED")),
    "session/closed": lambda: (CLOSED, says(T1), Decision(commands=(StartRun(T1, A),)), CLOSED),
    "close/nothing-new": lambda: (CLOSING, says(T2), Decision(commands=(StartRun(T2, A),)), CLOSING),
    "remove/left-alone": lambda: (LEAVING, says(T2), Decision(commands=(StartRun(T2, A),)), LEAVING),
    "remove/gone": lambda: with_fact(
        RUNNING, output("CHUNK"), Fact(Event.CONTROL, "CANCEL", Target.AGENT, target_id=B)
    ),
    "remove/waits-for-its-turn": lambda: with_fact(RUNNING, output("CHUNK"), left(A)),
    "handover/needs-a-word": lambda: with_fact(ASKED, output("CHUNK"), takes_over()),
    "handover/falls-back": heir_stays,
    "chain/on-record": lambda: but_after(ASKED, output("CHUNK"), transactions=()),
    "chain/answers-are-heard": lambda: nothing_happens(ASKED, ConfirmTimedOut("h1")),
}


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_promise_is_found(line: str) -> None:
    assert line in {found.split(": ")[0] for found in violations(*BROKEN[line]())}


def test_every_check_is_shown_a_broken_promise() -> None:
    assert set(BROKEN) == set(invariants.CHECKS)


def test_a_timer_for_the_cancel_is_missed_too() -> None:
    assert "wait/has-a-timer" in violations(*without(RUNNING, CancelRequested(T1, "uma"), AwaitCancelAck))[0]


def test_a_turn_that_starts_beside_a_live_one_is_found() -> None:
    after, decision = step(replace(RUNNING, turn=None), says(T2))

    assert any("turn/one-at-a-time" in found for found in violations(RUNNING, says(T2), decision, after))


def test_what_failed_in_line_was_not_overtaken() -> None:
    """Input that asked for an agent which leaves is dropped in the very step in which the next one goes on."""
    waiting = play(says(T2, to=A), says(T3), after=play(says(T1, to=A), says("t0", to=B)))
    removed = play(RemoveRequested("x1", A, "uma"), after=waiting)

    play(CancelAcknowledged(T1), after=removed)


def test_a_turn_that_overtakes_is_found() -> None:
    after, decision = step(replace(BUSY, queue=BUSY.queue[::-1]), output("FINAL"))

    assert any("queue/admission-order" in found for found in violations(BUSY, output("FINAL"), decision, after))
