"""What can be looked up about conversations beside their logs: lists, names, kept members, unfinished transactions."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.rows import KeptMemberRow, SessionSummary
from paddock.rules.search.thread_search import FoundThreads, ThreadQuery


class SessionRecords(Protocol):
    """Every read is of committed data."""

    async def session_summary(self, session_id: str) -> SessionSummary | None: ...
    async def sessions_of(
        self,
        workspace_id: str,
        user_id: str,
        *,
        before: int | None = None,
        archived: bool | None = None,
        limit: int = 50,
    ) -> Sequence[SessionSummary]:
        """A user's conversations, the one opened last first; those opened before number `before`."""
        ...

    async def count_sessions(self, workspace_id: str, user_id: str) -> int:
        """How many conversations a user has."""
        ...

    async def find_sessions(self, query: ThreadQuery) -> FoundThreads:
        """A user's conversations that answer, the one opened last first; all that was committed is seen, or it says so.

        Raises HostError(DEADLINE_EXCEEDED) when the words are so frequent that it takes too long.
        """
        ...

    async def kept_member(self, session_id: str, agent_id: str) -> KeptMemberRow | None: ...
    async def sessions_with_transactions(self) -> Sequence[str]:
        """Sessions in which a transaction is under way: what a new owner of the store must see to the end of."""
        ...

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        """(agent, runner) of every run a conversation ever had."""
        ...
