"""The search finds nothing in the shipped rules, and finds each rule that is taken away."""

from collections.abc import Callable, Iterator

import pytest

from explorer.__main__ import main
from explorer.search import Explorer, Step, explore
from explorer.world import Bounds, World, beginning
from paddock.rules.session.commands import (
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    CancelRun,
    EndRun,
    ForceStop,
)
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    ConfirmTimedOut,
    HandoverAnswered,
    ManagerTimedOut,
    Message,
    OutputReceived,
    RemoveRequested,
    RunFailed,
    UserInput,
)
from paddock.rules.session.state import SessionState
from paddock.rules.values import replace

spec = pytest.mark.spec
SMALL = Bounds(repeats=0, lies=0, lates=0, chunks=0, removes=0, handovers=0, closes=0)
ONE_INPUT = replace(SMALL, inputs=1, crashes=0, cancels=0)


@spec("turn/always-ends")
@spec("chain/always-ends")
@pytest.mark.parametrize(
    "bounds",
    [
        SMALL,
        replace(SMALL, while_busy=("interrupt", "reject"), lates=1, cancels=0),
        replace(SMALL, agents=1, repeats=1, lies=1, chunks=1),
        replace(SMALL, while_busy=("steer", "steer"), crashes=0),
        replace(ONE_INPUT, cancels=1, crashes=1, removes=1),
        replace(ONE_INPUT, cancels=1, handovers=1, closes=1),
        replace(ONE_INPUT, handovers=1, removes=1, closes=1),
        replace(ONE_INPUT, agents=3, handovers=2, crashes=1, switches=1),
        replace(ONE_INPUT, inputs=0, invites=1, switches=1, removes=1, opens=2, closes=1, repeats=1),
        replace(ONE_INPUT, invites=1, closes=1, opens=1),
    ],
    ids=[
        "queue and interrupt",
        "interrupt and reject",
        "one agent, repeats and lies",
        "steering",
        "remove, cancel, crash",
        "handover, cancel, close",
        "handover, remove, close",
        "handovers among three, crash, switch",
        "members and doors without a turn",
        "invite, close, open again",
    ],
)
def test_every_order_of_events_keeps_every_promise_and_ends_every_turn(bounds: Bounds) -> None:
    report = explore(bounds)

    assert (report.trace, report.broken) == ((), ())
    assert report.complete
    assert report.ends > 0


Sabotage = Callable[[SessionState, Message], tuple[SessionState, Decision]]


