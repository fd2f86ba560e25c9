"""One step of the session as somebody sees it who looks on from outside: before, message, decision, after."""

from dataclasses import dataclass

from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Fact
from paddock.rules.session.messages import Message
from paddock.rules.session.state import SessionState, Transaction, Turn


@dataclass(frozen=True, slots=True)
class Step:
    before: SessionState
    message: Message
    decision: Decision
    after: SessionState
    alive: frozenset[str]
    """Turns that this step may speak of: not ended before it, or admitted by it."""
    ends: tuple[tuple[str, str], ...]
    """(turn, status) of every fact that ends a turn, in order."""

    def ended(self, turn_id: str, status: str) -> bool:
        return (turn_id, status) in self.ends

    @property
    def addressed(self) -> Turn | None:
        """The live turn, when the message is about it."""
        turn = self.before.turn
        return turn if turn is not None and getattr(self.message, "turn_id", None) == turn.turn_id else None

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that the message answers, as it was before."""
        return self.before.transaction(getattr(self.message, "tx_id", None))


def hands_over(fact: Fact) -> bool:
    return fact.subtype == "HANDOVER_CONTEXT"
