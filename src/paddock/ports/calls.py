"""What is on record about calls of tools and models: who made them, what came of them, what they used."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
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


class CallRecords(Protocol):
    """Reads of committed rows; they are written by `Records.write` or with the facts of a session."""

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
