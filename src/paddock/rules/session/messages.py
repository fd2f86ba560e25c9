"""Messages to a session, as the host passes them to the rules. Past events only; nothing here decides.

Times, ids and the configuration that matters arrive inside the message as values, so the same list of messages always
gives the same session.
"""

from collections.abc import Mapping
from typing import Any

from paddock.rules.errors import EndCode
from paddock.rules.session.facts import ManagerAnswer, OutputKind
from paddock.rules.values import Value, nothing


class Agents(Value, frozen=True):
    """The agents as configured when the input was accepted. The keys of `while_busy` are all that exist.

    `while_busy` says what an agent does with input that arrives while it runs: queue, steer, interrupt or reject.
    """

    default_agent_id: str | None
    while_busy: Mapping[str, str]
    max_queue: int = 100


class Message(Value, frozen=True):
    """Something that the session hears."""


class UserInput(Message, frozen=True):
    """Somebody said something. `turn_id` is minted once by the host; `agent_id` is the agent explicitly asked for."""

    turn_id: str
    trace_id: str
    user_id: str
    payload: Any
    metadata: Mapping[str, Any]
    agents: Agents
    agent_id: str | None = None
    at: float = 0.0


class CancelRequested(Message, frozen=True):
    """Somebody wants a turn to stop; without `turn_id`, whichever is live."""

    turn_id: str | None
    user_id: str
    reason: str = "user"
    at: float = 0.0


class InputAcknowledged(Message, frozen=True):
    """The agent has the input and will work on it."""

    turn_id: str
    at: float = 0.0


class CancelAcknowledged(Message, frozen=True):
    """The agent has stopped working on the turn."""

    turn_id: str
    at: float = 0.0


class OutputReceived(Message, frozen=True):
    """An agent said something in a turn. `agent_id` is who the connection says it is, not what a frame claims."""

    turn_id: str
    agent_id: str
    kind: OutputKind
    payload: Any
    metadata: Mapping[str, Any]
    at: float = 0.0


class RunFailed(Message, frozen=True):
    """The run can say nothing more: it failed, lost its process, passed its deadline, or expired in the queue."""

    turn_id: str
    code: EndCode
    message: str
    retryable: bool = False
    at: float = 0.0


class RunGranted(Message, frozen=True):
    """The grant of the live turn is known: its runner had to be started first to learn what it asks for."""

    turn_id: str
    granted: Mapping[str, Any]
    at: float = 0.0


class AckTimedOut(Message, frozen=True):
    """The time asked for by `AwaitAck` is over."""

    turn_id: str
    at: float = 0.0


class CancelTimedOut(Message, frozen=True):
    """The time asked for by `AwaitCancelAck` is over."""

    turn_id: str
    at: float = 0.0


class SteeringTaken(Message, frozen=True):
    """The runner of the live turn `into_turn_id` takes in an input that waits behind it."""

    turn_id: str
    into_turn_id: str
    at: float = 0.0


class LineResumed(Message, frozen=True):
    """A new owner goes on with what waits although nothing is live: the one before was stopped."""

    at: float = 0.0


# --- what people ask of the session itself ----------------------------------------------------------------------------


class SwitchRequested(Message, frozen=True):
    agent_id: str
    user_id: str
    at: float = 0.0


class InviteRequested(Message, frozen=True):
    """Somebody wants an agent to join. `tx_id` is minted once by the host, like every `tx_id` here."""

    tx_id: str
    agent_id: str
    user_id: str
    activate: bool = False
    at: float = 0.0


class RemoveRequested(Message, frozen=True):
    """Somebody wants an agent to leave. `default_agent_id` takes its place, if it is a member."""

    tx_id: str
    agent_id: str
    user_id: str
    default_agent_id: str | None = None
    reason: str = "user"
    at: float = 0.0


class HandoverRequested(Message, frozen=True):
    """The agent of the live turn would like another one to go on. `known` are all agents that exist; the default is who
    answers when the other one fails at once and the first has left."""

    tx_id: str
    turn_id: str
    agent_id: str
    target_agent_id: str
    known: frozenset[str]
    reason: str = ""
    summary: str = ""
    at: float = 0.0
    default_agent_id: str | None = None


class HandoverAnswered(Message, frozen=True):
    """The user's word on a handover; without `tx_id`, on the one that is pending. `turn_id` is for the turn to come."""

    tx_id: str | None
    user_id: str
    confirmed: bool
    turn_id: str = ""
    at: float = 0.0


class OpenRequested(Message, frozen=True):
    tx_id: str
    user_id: str
    at: float = 0.0


class CloseRequested(Message, frozen=True):
    tx_id: str
    user_id: str
    reason: str = "user"
    at: float = 0.0


class ManagerReplied(Message, frozen=True):
    """The session manager answered one request. A failure's payload is its error."""

    tx_id: str
    answer: ManagerAnswer
    payload: Mapping[str, Any] = nothing
    at: float = 0.0


class ManagerTimedOut(Message, frozen=True):
    """The time asked for by `AwaitManager` is over."""

    tx_id: str
    at: float = 0.0


class ConfirmTimedOut(Message, frozen=True):
    """The time asked for by `AwaitConfirm` is over."""

    tx_id: str
    at: float = 0.0
