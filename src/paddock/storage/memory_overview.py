"""The part of the memory store that answers questions about a workspace as a whole."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from paddock.rules.people.overview import (
    AuditEntry,
    AuditQuery,
    Lap,
    Pace,
    RunsQuery,
    Spender,
    UsageLine,
    pace_of,
    paces,
)
from paddock.rules.rows.calls import ModelUsageRow
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.storage.memory_calls import unpriced_in
from paddock.storage.memory_keeping import MemorySession


class MemoryOverview:
    """Reads over rows that other parts keep."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunRow] = {}
        self._sessions: dict[str, MemorySession] = {}
        self._audit: list[AuditRow] = []
        self._model_usage: dict[str, ModelUsageRow] = {}

    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        ids = self._runs.keys() if query.session_id is None else self._spoke_in(query.session_id) & self._runs.keys()
        found = (self._runs[run_id] for run_id in sorted(ids, reverse=True))
        return list(islice((run for run in found if _run_fits(query, run)), query.limit))

    def _spoke_in(self, session_id: str) -> set[str]:
        log = self._sessions.get(session_id)
        return {item.run_id for item in log.items.values() if item.run_id is not None} if log else set()

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        numbered = (AuditEntry(number, self._audit[number - 1]) for number in range(len(self._audit), 0, -1))
        return list(islice((entry for entry in numbered if _decision_fits(query, entry)), query.limit))

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        lines: dict[tuple[float, str, str], list[ModelUsageRow]] = defaultdict(list)
        for row in self._model_usage.values():
            if row.workspace_id == workspace_id and user_id in (None, row.user_id) and row.started_at >= since:
                lines[row.started_at // every * every, row.agent_id, row.model_id].append(row)
        return [_line(key, lines[key]) for key in sorted(lines)]

    async def spenders(self, workspace_id: str, *, since: float, limit: int) -> Sequence[Spender]:
        by_user: dict[str, list[ModelUsageRow]] = defaultdict(list)
        for row in self._model_usage.values():
            if row.workspace_id == workspace_id and row.started_at >= since:
                by_user[row.user_id].append(row)
        found = [_spender(user_id, rows) for user_id, rows in by_user.items()]
        return sorted(found, key=lambda one: (-one.cost, -one.total_tokens, one.user_id))[:limit]

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        runs = await self.runs_where(RunsQuery(workspace_id, user_id, limit=1 << 30))
        laps = [
            Lap(run.created_at, run.started_at, run.ended_at, run.status) for run in runs if run.created_at >= since
        ]
        if every is not None:
            return paces(laps, every)
        return [pace_of(0.0, laps)] if laps else []


def _run_fits(query: RunsQuery, run: RunRow) -> bool:
    return (
        run.workspace_id == query.workspace_id
        and query.user_id in (None, run.user_id)
        and query.agent_id in (None, run.agent_id)
        and (not query.statuses or run.status in query.statuses)
        and (query.before is None or run.run_id < query.before)
    )


def _decision_fits(query: AuditQuery, entry: AuditEntry) -> bool:
    row = entry.row
    return (
        (row.workspace_id == query.workspace_id or (query.of_hosts and not row.workspace_id))
        and query.actor in (None, row.actor)
        and query.result in (None, row.result)
        and query.run_id in (None, row.run_id)
        and query.session_id in (None, row.session_id)
        and (query.action is None or _is_action(query.action, row.action))
        and (query.since is None or row.time >= query.since)
        and (query.until is None or row.time < query.until)
        and (query.before is None or entry.number < query.before)
    )


def _is_action(asked: str, action: str) -> bool:
    return action.startswith(asked[:-1]) if asked.endswith("*") else action == asked


def _spender(user_id: str, rows: Sequence[ModelUsageRow]) -> Spender:
    tokens, cost = sum(row.total_tokens or 0 for row in rows), sum(row.cost or 0.0 for row in rows)
    return Spender(user_id, len(rows), tokens, cost, unpriced_in(rows))


def _line(key: tuple[float, str, str], rows: Sequence[ModelUsageRow]) -> UsageLine:
    return UsageLine(
        *key,
        calls=len(rows),
        prompt_tokens=sum(row.prompt_tokens or 0 for row in rows),
        completion_tokens=sum(row.completion_tokens or 0 for row in rows),
        total_tokens=sum(row.total_tokens or 0 for row in rows),
        cost=sum(row.cost or 0.0 for row in rows),
        unpriced=unpriced_in(rows),
    )
