"""The session as one pure function: which facts and commands follow from a message. No clock, no ids, no I/O.

Each kind of message has one handler; this table is all there is to know about where a message goes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from paddock.rules.session import cancel, chains, handover, members, messages, opening, turns
from paddock.rules.session.decision import Decision, Note
from paddock.rules.session.evolve import evolve
from paddock.rules.session.messages import Message
from paddock.rules.session.state import SessionState

__all__ = ["HANDLERS", "Decision", "Note", "decide", "step"]

HANDLERS: Mapping[type[Any], Callable[[SessionState, Any], Decision]] = {
    messages.UserInput: turns.take_input,
    messages.InputAcknowledged: turns.acknowledge_input,
    messages.AckTimedOut: turns.ack_timed_out,
    messages.OutputReceived: turns.receive_output,
    messages.RunFailed: turns.fail_run,
    messages.RunGranted: turns.record_grant,
    messages.CancelRequested: cancel.request_cancel,
    messages.CancelAcknowledged: cancel.acknowledge_cancel,
    messages.CancelTimedOut: cancel.cancel_timed_out,
    messages.SteeringTaken: turns.take_steering,
    messages.LineResumed: chains.resume_line,
    messages.SwitchRequested: members.request_switch,
    messages.InviteRequested: members.request_invite,
    messages.RemoveRequested: members.request_remove,
    messages.HandoverRequested: handover.request_handover,
    messages.HandoverAnswered: handover.answer_handover,
    messages.ConfirmTimedOut: handover.confirm_timed_out,
    messages.OpenRequested: opening.request_open,
    messages.CloseRequested: opening.request_close,
    messages.ManagerReplied: opening.manager_replied,
    messages.ManagerTimedOut: opening.manager_timed_out,
}


def decide(state: SessionState, message: Message) -> Decision:
    return HANDLERS[type(message)](state, message)


def step(state: SessionState, message: Message) -> tuple[SessionState, Decision]:
    decision = decide(state, message)
    for fact in decision.facts:
        state = evolve(state, fact)
    return state, decision
