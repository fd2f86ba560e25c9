"""The rows of platforms: events that came in, where their conversations live, and what goes out to them."""

from paddock.rules.values import Value

PARTS = 1000
"""Places for the parts of one message in a conversation's order: what does not fit into these is one long last part."""


class PlatformEventRow(Value, frozen=True):
    """An event of a platform that was accepted; written once, with the run it led to. A second one is a conflict."""

    platform: str
    event_id: str
    session_id: str
    run_id: str
    body_hash: bytes
    """Salted (`rules/log/chain.py`); empty when words of the event were erased."""
    received_at: float


class PlatformConversationRow(Value, frozen=True):
    """The platform a conversation lives on, and its name there. The last write counts."""

    session_id: str
    platform: str
    reply_target: bytes
    """JSON: where on the platform an answer goes."""
    updated_at: float


class DeliveryRow(Value, frozen=True):
    """Something to be delivered to a platform; written once, with the fact it tells of."""

    delivery_id: str
    workspace_id: str
    platform: str
    session_id: str
    run_id: str
    number: int
    """The order within the conversation: of the fact it tells of times `PARTS`, and which part."""
    body: bytes
    created_at: float
    status: str = "pending"
    """pending, delivered or dead"""
    attempts: int = 0
    due_at: float | None = None
    detail: str = ""
    ended_at: float | None = None


class DeliveryClaim(Value, frozen=True):
    """Somebody is about to deliver this: others leave it alone for a while."""

    delivery_id: str
    token: str
    until: float
    now: float
    attempts: int = 0
    """How often it had been tried when it was found due: who knows of fewer attempts than there were comes too late."""


class DeliveryOutcome(Value, frozen=True):
    """The outcome of an attempt; counts only from the holder of the claim."""

    delivery_id: str
    token: str
    status: str
    attempts: int
    due_at: float | None
    detail: str
    ended_at: float | None


class DeliveryAgain(Value, frozen=True):
    """Deliver something once more that was given up."""

    delivery_id: str
    now: float


AboutPlatforms = (
    PlatformEventRow | PlatformConversationRow | DeliveryRow | DeliveryClaim | DeliveryOutcome | DeliveryAgain
)
