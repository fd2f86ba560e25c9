"""What the session asks the host to do. Requests only; the host performs them after the facts are on record."""

from typing import Literal

from paddock.rules.values import Value

INPUT_ACK_SECONDS = 5.0
CANCEL_ACK_SECONDS = 2.5

RunEnd = Literal["completed", "failed", "cancelled"]


class StartRun(Value, frozen=True):
    """Hand the input of this turn to the agent."""

    turn_id: str
    agent_id: str


class AwaitAck(Value, frozen=True):
    """Send `AckTimedOut` after this time. Sending it too late or once too often does no harm."""

    turn_id: str
    seconds: float = INPUT_ACK_SECONDS


class CancelRun(Value, frozen=True):
    """Ask the agent to stop this turn."""

    turn_id: str
    agent_id: str
    reason: str


class AwaitCancelAck(Value, frozen=True):
    """Send `CancelTimedOut` after this time."""

    turn_id: str
    seconds: float = CANCEL_ACK_SECONDS


class ForceStop(Value, frozen=True):
    """Stop listening to this run and clean up after it; asking did not help."""

    turn_id: str
    agent_id: str


class EndRun(Value, frozen=True):
    """The turn is over: revoke its grant and let go. Given exactly once for every turn, queued ones too."""

    turn_id: str
    status: RunEnd


Command = StartRun | AwaitAck | CancelRun | AwaitCancelAck | ForceStop | EndRun
