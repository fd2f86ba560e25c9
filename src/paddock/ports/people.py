"""People as they are looked up: what they set, what they said of answers, what they call their conversations."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from paddock.ports.log import Rows
from paddock.rules.rows.rows import FeedbackRow, UserRow


class PeopleRecords(Rows, Protocol):
    """Every read is of committed data."""

    async def user(self, workspace_id: str, user_id: str) -> UserRow | None: ...
    async def feedback(self, session_id: str, item_ids: Sequence[str]) -> Mapping[str, FeedbackRow]:
        """Feedback on these items, by item."""
        ...

    async def thread_named(self, workspace_id: str, user_id: str, name: str, first: str, old: str) -> str | None:
        """The conversation that a user calls so; when there is none, `old` where this user has a conversation of that
        id, else `first`, or None if that one is buried."""
        ...

    async def is_buried(self, session_id: str) -> bool:
        """True if a session of this id was deleted, so that the id is not used again."""
        ...
