"""What the session asks the host to do. Requests only; the host performs them after the facts are on record."""

from collections.abc import Mapping
from typing import Any, Literal

from paddock.rules.values import Value, nothing

INPUT_ACK_SECONDS = 5.0
CANCEL_ACK_SECONDS = 2.5
MANAGER_SECONDS = 10.0
CONFIRM_SECONDS = 120.0

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


class OfferSteering(Value, frozen=True):
    """Tell the runner of the live turn that input waits which it may take in."""

    turn_id: str
    agent_id: str
    input_turn_id: str


ManagerRequest = Literal["add_agent", "remove_agent", "session_open", "session_close"]


class AskManager(Value, frozen=True):
    """Ask the session manager; it answers with `ManagerReplied` under the same `tx_id`. Asking again is safe."""

    tx_id: str
    request: ManagerRequest
    agent_id: str | None = None
    about: Mapping[str, Any] = nothing


class AwaitManager(Value, frozen=True):
    """Send `ManagerTimedOut` after this time."""

    tx_id: str
    seconds: float = MANAGER_SECONDS


class AwaitConfirm(Value, frozen=True):
    """Send `ConfirmTimedOut` after this time."""

    tx_id: str
    seconds: float = CONFIRM_SECONDS


RunCommand = StartRun | AwaitAck | CancelRun | AwaitCancelAck | ForceStop | EndRun | OfferSteering
"""About one run, and performed where runs are."""
ChainCommand = AskManager | AwaitManager | AwaitConfirm
"""About one transaction, and performed by the session manager's side of the house."""
Command = RunCommand | ChainCommand
