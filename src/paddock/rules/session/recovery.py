"""Going on after a restart: read recorded facts back, and say which timers must run. Decides nothing again."""

from collections.abc import Iterable

from paddock.rules.chain import StoredFact
from paddock.rules.session.commands import AwaitAck, AwaitCancelAck
from paddock.rules.session.evolve import fold
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.state import SessionState, Wait


def restore(state: SessionState, facts: Iterable[StoredFact]) -> SessionState:
    """The state after these facts, which are in order of number."""
    return fold(state, map(recalled, facts))


def recalled(stored: StoredFact) -> Fact:
    """A recorded fact as it was when it was decided."""
    event, _, subtype = stored.kind.partition(":")
    return Fact(
        Event(event),
        subtype,
        Target(stored.target),
        stored.sender,
        stored.target_id,
        stored.turn_id,
        stored.trace_id,
        stored.tx_id,
        stored.read_payload(),
        stored.read_metadata(),
        stored.time,
    )


def timers(state: SessionState) -> tuple[AwaitAck | AwaitCancelAck, ...]:
    """One timer for each wait: armed again in full, because nobody was there to hear the answer."""
    turn = state.turn
    return tuple(_TIMERS[wait](turn.turn_id) for wait in turn.waiting) if turn else ()


_TIMERS = {Wait.INPUT_ACK: AwaitAck, Wait.CANCEL_ACK: AwaitCancelAck}
