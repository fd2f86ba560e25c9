"""A workspace as a whole in SQLite: runs, decisions and usage by their marks. Asked on threads, with an end."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence

from paddock.rules.people.overview import AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.storage.filters import PACES, UNPRICED, begun_since, of_decisions, of_runs
from paddock.storage.sqlite.connection import Connection
from paddock.storage.sqlite.pool import Answer
from paddock.storage.sqlite.rows import AUDIT, RUN, Values

_OF_SESSION = "select run_id from transcript where session_no = (select session_no from sessions where session_id = ?)"
_USAGE = f"""
select cast(started_at / ?1 as integer) * ?1, agent_id, model_id, count(*), coalesce(sum(prompt_tokens), 0),
       coalesce(sum(completion_tokens), 0), coalesce(sum(total_tokens), 0), total(cost), {UNPRICED}
  from model_usage where workspace_id = ?2 and started_at >= ?3 and (?4 is null or user_id = ?4)
 group by 1, 2, 3 order by 1, 2, 3"""
_SPENDERS = f"""
select user_id, count(*), coalesce(sum(total_tokens), 0), total(cost), {UNPRICED}
  from model_usage where workspace_id = ?1 and started_at >= ?2 group by 1 order by 4 desc, 3 desc, 1 limit ?3"""


class OverviewReads(ABC):
    @abstractmethod
    def ask(self, question: Callable[[Connection], Answer]) -> Awaitable[Answer]:
        """The answer to a question that may take long, from a thread."""
        ...

    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        where, values = of_runs(query, _OF_SESSION)
        sql = f"select {RUN} from runs where {where} order by run_id desc limit ?"
        return [RunRow(*found) for found in await self._all(sql, (*values, query.limit))]

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        where, values = of_decisions(query)
        sql = f"select audit_no, {AUDIT} from audit where {where} order by audit_no desc limit ?"
        return [AuditEntry(found[0], AuditRow(*found[1:])) for found in await self._all(sql, (*values, query.limit))]

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        return [UsageLine(*found) for found in await self._all(_USAGE, (every, workspace_id, since, user_id))]

    async def spenders(self, workspace_id: str, *, since: float, limit: int) -> Sequence[Spender]:
        return [Spender(*found) for found in await self._all(_SPENDERS, (workspace_id, since, limit))]

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        where, values = begun_since(workspace_id, user_id, since)
        start = "0" if every is None else f"cast(created_at / {every} as integer) * {every}"
        return [Pace(*found) for found in await self._all(PACES.format(start=start, where=where), values)]

    async def _all(self, sql: str, values: Values) -> list[Values]:
        return await self.ask(lambda connection: connection.execute(sql, values).fetchall())
