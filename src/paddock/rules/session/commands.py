"""Commands of the session to the host. Requests only; the host performs them after the facts are on record."""

from collections.abc import Mapping
from typing import Any, Literal

from paddock.rules.rows.rows import RunEnd
from paddock.rules.values import Value, nothing


class SessionTimeouts(Value, frozen=True):
    """Seconds that the host waits for each answer that a session awaits."""

    input_ack: float = 5.0
    cancel_ack: float = 2.5
    manager: float = 10.0
    confirm: float = 120.0
    queue: float = 600.0
    """For its turn, in line."""


class StartRun(Value, frozen=True):
    """Hand the input of this turn to the agent."""

    turn_id: str
    agent_id: str


class AwaitAck(Value, frozen=True):
    """Send `AckTimedOut` after the time for it. Sending it too late or once too often does no harm."""

    turn_id: str


class CancelRun(Value, frozen=True):
    """Ask the agent to stop this turn."""

    turn_id: str
    agent_id: str
    reason: str


class AwaitCancelAck(Value, frozen=True):
    """Send `CancelTimedOut` after the time for it."""

    turn_id: str


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
    """Send `ManagerTimedOut` after the time for it."""

    tx_id: str


class AwaitConfirm(Value, frozen=True):
    """Send `ConfirmTimedOut` after the time for it."""

    tx_id: str


RunCommand = StartRun | AwaitAck | CancelRun | AwaitCancelAck | ForceStop | EndRun | OfferSteering
"""About one run, and performed where runs are."""
ChainCommand = AskManager | AwaitManager | AwaitConfirm
"""About one transaction, and performed by the session manager's side of the house."""
Command = RunCommand | ChainCommand
