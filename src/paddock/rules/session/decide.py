"""The session as one pure function: which facts and commands follow from a message. No clock, no ids, no I/O.

Each kind of message has one handler; this table is all there is to know about where a message goes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from paddock.rules.session import cancel, chains, handover, members, opening, turns
from paddock.rules.session.decision import Decision, Note
from paddock.rules.session.evolve import evolve
from paddock.rules.session.messages import (
    AckTimedOut,
    CancelAcknowledged,
    CancelRequested,
    CancelTimedOut,
    CloseRequested,
    ConfirmTimedOut,
    HandoverAnswered,
    HandoverRequested,
    InputAcknowledged,
    InviteRequested,
    LineResumed,
    ManagerReplied,
    ManagerTimedOut,
    Message,
    OpenRequested,
    OutputReceived,
    RemoveRequested,
    RunFailed,
    RunGranted,
    SteeringTaken,
    SwitchRequested,
    UserInput,
)
from paddock.rules.session.state import SessionState

__all__ = ["HANDLERS", "Decision", "Note", "decide", "step"]

HANDLERS: Mapping[type[Any], Callable[[SessionState, Any], Decision]] = {
    UserInput: turns.take_input,
    InputAcknowledged: turns.acknowledge_input,
    AckTimedOut: turns.ack_timed_out,
    OutputReceived: turns.receive_output,
    RunFailed: turns.fail_run,
    RunGranted: turns.record_grant,
    CancelRequested: cancel.request_cancel,
    CancelAcknowledged: cancel.acknowledge_cancel,
    CancelTimedOut: cancel.cancel_timed_out,
    SteeringTaken: turns.take_steering,
    LineResumed: chains.resume_line,
    SwitchRequested: members.request_switch,
    InviteRequested: members.request_invite,
    RemoveRequested: members.request_remove,
    HandoverRequested: handover.request_handover,
    HandoverAnswered: handover.answer_handover,
    ConfirmTimedOut: handover.confirm_timed_out,
    OpenRequested: opening.request_open,
    CloseRequested: opening.request_close,
    ManagerReplied: opening.manager_replied,
    ManagerTimedOut: opening.manager_timed_out,
}


def decide(state: SessionState, message: Message) -> Decision:
    return HANDLERS[type(message)](state, message)


def step(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    """Decide, and make it true."""
    decision = decide(state, message)
    for fact in decision.facts:
        state = evolve(state, fact)
    return state, decision
