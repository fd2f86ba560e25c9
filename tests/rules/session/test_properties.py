"""Whatever happens, in whatever order: what is true of every list of messages."""

from collections import Counter
from itertools import count
from time import process_time
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.rules.log.chain import SALTS_BYTES, Head, restore, seal
from paddock.rules.session.commands import EndRun
from paddock.rules.session.decide import step
from paddock.rules.session.evolve import fold
from paddock.rules.session.facts import Fact, ManagerAnswer
from paddock.rules.session.messages import (
    AckTimedOut,
    Agents,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    ConfirmTimedOut,
    HandoverAnswered,
    HandoverRequested,
    InputAcknowledged,
    InviteRequested,
    ManagerReplied,
    ManagerTimedOut,
    Message,
    OpenRequested,
    OutputReceived,
    RemoveRequested,
    RunFailed,
    SteeringTaken,
    SwitchRequested,
    UserInput,
)
from paddock.rules.session.state import SessionState, from_bytes, to_bytes
from paddock.rules.values import replace
from rules.session.playing import T1, A, B, output, play, says, spec

TURNS = [f"t{number}" for number in range(1, 6)]
AGENTS = [A, B, "nobody"]

turn_ids = st.sampled_from(TURNS)
policies = st.sampled_from(["queue", "steer", "interrupt", "reject"])
configured = st.builds(
    Agents,
    st.sampled_from([A, B, None]),
    st.dictionaries(st.sampled_from([A, B]), policies),
    st.integers(0, 3),
)
payloads = st.one_of(
    st.none(), st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2)
)
inputs = st.builds(
    UserInput,
    st.just("?"),
    st.just("trace"),
    st.just("u"),
    payloads,
    st.just({}),
    configured,
    st.sampled_from([None, *AGENTS]),
)
agent_ids = st.sampled_from(AGENTS)
tx_ids = st.sampled_from([f"x{number}" for number in range(1, 6)])
manager_payloads = st.just({"members": [A], "active_agent_id": A})
others = st.one_of(
    st.builds(CancelRequested, st.none() | turn_ids, st.just("u")),
    st.builds(
        OutputReceived,
        turn_ids,
        st.sampled_from([A, B]),
        st.sampled_from(["CHUNK", "MESSAGE", "FINAL"]),
        payloads,
        st.just({}),
    ),
    st.builds(RunFailed, turn_ids, st.just("runner.crashed"), st.just("gone")),
    st.builds(SteeringTaken, turn_ids, turn_ids),
    st.builds(SwitchRequested, agent_ids, st.just("u")),
    st.builds(InviteRequested, tx_ids, agent_ids, st.just("u"), st.booleans()),
    st.builds(RemoveRequested, tx_ids, agent_ids, st.just("u"), st.sampled_from([A, B, None])),
    st.builds(HandoverRequested, tx_ids, turn_ids, agent_ids, agent_ids, st.just(frozenset({A, B}))),
    st.builds(HandoverAnswered, st.none() | tx_ids, st.just("u"), st.booleans(), st.just("?")),
    st.builds(OpenRequested, tx_ids, st.just("u")),
    st.builds(CloseRequested, tx_ids, st.just("u")),
    st.builds(ManagerReplied, tx_ids, st.sampled_from(get_args(ManagerAnswer)), manager_payloads),
    st.builds(ManagerTimedOut, tx_ids),
    st.builds(ConfirmTimedOut, tx_ids),
    *(st.builds(kind, turn_ids) for kind in (InputAcknowledged, CancelAcknowledged, AckTimedOut, CancelTimedOut)),
)


BEGINNINGS = (InviteRequested, RemoveRequested, HandoverRequested, OpenRequested, CloseRequested)


def _minted(messages: list[Any]) -> list[Message]:
    """Turn and transaction ids are minted once, in order; time goes on."""
    turns = (f"t{number}" for number in count(1))
    chains = (f"x{number}" for number in count(1))
    named = (
        replace(message, turn_id=next(turns))
        if isinstance(message, UserInput | HandoverAnswered)
        else replace(message, tx_id=next(chains))
        if isinstance(message, BEGINNINGS)
        else message
        for message in messages
    )
    return [replace(message, at=float(moment)) for moment, message in enumerate(named)]


histories = st.lists(st.one_of(inputs, others, others), max_size=40).map(_minted)


@spec("turn/ends-once")
@settings(max_examples=300, deadline=None)
@given(histories)
def test_every_turn_ends_at_most_once_and_the_host_is_told_of_exactly_those_ends(messages: list[Message]) -> None:
    session = play(*messages)
    ends = [(fact.turn_id, fact.ending) for fact in session.facts if fact.ending]

    assert ends == [(command.turn_id, command.status) for command in session.commands if isinstance(command, EndRun)]
    assert all(times == 1 for times in Counter(turn_id for turn_id, _ in ends).values())


@spec("input/never-lost")
@settings(max_examples=200, deadline=None)
@given(histories)
def test_every_input_has_ended_or_is_still_there(messages: list[Message]) -> None:
    session = play(*messages)
    given_in = {message.turn_id for message in messages if isinstance(message, UserInput)}
    over = {fact.turn_id for fact in session.facts if fact.ending}

    assert given_in == over | set(session.state.live_turn_ids)
    assert not over & set(session.state.live_turn_ids)


@spec("recovery/fold")
@settings(max_examples=200, deadline=None)
@given(histories, st.integers(0, 40))
def test_folding_the_recorded_facts_after_any_snapshot_gives_the_state_that_was_stepped_to(
    messages: list[Message], cut: int
) -> None:
    before = play(*messages[:cut])
    after = play(*messages[cut:], after=before)
    first, head = seal(Head(), before.facts, bytes(SALTS_BYTES * len(before.facts)))
    rest, _ = seal(head, after.facts, bytes(SALTS_BYTES * len(after.facts)))

    assert restore(SessionState(), [*first, *rest]) == after.state
    assert restore(from_bytes(to_bytes(before.state)), rest) == after.state


@spec("recovery/snapshot")
@settings(max_examples=200, deadline=None)
@given(histories)
def test_every_state_survives_its_snapshot(messages: list[Message]) -> None:
    state = SessionState()
    for message in messages:
        state, _ = step(state, message)
        assert from_bytes(to_bytes(state)) == state


@spec("recovery/compaction")
@settings(max_examples=200, deadline=None)
@given(histories)
def test_deltas_may_leave_the_log_once_a_later_message_of_the_turn_is_in_it(messages: list[Message]) -> None:
    session = play(*messages)
    last_message = {
        fact.turn_id: index for index, fact in enumerate(session.facts) if _is_output(fact) and not fact.is_delta
    }
    kept = (
        fact
        for index, fact in enumerate(session.facts)
        if not fact.is_delta or index > last_message.get(fact.turn_id, -1)
    )

    assert fold(SessionState(), kept) == session.state


def _is_output(fact: Fact) -> bool:
    return fact.kind.startswith("AGENT_OUTPUT")


@spec("session/pure")
@settings(max_examples=100, deadline=None)
@given(histories)
def test_the_same_messages_always_give_the_same_session(messages: list[Message]) -> None:
    assert play(*messages) == play(*messages)


@spec("session/fast")
def test_a_step_costs_no_more_than_some_microseconds() -> None:
    """Several times faster on an idle machine: fails on a mistake of order, not on a busy neighbour."""
    state = play(says(T1), InputAcknowledged(T1)).state
    word = output("CHUNK")

    def seconds() -> float:
        started = process_time()
        for _ in range(5_000):
            step(state, word)
        return process_time() - started

    assert 5_000 / min(seconds() for _ in range(5)) > 50_000