def ignoring(kind: type) -> Sabotage:
    """The rules, deaf to one kind of message."""

    def deaf(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
        return (state, Decision()) if isinstance(message, kind) else step(state, message)

    return deaf


def never_asking(command: type, *, after: type = object) -> Sabotage:
    """The rules, which never ask the host for one thing."""

    def mute(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
        state, decision = step(state, message)
        kept = tuple(each for each in decision.commands if not isinstance(each, command))
        return state, replace(decision, commands=kept) if isinstance(message, after) else decision

    return mute


def late_acks_count(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    if isinstance(message, CancelAcknowledged) and message.turn_id not in state.live_turn_ids:
        fact = Fact(Event.EVENT, "CANCELED", Target.FRONTEND, turn_id=message.turn_id)
        return state, Decision((fact,), (EndRun(message.turn_id, "cancelled"),))
    return step(state, message)


def cancel_means_the_speaker(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    if isinstance(message, CancelRequested) and state.speaking_agent_id is None:
        return state, Decision((Fact(Event.EVENT, "NO_ACTIVE_SPEAKING", Target.FRONTEND),))
    return step(state, message)


def turns_run_side_by_side(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    return step(replace(state, turn=None) if isinstance(message, UserInput) else state, message)


def cancel_beats_final(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    stopping = state.turn is not None and state.turn.is_being_cancelled
    final = isinstance(message, OutputReceived) and message.kind == "FINAL"
    return (state, Decision()) if stopping and final else step(state, message)


def the_line_is_forgotten(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    return step(state if isinstance(message, UserInput) else replace(state, queue=()), message)


def anybody_may_speak(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    if isinstance(message, OutputReceived) and state.turn is not None:
        after, decision = step(state, replace(message, agent_id=state.turn.agent_id))
        return after, decision
    return step(state, message)


def remove_does_not_wait(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    """The agent leaves at once, whatever it is doing."""
    if isinstance(message, RemoveRequested) and state.turn is not None:
        after, decision = step(replace(state, turn=None, speaking_agent_id=None), message)
        return replace(after, turn=state.turn, speaking_agent_id=state.speaking_agent_id), decision
    return step(state, message)


def close_does_not_wait(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    if isinstance(message, CloseRequested) and state.turn is not None and not state.transactions:
        after, decision = step(replace(state, turn=None, speaking_agent_id=None), message)
        return replace(after, turn=state.turn, speaking_agent_id=state.speaking_agent_id), decision
    return step(state, message)


def a_confirm_counts_twice(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    after, decision = step(state, message)
    if isinstance(message, HandoverAnswered) and message.confirmed and not decision.facts:
        fact = Fact(Event.CONTROL, "HANDOVER_CONFIRM", Target.BROADCAST, tx_id=message.tx_id)
        return after, Decision((fact,))
    return after, decision


def a_failed_heir_stays(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    after, decision = step(replace(state, fallback=None), message)
    kept = state.fallback if after.active_agent_id == state.active_agent_id else after.fallback
    return replace(after, fallback=kept), decision


SABOTAGES: dict[str, tuple[Step, str, int]] = {
    "1 an ended turn ends again": (late_acks_count, "turn/ends-once", 3),
    "2 a cancel before the first word is dropped": (cancel_means_the_speaker, "cancel/means-the-turn", 2),
    "3 an agent leaves in the middle of its turn": (remove_does_not_wait, "remove/waits-for-its-turn", 2),
    "3 a session closes over a live turn": (close_does_not_wait, "session/closed", 3),
    "4 two turns at once": (turns_run_side_by_side, "turn/one-at-a-time", 2),
    "5 no timer for the ack": (never_asking(AwaitAck), "wait/has-a-timer", 1),
    "5 no timer for the cancel": (never_asking(AwaitCancelAck), "wait/has-a-timer", 2),
    "5 the ack timeout is ignored": (ignoring(AckTimedOut), "ack/timeout-fails-and-cancels", 2),
    "5 the cancel timeout is ignored": (ignoring(CancelTimedOut), "cancel/comes-to-an-end", 3),
    "5 nobody is cut off": (never_asking(ForceStop), "cancel/comes-to-an-end", 3),
    "5 no timer for the session manager": (never_asking(AwaitManager), "wait/has-a-timer", 2),
    "5 the manager's timeout is ignored": (ignoring(ManagerTimedOut), "chain/answers-are-heard", 3),
    "5 no timer for the user's word": (never_asking(AwaitConfirm), "wait/has-a-timer", 2),
    "5 the user's timeout is ignored": (ignoring(ConfirmTimedOut), "chain/answers-are-heard", 3),
    "6 a route timeout does not cancel": (
        never_asking(CancelRun, after=AckTimedOut),
        "ack/timeout-fails-and-cancels",
        2,
    ),
    "7 a lost agent goes unnoticed": (ignoring(RunFailed), "failure/ends-the-turn", 2),
    "8 a cancel beats the final word": (cancel_beats_final, "output/final-ends-the-turn", 3),
    "the line is forgotten": (the_line_is_forgotten, "turn/ends-once", 3),
    "a confirm counts twice": (a_confirm_counts_twice, "handover/needs-a-word", 4),
    "a foreign agent is believed": (anybody_may_speak, "output/unchanged", 2),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_each_rule_that_is_taken_away_is_missed_with_a_shortest_trace(name: str) -> None:
    sabotaged, line, length = SABOTAGES[name]
    report = explore(Bounds(), sabotaged, max_transitions=200_000)

    assert any(broken.startswith(line) for broken in report.broken), report.broken
    assert len(report.trace) == length, report.trace


def test_an_agent_that_cannot_start_and_keeps_the_conversation_is_found() -> None:
    """Apart from the others, because a handover takes many moves: the world is smaller for it."""
    report = explore(replace(ONE_INPUT, handovers=1), a_failed_heir_stays)

    assert any(broken.startswith("handover/falls-back") for broken in report.broken), report.broken
    assert len(report.trace) == 6, report.trace


@spec("turn/always-ends")
def test_a_turn_that_never_ends_is_found_even_when_every_single_step_looks_right() -> None:
    def blind(*_: object) -> tuple[str, ...]:
        return ()

    report = Explorer(SMALL, ignoring(RunFailed), check=blind).explore(max_transitions=200_000)

    assert any("never ends" in broken for broken in report.broken)
    assert "timer deadline t1" in report.trace
    assert len(report.trace) == 4, report.trace


def test_the_world_runs_down_so_that_every_path_comes_to_an_end() -> None:
    """Without this, places where nothing is bound to happen would say nothing about paths that go round for ever."""
    explorer = Explorer(replace(SMALL, agents=1))
    first = beginning(replace(SMALL, agents=1))
    done: set[World] = set()
    path: dict[World, Iterator[tuple[object, World | None, object]]] = {first: explorer.successors(first)}
    while path:
        world, successors = next(reversed(path.items()))
        _, after, _ = next(successors, (None, None, None))
        if after is None:
            done.add(world)
            del path[world]
            continue
        assert after not in path, "the world came back to where it was"
        if after not in done:
            path[after] = explorer.successors(after)
    assert len(done) > 100


def test_the_command_prints_one_line_and_succeeds_when_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--agents", "1", "--inputs", "1", "--lies", "0", "--lates", "0", "--closes", "0"]) == 0

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("states=")
    assert "violations=0" in line


def test_the_command_tells_the_shortest_trace_and_fails_when_a_promise_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([], step=cancel_means_the_speaker) == 1

    _, first, second, broken = capsys.readouterr().out.splitlines()
    assert (first.split(maxsplit=1)[1], second.split(maxsplit=1)[1]) == ("user speaks t1", "user cancels")
    assert "cancel/means-the-turn" in broken


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "bounds",
    [Bounds(), Bounds(lates=0, crashes=0), Bounds(lates=0, lies=0, invites=1, while_busy=("steer", "reject"))],
    ids=["everything once", "no stale timers", "steering and an invitation"],
)
def test_a_million_states_keep_every_promise(bounds: Bounds) -> None:
    report = Explorer(bounds).explore(max_states=400_000 if bounds != Bounds() else 1_000_000)

    assert (report.trace, report.broken) == ((), ())
    assert report.complete or report.states >= 400_000
    assert report.seconds < 1200
