"""What can happen to a session, as the host tells the rules. Past events only; nothing here decides.

Times, ids and the configuration that matters arrive inside the message as values, so the same list of messages always
gives the same session.
"""

from collections.abc import Mapping
from typing import Any, Literal

from paddock.rules.values import Value

OutputKind = Literal["CHUNK", "MESSAGE", "FINAL"]


class Agents(Value, frozen=True):
    """The agents as configured when the input was accepted. The keys of `while_busy` are all that exist.

    `while_busy` says what an agent does with input that arrives while it runs: queue, steer, interrupt or reject.
    """

    default_agent_id: str | None
    while_busy: Mapping[str, str]
    max_queue: int = 100


class UserInput(Value, frozen=True):
    """Somebody said something. `turn_id` is minted once by the host; `agent_id` is the agent explicitly asked for."""

    turn_id: str
    trace_id: str
    user_id: str
    payload: Any
    metadata: Mapping[str, Any]
    agents: Agents
    agent_id: str | None = None
    at: float = 0.0


class CancelRequested(Value, frozen=True):
    """Somebody wants a turn to stop; without `turn_id`, whichever is live."""

    turn_id: str | None
    user_id: str
    reason: str = "user"
    at: float = 0.0


class InputAcknowledged(Value, frozen=True):
    """The agent has the input and will work on it."""

    turn_id: str
    at: float = 0.0


class CancelAcknowledged(Value, frozen=True):
    """The agent has stopped working on the turn."""

    turn_id: str
    at: float = 0.0


class OutputReceived(Value, frozen=True):
    """An agent said something in a turn. `agent_id` is who the connection says it is, not what a frame claims."""

    turn_id: str
    agent_id: str
    kind: OutputKind
    payload: Any
    metadata: Mapping[str, Any]
    at: float = 0.0


class RunFailed(Value, frozen=True):
    """The run can say nothing more: it failed, lost its process, passed its deadline, or expired in the queue."""

    turn_id: str
    code: str
    message: str
    retryable: bool = False
    at: float = 0.0


class AckTimedOut(Value, frozen=True):
    """The time asked for by `AwaitAck` is over."""

    turn_id: str
    at: float = 0.0


class CancelTimedOut(Value, frozen=True):
    """The time asked for by `AwaitCancelAck` is over."""

    turn_id: str
    at: float = 0.0


Message = (
    UserInput
    | CancelRequested
    | InputAcknowledged
    | CancelAcknowledged
    | OutputReceived
    | RunFailed
    | AckTimedOut
    | CancelTimedOut
)
