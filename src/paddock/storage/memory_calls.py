"""The part of the memory store that remembers calls of tools and models."""

from collections.abc import Iterable, Sequence

from paddock.ports import Spent
from paddock.rules.people.budgets import DAY
from paddock.rules.rows.calls import ModelUsageRow, PlacedCall, ToolCallRow
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow


class MemoryCalls:
    """Rows by their id, in the order they were first written, and the runs that made them."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunRow] = {}
        self._tool_calls: dict[str, ToolCallRow] = {}
        self._call_places: dict[str, int | None] = {}
        """The last fact of the conversation when a call was first written."""
        self._model_usage: dict[str, ModelUsageRow] = {}

    def _write_call(self, row: ToolCallRow | ModelUsageRow) -> None:
        if isinstance(row, ToolCallRow):
            self._call_places.setdefault(row.call_id, self._head_of(row.session_id))
            known = self._tool_calls.get(row.call_id)
            if known is None or known.status == "started" or row.status != "unknown":
                self._tool_calls[row.call_id] = row
        else:
            self._model_usage[row.call_id] = row

    async def tool_calls(self, run_id: str, *, limit: int = 1000) -> Sequence[ToolCallRow]:
        return [row for row in self._tool_calls.values() if row.run_id == run_id][:limit]

    def _head_of(self, session_id: str) -> int | None:
        """The number of the last fact of a session, if there is one."""
        raise NotImplementedError

    def _placed_calls(self) -> Iterable[PlacedCall]:
        for number, row in enumerate(self._tool_calls.values(), 1):
            if (after := self._call_places.get(row.call_id)) is not None:
                yield PlacedCall(row, after, number)

    async def placed_call(self, call_id: str) -> PlacedCall | None:
        return next((one for one in self._placed_calls() if one.row.call_id == call_id), None)

    async def unanswered_tool_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ToolCallRow]:
        started = [row for row in self._tool_calls.values() if row.status == "started"]
        return [row for row in started if self._is_over(row, over_since)][:limit]

    async def model_usage(self, run_id: str, *, limit: int = 1000) -> Sequence[ModelUsageRow]:
        return [row for row in self._model_usage.values() if row.run_id == run_id][:limit]

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        rows = [row for row in self._model_usage.values() if day <= row.started_at < day + DAY]
        mine = [row for row in rows if row.workspace_id == workspace_id and user_id in (None, row.user_id)]
        return sum(row.total_tokens or 0 for row in mine), sum(row.cost or 0.0 for row in mine)

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        rows = [
            row
            for row in self._model_usage.values()
            if run_id in (None, row.run_id)
            and workspace_id in (None, row.workspace_id)
            and user_id in (None, row.user_id)
            and row.started_at >= since
        ]
        return Spent(
            calls=len(rows),
            prompt_tokens=sum(row.prompt_tokens or 0 for row in rows),
            completion_tokens=sum(row.completion_tokens or 0 for row in rows),
            total_tokens=sum(row.total_tokens or 0 for row in rows),
            cost=sum(row.cost or 0.0 for row in rows),
            unpriced=unpriced_in(rows),
        )

    def _is_over(self, row: ToolCallRow, since: float) -> bool:
        run = self._runs.get(row.run_id)
        return run is None or (run.status in TERMINAL_STATUSES and (run.ended_at or 0.0) <= since)


def unpriced_in(rows: Iterable[ModelUsageRow]) -> int:
    """Answered calls whose cost nobody knows."""
    return sum(row.cost is None and row.total_tokens is not None for row in rows)
