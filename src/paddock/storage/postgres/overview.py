"""A workspace as a whole in PostgreSQL: runs, decisions and usage by their marks."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from collections.abc import Sequence
from itertools import count
from typing import Any

from paddock.rules.people.overview import AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.storage.filters import PACES, UNPRICED, begun_since, of_decisions, of_runs
from paddock.storage.postgres.audit import AUDIT
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.runs import RUN

_OF_SESSION = "select run_id from transcript where session_no = (select session_no from sessions where session_id = ?)"
_USAGE = f"""
select (floor(started_at / $1) * $1)::double precision, agent_id, model_id, count(*),
       coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(completion_tokens), 0)::bigint,
       coalesce(sum(total_tokens), 0)::bigint, coalesce(sum(cost), 0)::double precision, {UNPRICED}
  from model_usage where workspace_id = $2 and started_at >= $3 and ($4::text is null or user_id = $4)
 group by 1, 2, 3 order by 1, 2, 3"""
_SPENDERS = f"""
select user_id, count(*), coalesce(sum(total_tokens), 0)::bigint, coalesce(sum(cost), 0)::double precision, {UNPRICED}
  from model_usage where workspace_id = $1 and started_at >= $2 group by 1 order by 4 desc, 3 desc, 1 limit $3"""


class OverviewReads(HasReader):
    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        where, values = of_runs(query, _OF_SESSION)
        sql = _numbered(f"select {RUN} from runs where {where} order by run_id desc limit ?")
        return [RunRow(*found) for found in await self._found(sql, *values, query.limit)]

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        where, values = of_decisions(query)
        sql = _numbered(f"select audit_no, {AUDIT} from audit where {where} order by audit_no desc limit ?")
        return [AuditEntry(found[0], AuditRow(*found[1:])) for found in await self._found(sql, *values, query.limit)]

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        found = await self._found(_USAGE, float(every), workspace_id, since, user_id)
        return [UsageLine(*line) for line in found]

    async def spenders(self, workspace_id: str, *, since: float, limit: int) -> Sequence[Spender]:
        return [Spender(*found) for found in await self._found(_SPENDERS, workspace_id, since, limit)]

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        where, values = begun_since(workspace_id, user_id, since)
        start = "0::float8" if every is None else f"(floor(created_at / {every}) * {every})::float8"
        sql = _numbered(PACES.format(start=start, where=where))
        return [Pace(*found) for found in await self._found(sql, *values)]

    async def _found(self, sql: str, *values: object) -> Sequence[Sequence[Any]]:
        """Within the time a question may take: these read more than a row or two."""
        return await self.reader.ask(lambda connection: connection.fetch(sql, *values))


def _numbered(sql: str) -> str:
    number = count(1)
    return "".join(f"${next(number)}" if character == "?" else character for character in sql)
