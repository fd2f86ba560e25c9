"""The search finds nothing in the shipped rules, and finds each rule that is taken away."""

from collections.abc import Callable

import pytest

from explorer.__main__ import main
from explorer.search import Explorer, Step, explore
from explorer.world import Bounds, World, beginning
from paddock.rules.session.commands import AwaitAck, AwaitCancelAck, CancelRun, EndRun, ForceStop
from paddock.rules.session.decide import Decision, step
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    Message,
    OutputReceived,
    RunFailed,
    UserInput,
)
from paddock.rules.session.state import SessionState
from paddock.rules.values import replace

spec = pytest.mark.spec
SMALL = Bounds(repeats=0, lies=0, chunks=0)


@spec("turn/always-ends")
@pytest.mark.parametrize(
    "bounds",
    [SMALL, replace(SMALL, while_busy=("interrupt", "reject")), replace(SMALL, agents=1, repeats=1, lies=1, chunks=1)],
    ids=["queue and interrupt", "interrupt and reject", "one agent, repeats and lies"],
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


SABOTAGES: dict[str, tuple[Step, str, int]] = {
    "1 an ended turn ends again": (late_acks_count, "turn/ends-once", 3),
    "2 a cancel before the first word is dropped": (cancel_means_the_speaker, "cancel/means-the-turn", 2),
    "4 two turns at once": (turns_run_side_by_side, "turn/one-at-a-time", 2),
    "5 no timer for the ack": (never_asking(AwaitAck), "wait/has-a-timer", 1),
    "5 no timer for the cancel": (never_asking(AwaitCancelAck), "wait/has-a-timer", 2),
    "5 the ack timeout is ignored": (ignoring(AckTimedOut), "ack/timeout-fails-and-cancels", 2),
    "5 the cancel timeout is ignored": (ignoring(CancelTimedOut), "cancel/comes-to-an-end", 3),
    "5 nobody is cut off": (never_asking(ForceStop), "cancel/comes-to-an-end", 3),
    "6 a route timeout does not cancel": (
        never_asking(CancelRun, after=AckTimedOut),
        "ack/timeout-fails-and-cancels",
        2,
    ),
    "7 a lost agent goes unnoticed": (ignoring(RunFailed), "failure/ends-the-turn", 2),
    "8 a cancel beats the final word": (cancel_beats_final, "output/final-ends-the-turn", 3),
    "the line is forgotten": (the_line_is_forgotten, "turn/ends-once", 3),
    "a foreign agent is believed": (anybody_may_speak, "output/unchanged", 2),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_each_rule_that_is_taken_away_is_missed_with_a_shortest_trace(name: str) -> None:
    sabotaged, line, length = SABOTAGES[name]
    report = explore(Bounds(), sabotaged, max_transitions=200_000)

    assert any(broken.startswith(line) for broken in report.broken), report.broken
    assert len(report.trace) == length, report.trace


@spec("turn/always-ends")
def test_a_turn_that_never_ends_is_found_even_when_every_single_step_looks_right() -> None:
    def blind(*_: object) -> tuple[str, ...]:
        return ()

    report = Explorer(SMALL, ignoring(RunFailed), check=blind).explore(max_transitions=200_000)

    assert any("never ends" in broken for broken in report.broken)
    assert "timer deadline t1" in report.trace
    assert len(report.trace) == 5, report.trace


def test_the_world_runs_down_so_that_every_path_comes_to_an_end() -> None:
    """Without this, places where nothing is bound to happen would say nothing about paths that go round for ever."""
    explorer = Explorer(replace(SMALL, agents=1))
    first = beginning(replace(SMALL, agents=1))
    done: set[World] = set()
    path: dict[World, object] = {first: explorer.successors(first)}
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
    assert main(["--agents", "1", "--inputs", "1", "--lies", "0"]) == 0

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
