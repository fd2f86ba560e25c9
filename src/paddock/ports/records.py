"""Ports of the records beside the log: people, calls, a whole workspace, and what retention removes. `Store` is all
that a storage plug offers. Every read sees committed data only.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from paddock.ports.artifacts import KeptRecords
from paddock.ports.automations import AutomationRecords, CalendarRecords
from paddock.ports.conversations import ConversationRecords, DayRecords, SessionRecords
from paddock.ports.definitions import AgentRecords, ApiKeys, PluginRecords, SecretRecords
from paddock.ports.log import EventLog, Rows
from paddock.ports.platforms import DeliveryRecords
from paddock.rules.access.approvals import Approval
from paddock.rules.log.chain import Head
from paddock.rules.log.forgetting import OldFact, OldSession
from paddock.rules.people import AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.calls import ModelUsageRow, PlacedCall, ToolCallRow
from paddock.rules.rows.rows import WHOLE, AuditRow, FeedbackRow, RunRow, UserRow, View
from paddock.rules.values import Value


class PeopleRecords(Rows, Protocol):
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


class Spent(Value, frozen=True):
    """A sum over model calls. What a provider did not count adds nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Calls that were answered by a model whose price nobody named."""


class CallRecords(Rows, Protocol):
    """Calls of tools and models, and actions that were asked for. Of an approval nothing is written again: who writes a
    step first, has it."""

    async def tool_calls(self, run_id: str, *, limit: int = 1000) -> Sequence[ToolCallRow]:
        """The calls a run made, in the order they began."""
        ...

    async def unanswered_tool_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ToolCallRow]:
        """Calls that began and have not ended although their run has, then or before: nobody knows what came of
        them."""
        ...

    async def model_usage(self, run_id: str, *, limit: int = 1000) -> Sequence[ModelUsageRow]:
        """The model calls of a run, in the order they came on record."""
        ...

    async def unanswered_model_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ModelUsageRow]:
        """Calls of models that are in doubt the same way."""
        ...

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        """The sum over all model calls that fit, have ended and began at `since` or later. It reads each of them."""
        ...

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        """Tokens and cost of the model calls that have ended and began on a day, which is told by its midnight UTC and
        is one of the last two. However many there were, it reads a row for each user."""
        ...

    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        """Calls of tools by the runs of a conversation that stand before (fact, number), newest first."""
        ...

    async def placed_call(self, call_id: str) -> PlacedCall | None: ...

    async def approval(self, approval_id: str) -> Approval | None: ...
    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        """A user's, newest first."""
        ...

    async def approval_count(self, run_id: str) -> int: ...
    async def unfinished_approvals(self) -> Sequence[Approval]:
        """Granted, and nothing on record about how it went: what a host that died left behind."""
        ...


class OverviewRecords(Protocol):
    """Reads for people who look over a workspace. Each has an end: one that takes too long raises DEADLINE_EXCEEDED."""

    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        """Runs that fit, the one begun last first."""
        ...

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """Decisions that fit, the newest first."""
        ...

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        """Model calls since then that have ended, added up by span of `every` seconds, agent and model, the oldest span
        first."""
        ...

    async def spenders(self, workspace_id: str, *, since: float, limit: int) -> Sequence[Spender]:
        """Users of models since then, the most expensive first, then by tokens."""
        ...

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        """How many runs began since then, how they ended and how long they took, by span of `every` seconds; None: all
        of them together, from 0. Spans without runs are left out."""
        ...

    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]: ...


OldRows = Literal[
    "audit",
    "tool_calls",
    "model_usage",
    "approvals",
    "deliveries",
    "platform_events",
    "automation_ticks",
    "runs",
    "tombstones",
]
"""Rows that are forgotten by age. A run is kept for as long as its facts are, and then for its own time."""


class KeepingRecords(Rows, Protocol):
    async def trimmed(self, session_id: str) -> Head:
        """The last fact that was trimmed from the beginning of a log; number 0 when none was."""
        ...

    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        """How many bytes the logs of a user hold, or those of a whole workspace (`word_bytes`). Adds up one number per
        conversation, so it is not for every run."""
        ...

    async def sessions_opened_before(self, time: float, *, after: int = 0, limit: int = 200) -> Sequence[OldSession]:
        """Sessions in the order in which they were opened, those behind the one with the number `after`."""
        ...

    async def oldest_facts(self, session_id: str, *, limit: int = 1000) -> Sequence[OldFact]:
        """The beginning of a log, in order of position."""
        ...

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        """Delete rows of before this time, at most so many, in one commit; how many there were."""
        ...

    async def purge(self, *, limit: int = 500) -> int:
        """Remove a part of what deleted sessions leave behind; how many rows. 0 when nothing is left."""
        ...

    async def scrub(self) -> None:
        """Leave nothing of what was deleted so far readable on the disk."""
        ...


class Store(
    EventLog,
    ConversationRecords,
    SessionRecords,
    DayRecords,
    PeopleRecords,
    KeptRecords,
    CallRecords,
    AutomationRecords,
    CalendarRecords,
    DeliveryRecords,
    AgentRecords,
    PluginRecords,
    ApiKeys,
    SecretRecords,
    KeepingRecords,
    OverviewRecords,
    Protocol,
):
    """One storage plug offers all of it over one set of committed data."""

    async def open(self) -> None: ...
    async def close(self) -> None:
        """Finish what was queued, then let go. Later appends raise StorageUnavailableError."""
        ...
