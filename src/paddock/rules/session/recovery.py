"""Going on after a restart: read recorded facts back, and say which timers must run. Decides nothing again."""

from collections.abc import Iterable

from paddock.rules.log.chain import StoredFact
from paddock.rules.session.commands import (
    AskManager,
    AwaitAck,
    AwaitCancelAck,
    AwaitConfirm,
    AwaitManager,
    ChainCommand,
    Command,
)
from paddock.rules.session.evolve import fold
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.state import Pending, SessionState, Transaction, Wait


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


def timers(state: SessionState) -> tuple[Command, ...]:
    """One timer for each wait, armed again in full, because nobody was there to hear the answer; and every request to
    the session manager once more, under its old name."""
    turn = state.turn
    waits: tuple[Command, ...] = tuple(_TIMERS[wait](turn.turn_id) for wait in turn.waiting) if turn else ()
    return (*waits, *transaction_timers(state))


def transaction_timers(state: SessionState) -> tuple[ChainCommand, ...]:
    """The part of them that is about transactions."""
    if not state.transactions:
        return ()
    return tuple(command for found in state.transactions for command in _again(found))


def _again(transaction: Transaction) -> tuple[ChainCommand, ...]:
    tx_id = transaction.tx_id
    match transaction.waiting:
        case Pending.MANAGER:
            what = "add_agent" if transaction.kind == "handover" else transaction.kind
            about = {"reason": transaction.reason} if transaction.reason else {}
            return AskManager(tx_id, what, transaction.agent_id, about), AwaitManager(tx_id)
        case Pending.CONFIRM:
            return (AwaitConfirm(tx_id),)
        case Pending.TURN_END:
            return ()


_TIMERS = {Wait.INPUT_ACK: AwaitAck, Wait.CANCEL_ACK: AwaitCancelAck}
