"""What a session is between two messages, and its bytes. Values only: facts change it, and only in `evolve.py`."""

from enum import StrEnum

import msgspec

from paddock.rules.values import Value


class TurnStatus(StrEnum):
    """A live turn is one of these. An ended turn is not here any more: that is what makes its end final."""

    ROUTING = "ROUTING"
    RUNNING = "RUNNING"


class Wait(StrEnum):
    """An answer without which the turn ends. Each has a timer at the host, armed again after a restart."""

    INPUT_ACK = "INPUT_ACK"
    CANCEL_ACK = "CANCEL_ACK"


class Turn(Value, frozen=True):
    """The one live turn: an input at its agent. `requested_by` is a sender, such as `user:<id>`."""

    turn_id: str
    trace_id: str
    requested_by: str
    agent_id: str
    status: TurnStatus = TurnStatus.ROUTING
    waiting: tuple[Wait, ...] = ()
    created_at: float = 0.0
    last_output_at: float | None = None

    @property
    def is_being_cancelled(self) -> bool:
        return Wait.CANCEL_ACK in self.waiting


class QueuedTurn(Value, frozen=True):
    """An input on record that is not at an agent yet.

    `agent_id` is who will probably answer, empty while nobody is known; it binds only when it was `asked` for.
    `interrupts` means it goes before all that does not.
    """

    turn_id: str
    trace_id: str
    requested_by: str
    agent_id: str = ""
    asked: bool = False
    interrupts: bool = False
    created_at: float = 0.0


class Transaction(Value, frozen=True):
    """A chain of steps over several messages (remove, invite, handover, open, close) that is not finished."""

    tx_id: str
    kind: str
    agent_id: str | None = None
    turn_id: str | None = None
    waiting: str | None = None


class SessionState(Value, frozen=True):
    """Everything that later decisions need. `members` are in the order in which they joined."""

    members: tuple[str, ...] = ()
    active_agent_id: str | None = None
    speaking_agent_id: str | None = None
    turn: Turn | None = None
    queue: tuple[QueuedTurn, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    closed: bool = False
    opened: bool = False

    @property
    def user_interruptible(self) -> bool:
        return self.turn is not None

    @property
    def live_turn_ids(self) -> tuple[str, ...]:
        """Every turn that has not ended: the one at an agent first, then those that wait."""
        waiting = tuple(queued.turn_id for queued in self.queue)
        return (self.turn.turn_id, *waiting) if self.turn else waiting


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionState).decode


def to_bytes(state: SessionState) -> bytes:
    """The snapshot of a state."""
    return _encode(state)


def from_bytes(snapshot: bytes) -> SessionState:
    """Read a snapshot; no bytes mean a session nobody has opened. Fields from a later version are passed over."""
    return _decode(snapshot) if snapshot else SessionState()
