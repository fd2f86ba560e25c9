"""Platforms that conversations live on: what is on record of them, what they can be asked to do, how they are reached.

Which one it is, and how it does something, is a plug's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, get_args

from paddock.ports.log import Rows
from paddock.rules.access.permissions import RunScope
from paddock.rules.agents.specs import KnownAction
from paddock.rules.rows.deliveries import DeliveryRow, PlatformConversationRow, PlatformEventRow
from paddock.rules.rows.rows import WHOLE, View
from paddock.rules.values import Value

KNOWN_ACTIONS = frozenset(get_args(KnownAction))


class DeliveryRecords(Rows, Protocol):
    async def platform_event(self, platform: str, event_id: str) -> PlatformEventRow | None: ...
    async def platform_conversation(self, session_id: str) -> PlatformConversationRow | None: ...
    async def delivery(self, delivery_id: str) -> DeliveryRow | None: ...
    async def deliveries(
        self, workspace_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        """A workspace's, the newest first; `before` is the id of the last one seen."""
        ...

    async def due_deliveries(self, now: float, *, limit: int = 100) -> Sequence[DeliveryRow]:
        """Pending ones whose time has come and that nobody has claimed: of each conversation only the first."""
        ...

    async def next_delivery_at(self) -> float | None:
        """When the next pending one is due."""
        ...

    async def delivery_claim(self, delivery_id: str) -> str:
        """The token of whoever claimed it last; empty when nobody did."""
        ...

    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        """Deliveries of a session with a number below `before`, newest first."""
        ...


class PlatformAction(Value, frozen=True):
    """One thing to do, and on whose behalf. `approval_id` is the same for every try: a platform can dedupe by it."""

    approval_id: str
    workspace_id: str
    user_id: str
    session_id: str
    run_id: str
    action: str
    target: Mapping[str, Any]
    payload: Mapping[str, Any]


class Performed(Value, frozen=True):
    ok: bool
    detail: str = ""
    """For the user, when it did not work: a sentence without secrets."""


class PlatformActions(Protocol):
    def offers(self, scope: RunScope, action: str) -> bool:
        """True if the platform this run came from can do that at all."""
        ...

    async def perform(self, action: PlatformAction) -> Performed:
        """Do it, once. Never called twice for one approval; the caller bounds the wait."""
        ...


class Posted(Value, frozen=True):
    """Outcome of a request. Without a status nobody answered, and `problem` says why."""

    status: int | None
    problem: str = ""
    body: bytes = b""
    """The beginning of the answer."""
    retry_after: float | None = None

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Webhooks(Protocol):
    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float) -> Posted:
        """Send it once; never raises for what the other side does, ends within the time."""
        ...

    async def close(self) -> None: ...
