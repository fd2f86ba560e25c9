"""What survives a restart: the snapshot, the facts read back, and the timers that must run again."""

import msgspec
import pytest

from paddock.rules.log.chain import SALTS_BYTES, Head, recalled, restore, seal
from paddock.rules.session.chains import timers
from paddock.rules.session.commands import (
    AskManager,
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    EndRun,
    StartRun,
)
from paddock.rules.session.evolve import evolve
from paddock.rules.session.facts import ENDINGS, VOCABULARY, Event, Fact, Target
from paddock.rules.session.messages import (
    CancelRequested,
    HandoverAnswered,
    HandoverRequested,
    InputAcknowledged,
    InviteRequested,
    LineResumed,
    ManagerReplied,
    Message,
    RunFailed,
)
from paddock.rules.session.state import Pending, SessionState, Transaction, from_bytes, to_bytes
from paddock.rules.values import replace
from rules.session.playing import T1, T2, T3, T4, A, B, Session, agents, output, play, says, spec


@pytest.fixture
def busy() -> Session:
    interrupting = says(T3, {"pick": [1]}, among=agents(ada="interrupt"))
    return play(says(T1), InputAcknowledged(T1), output("CHUNK", at=2.5), says(T2, to=B), interrupting)


@spec("recovery/snapshot")
def test_a_snapshot_holds_the_whole_state(busy: Session) -> None:
    assert from_bytes(to_bytes(busy.state)) == busy.state


@spec("recovery/snapshot")
def test_no_snapshot_is_a_session_nobody_has_opened() -> None:
    assert from_bytes(b"") == SessionState()


@spec("recovery/snapshot")
def test_a_snapshot_of_another_version_is_read_as_far_as_it_is_known(busy: Session) -> None:
    raw = msgspec.json.decode(to_bytes(busy.state))
    raw["mood"] = "good"
    raw["turn"]["color"] = "red"
    del raw["transactions"]

    assert from_bytes(msgspec.json.encode(raw)) == busy.state


@spec("recovery/fold")
def test_recorded_facts_are_read_back_as_they_were(busy: Session) -> None:
    sealed, _ = seal(Head(), busy.facts, bytes(SALTS_BYTES * len(busy.facts)))

    assert tuple(map(recalled, sealed)) == busy.facts
    assert restore(SessionState(), sealed) == busy.state


@spec("recovery/timers")
def test_every_wait_of_the_state_gets_its_timer_again() -> None:
    assert timers(play(says(T1)).state) == (AwaitAck(T1),)
    assert timers(play(says(T1), CancelRequested(T1, "uma")).state) == (AwaitCancelAck(T1),)
    assert timers(play(says(T1), InputAcknowledged(T1)).state) == ()
    assert timers(SessionState()) == ()


@spec("recovery/timers")
def test_requests_that_were_not_answered_are_made_again_under_their_old_name() -> None:
    inviting = play(InviteRequested("x1", B, "uma"), after=play(says(T1)))
    asked = play(HandoverRequested("h1", T1, "ada", B, frozenset({"ada", B})), after=play(says(T1)))

    assert timers(inviting.state)[1:] == (AskManager("x1", "add_agent", B), AwaitManager("x1"))
    assert timers(asked.state)[1:] == (AwaitConfirm("h1"),)


@spec("recovery/fold")
def test_facts_about_a_turn_that_is_not_there_leave_the_session_as_it_is(busy: Session) -> None:
    about_the_session = {"SESSION_OPENED", "SESSION_CLOSED", "SWITCH_AGENT", ""}
    words = [(event, subtype) for event, subtypes in VOCABULARY.items() for subtype in subtypes - about_the_session]
    for state in (busy.state, play(says(T1)).state, SessionState()):
        for event, subtype in words:
            for target in (Target.FRONTEND, Target.AGENT):
                assert evolve(state, Fact(event, subtype, target, turn_id="t9")) == state


@spec("session/closed")
def test_a_session_can_be_closed_and_opened_again() -> None:
    closed = evolve(play(says(T1), output("FINAL")).state, Fact(Event.CONTROL, "SESSION_CLOSED", Target.BROADCAST))
    assert closed.closed

    payload = {"members": ["ada"], "active_agent_id": "ada"}
    opened = evolve(closed, Fact(Event.CONTROL, "SESSION_OPENED", Target.BROADCAST, payload=payload))
    assert (opened.closed, opened.members) == (False, ("ada",))


@spec("session/known-words")
def test_every_fact_that_ends_a_turn_is_a_known_word() -> None:
    assert all(subtype in VOCABULARY[event] for event, subtype in ENDINGS)
    assert Fact(Event.ERROR, "AGENT_NOT_IN_SESSION", Target.FRONTEND).ending is None


@spec("recovery/snapshot")
def test_unfinished_transactions_are_part_of_the_snapshot() -> None:
    state = SessionState(transactions=(Transaction("x1", "remove_agent", Pending.TURN_END, agent_id="ada"),))

    assert from_bytes(to_bytes(state)) == state


STOPPED = RunFailed(T1, "host_shutdown", "the host was stopped")


def being_stopped(session: Session) -> SessionState:
    return replace(session.state, held=True)


def started_again(state: SessionState) -> SessionState:
    return from_bytes(to_bytes(state))


@spec("queue/survives-a-stop")
@pytest.mark.parametrize("end", [STOPPED, output("FINAL")], ids=["stopped", "finished meanwhile"])
def test_what_waits_stays_in_line_while_the_host_is_being_stopped(end: Message) -> None:
    stopped = play(end, after=being_stopped(play(says(T1), InputAcknowledged(T1), says(T2), says(T3, to=B))))

    assert [command.turn_id for command in stopped.ends] == [T1]
    assert [queued.turn_id for queued in stopped.state.queue] == [T2, T3]
    again = play(LineResumed(5.0), after=started_again(stopped.state))
    assert again.commands == (StartRun(T2, A), AwaitAck(T2))
    assert [queued.turn_id for queued in again.state.queue] == [T3]


@spec("queue/survives-a-stop")
def test_input_behind_a_line_that_nobody_has_gone_on_with_keeps_the_order() -> None:
    stopped = play(STOPPED, after=being_stopped(play(says(T1), says(T2))))
    slipped_in = play(says(T3), after=stopped)
    assert slipped_in.commands == ()

    again = play(says(T4), after=started_again(slipped_in.state))
    assert again.commands == (StartRun(T2, A), AwaitAck(T2))
    assert [queued.turn_id for queued in again.state.queue] == [T3, T4]
    assert play(LineResumed(), after=again).facts == ()


@spec("queue/survives-a-stop")
def test_a_handover_that_the_user_agreed_to_happens_after_the_next_start() -> None:
    asked = HandoverRequested("x1", T1, A, B, frozenset({A, B}))
    busy = play(says(T1), InputAcknowledged(T1), asked, HandoverAnswered("x1", "uma", confirmed=True, turn_id=T2))
    stopped = play(output("FINAL"), after=being_stopped(busy))
    assert stopped.state.turn is None
    assert stopped.commands == (EndRun(T1, "completed"),)

    again = play(LineResumed(), ManagerReplied("x1", "ADD_AGENT_DONE"), after=started_again(stopped.state))
    assert again.commands[-2:] == (StartRun(T2, B), AwaitAck(T2))


def test_a_snapshot_taken_while_stopping_does_not_hold_the_next_owner(busy: Session) -> None:
    assert from_bytes(to_bytes(being_stopped(busy))) == busy.state
