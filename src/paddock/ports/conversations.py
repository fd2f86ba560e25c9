"""Reads of conversations: runs, items, events, lists and days."""

from collections.abc import Sequence
from typing import Protocol

from paddock.ports.log import Rows
from paddock.rules.log.chain import StoredFact
from paddock.rules.rows.rows import (
    WHOLE,
    InboxRow,
    KeptMemberRow,
    RunRow,
    SessionRow,
    SessionSummary,
    TranscriptRow,
    View,
)
from paddock.rules.search.queries import FoundThreads, ThreadQuery, TranscriptQuery


class ConversationRecords(Rows, Protocol):
    async def session(self, session_id: str) -> SessionRow | None: ...
    async def inbox(self, session_id: str, key: str) -> InboxRow | None: ...
    async def run(self, run_id: str) -> RunRow | None: ...
    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]: ...
    async def unfinished_runs(self) -> Sequence[RunRow]:
        """Runs that are queued or running, oldest first: what a new owner of the store must bring to an end."""
        ...

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        newest_first: bool = True,
        room: int | None = None,
        view: View = WHOLE,
    ) -> Sequence[TranscriptRow]:
        """Items with before > seq > after, at most `limit`, from the newest or from the oldest end.

        With `room` the item whose bytes use it up is the last: a caller who can take no more than so much need not have
        huge items read for nothing.
        """
        ...

    async def item(self, session_id: str, item_id: str, *, start: int, end: int) -> TranscriptRow | None:
        """One item with start <= seq <= end, also one that an edit or a new try left behind."""
        ...

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        """The newest items of a conversation that answer the query, newest first: everything committed is seen."""
        ...

    async def transcript_count(self, session_id: str) -> int: ...

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        """Facts of these kinds that stand before a position, newest first. Facts of no run are of every thread."""
        ...

    async def fact(self, session_id: str, seq: int) -> StoredFact | None: ...


class SessionRecords(Rows, Protocol):
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

    async def subthreads_of_session(self, session_id: str) -> Sequence[str]:
        """The platform's threads in which a conversation ever had a run."""
        ...


class DayRecords(Protocol):
    """Conversations by the days on which they were held: every read is of committed data, and of what the present
    course holds."""

    async def place_of(self, session_id: str, moment: float) -> int:
        """A number that parts the items recorded before this moment (smaller) from those since then (not smaller).

        Time goes forward in a conversation, so halving finds it: there is no index by time that every item would pay
        for. After a clock was set back some items may count for the day next to theirs; none is lost or told twice.
        """
        ...

    async def spoken(
        self,
        session_id: str,
        *,
        before: int,
        start: int = 0,
        limit: int = 1,
        newest_first: bool = True,
        left_behind: bool = False,
    ) -> Sequence[TranscriptRow]:
        """Messages of the user and of agents with start <= seq < before: no tools, no events.

        With `left_behind` also those that are not part of its present course any more.
        """
        ...
