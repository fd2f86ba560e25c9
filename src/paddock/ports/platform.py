"""The platform a conversation lives on, as far as it can be asked to do something. Which one, and how, is a plug's."""

from collections.abc import Mapping
from typing import Any, Protocol

from paddock.rules.access.permissions import RunScope
from paddock.rules.values import Value

KNOWN_ACTIONS = frozenset({"message.edit", "message.recall", "reaction.add"})


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
        """Whether the platform this run came from can do that at all."""
        ...

    async def perform(self, action: PlatformAction) -> Performed:
        """Do it, once. Never called twice for one approval; the caller bounds the wait."""
        ...


class NoPlatform:
    """A host without a platform: conversations come through its own doors only, and nothing can be done elsewhere."""

    def offers(self, scope: RunScope, action: str) -> bool:  # noqa: ARG002 - the port's words
        return False

    async def perform(self, action: PlatformAction) -> Performed:
        return Performed(ok=False, detail=f"no platform offers {action.action}")
