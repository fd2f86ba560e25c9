"""State of a session between two messages, its bytes, and the view of it that people ask for. Values only."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

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


class Pending(StrEnum):
    """The event a transaction waits for: the end of turns, the session manager's answer, or the user's."""

    TURN_END = "TURN_END"
    MANAGER = "MANAGER"
    CONFIRM = "CONFIRM"


Chain = Literal["add_agent", "remove_agent", "handover", "session_open", "session_close"]


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
    parent_turn_id: str | None = None
    """The turn that handed over to this one; None when a user asked."""

    @property
    def is_being_cancelled(self) -> bool:
        return Wait.CANCEL_ACK in self.waiting


class QueuedTurn(Value, frozen=True):
    """An input on record that is not at an agent yet.

    `agent_id` is who will probably answer, empty while nobody is known; it binds only when it was `asked` for.
    `interrupts` means it goes before all that does not; `steers` that the live turn may still take it in.
    """

    turn_id: str
    trace_id: str
    requested_by: str
    agent_id: str = ""
    asked: bool = False
    interrupts: bool = False
    created_at: float = 0.0
    steers: bool = False
    default_agent_id: str | None = None
    """Who answers when nobody is active any more."""

    @property
    def waits(self) -> bool:
        """A live turn goes before it. Every input is in the queue for a moment; only TURN_QUEUED names its agent."""
        return bool(self.agent_id)


class Transaction(Value, frozen=True):
    """A chain of steps over several messages (remove, invite, handover, open, close) that is not finished.

    `agent_id` is whom it is about: who joins, leaves or is handed over to. A handover also keeps who hands over
    (`from_agent_id`, in `turn_id`), why, and the id of the turn to come once the user has said yes.
    """

    tx_id: str
    kind: Chain
    waiting: Pending
    agent_id: str | None = None
    requested_by: str = ""
    reason: str = ""
    created_at: float = 0.0
    activate: bool = False
    default_agent_id: str | None = None
    from_agent_id: str | None = None
    turn_id: str | None = None
    trace_id: str | None = None
    summary: str = ""
    next_turn_id: str | None = None


class Fallback(Value, frozen=True):
    """The agent that gets the conversation back when the agent it was handed over to fails before its first word."""

    agent_id: str
    """The agent that took over and has said nothing yet."""
    by_agent_id: str
    """The agent that handed over."""
    default_agent_id: str | None = None


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
    held: bool = False
    """The host is being stopped: nothing that waits begins. Never on record; the next owner begins without it."""
    fallback: Fallback | None = None

    @property
    def rests(self) -> bool:
        """True when nothing goes on, as far as it is on record; then any host may own the session."""
        return self.turn is None and not self.queue and not self.transactions

    @property
    def left_waiting(self) -> bool:
        """True if something waits although nothing is live: an owner was stopped before it could go on."""
        if self.turn is not None:
            return False
        return bool(self.queue) or any(found.waiting is Pending.TURN_END for found in self.transactions)

    @property
    def user_interruptible(self) -> bool:
        return self.turn is not None

    @property
    def closing(self) -> bool:
        """Somebody asked for the end of the session, and it is on its way."""
        return bool(self.transactions) and any(found.kind == "session_close" for found in self.transactions)

    def transaction(self, tx_id: str | None) -> Transaction | None:
        return next((found for found in self.transactions if found.tx_id == tx_id), None)

    def is_leaving(self, agent_id: str) -> bool:
        """Return true while this agent is being removed: nothing new is sent to it until the manager answers."""
        return any(found.kind == "remove_agent" and found.agent_id == agent_id for found in self.transactions)

    @property
    def live_turn_ids(self) -> tuple[str, ...]:
        """Every turn that has not ended: the one at an agent first, then those that wait."""
        waiting = tuple(queued.turn_id for queued in self.queue) if self.queue else ()
        return (self.turn.turn_id, *waiting) if self.turn else waiting


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionState).decode


def to_bytes(state: SessionState) -> bytes:
    return _encode(msgspec.structs.replace(state, held=False) if state.held else state)


def from_bytes(snapshot: bytes) -> SessionState:
    """Read a snapshot; no bytes mean a session nobody has opened. Fields from a later version are passed over."""
    return _decode(snapshot) if snapshot else SessionState()


InflightStatus = Literal["QUEUED", "ROUTING", "RUNNING"]


class Inflight(Value, frozen=True):
    """One turn that has not ended. What it said so far is the range of the log under its `turn_id`."""

    turn_id: str
    trace_id: str
    requested_by: str
    target_agent_id: str
    status: InflightStatus
    created_at: float
    last_output_at: float | None
    collected_output: str
    """Where its words are: the facts of this turn."""
    waiting: tuple[str, ...]
    parent_turn_id: str | None = None


class SessionContext(Value, frozen=True):
    active_agent_id: str | None
    agents_in_session: tuple[str, ...]
    speaking_agent_id: str | None
    user_interruptible: bool
    inflight: Mapping[str, Inflight]
    transactions: Mapping[str, Transaction]
    opened: bool
    closed: bool


def session_context(state: SessionState) -> SessionContext:
    turns = (*((state.turn,) if state.turn else ()), *state.queue)
    return SessionContext(
        active_agent_id=state.active_agent_id,
        agents_in_session=state.members,
        speaking_agent_id=state.speaking_agent_id,
        user_interruptible=state.user_interruptible,
        inflight={turn.turn_id: _inflight(turn) for turn in turns},
        transactions={found.tx_id: found for found in state.transactions},
        opened=state.opened,
        closed=state.closed,
    )


def _inflight(turn: Turn | QueuedTurn) -> Inflight:
    live = turn if isinstance(turn, Turn) else None
    return Inflight(
        turn_id=turn.turn_id,
        trace_id=turn.trace_id,
        requested_by=turn.requested_by,
        target_agent_id=turn.agent_id,
        status=live.status.value if live else "QUEUED",
        created_at=turn.created_at,
        last_output_at=live.last_output_at if live else None,
        collected_output=turn.turn_id,
        waiting=tuple(wait.value for wait in live.waiting) if live else (),
        parent_turn_id=live.parent_turn_id if live else None,
    )
