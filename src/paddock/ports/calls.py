"""Calls of tools and models, and actions that were asked for, on record: who, what came of it, what it cost."""

from collections.abc import Sequence
from typing import Protocol

from paddock.ports.log import Rows
from paddock.rules.access.approvals import Approval
from paddock.rules.rows.calls import ModelUsageRow, PlacedCall, ToolCallRow
from paddock.rules.rows.rows import WHOLE, View
from paddock.rules.values import Value


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
    """Every read is of committed data. Of an approval nothing is written again: who writes a step first, has it."""

    async def tool_calls(self, run_id: str, *, limit: int = 1000) -> Sequence[ToolCallRow]:
        """The calls a run made, in the order they began."""
        ...

    async def unanswered_tool_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ToolCallRow]:
        """Calls that began and have not ended although their run has, then or before: nobody knows what came of
        them."""
        ...

    async def model_usage(self, run_id: str, *, limit: int = 1000) -> Sequence[ModelUsageRow]:
        """The model calls of a run, in the order they ended."""
        ...

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        """The sum over all model calls that fit and began at `since` or later. It reads each of them."""
        ...

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        """Tokens and cost of the model calls that began on a day, which is told by its midnight UTC and is one of the
        last two. However many there were, it reads a row for each user."""
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
