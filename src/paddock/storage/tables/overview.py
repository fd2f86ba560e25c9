"""A workspace as a whole: runs, decisions and usage by their marks. Read beside everything else, and with an end."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from paddock.rules.log.forgetting import first_id_after
from paddock.rules.people import AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.storage.tables.calls import COST, ENDED, TOKENS, UNPRICED
from paddock.storage.tables.conversations import NUMBER
from paddock.storage.tables.statements import HasEngine, Query, long
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the column lists are our own, values are always bound
AUDIT = Table("audit", AuditRow)
CLOCKS_APART = 3600.0
"""The clock that an id was made with and the one that wrote the row may differ by so many seconds."""
_ALL = Query(AuditRow, "select {columns} from audit order by audit_no desc limit :limit")
_OF_RUN = Query(AuditRow, "select {columns} from audit where run_id = :run_id order by audit_no desc limit :limit")
_USAGE = Query(
    UsageLine,
    f"""
select floor(started_at / :every) * :every, agent_id, model_id, count(*), {TOKENS}, {COST}, {UNPRICED}
  from model_usage where workspace_id = :workspace_id and started_at >= :since and {ENDED}
   and (:user_id::text is null or user_id = :user_id)
 group by 1, 2, 3 order by 1, 2, 3""",
)
_PACES = """
with lap as (
  select {start}::double precision as start, status,
         case when status = 'completed' then ended_at - coalesce(started_at, created_at) end as took
    from runs where {where}),
ends as (
  select start, min(took) filter (where share >= 0.5) as median, min(took) filter (where share >= 0.95) as slow
    from (select start, took, cume_dist() over (partition by start order by took) as share
            from lap where took is not null) done
   group by start)
select lap.start, count(*), count(*) filter (where status = 'completed'), count(*) filter (where status = 'failed'),
       count(*) filter (where status = 'cancelled'), min(median), min(slow)
  from lap left join ends on ends.start = lap.start group by lap.start order by lap.start"""
# Only the conversation is read for the ids of its runs.
_IN_SESSION = f"run_id in (select run_id from transcript where session_no = {NUMBER})"


def _where(conditions: Mapping[str, Any]) -> str:
    return " and ".join(condition for condition, asked in conditions.items() if asked is not None and asked != ())


def _entry(number: int, *found: Any) -> AuditEntry:
    return AuditEntry(number, AuditRow(*found))


class OverviewReads(HasEngine):
    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]:
        if run_id is None:
            return await self.engine.all(_ALL, limit=limit)
        return await self.engine.all(_OF_RUN, run_id=run_id, limit=limit)

    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        where = _where(
            {
                "workspace_id = :workspace_id": query.workspace_id,
                _IN_SESSION: query.session_id,
                "status = any(:statuses::text[])": query.statuses,
                "user_id = :user_id": query.user_id,
                "agent_id = :agent_id": query.agent_id,
                "run_id < :before": query.before,
            }
        )
        found = Query(RunRow, f"select {{columns}} from runs where {where} order by run_id desc limit :limit")
        return await self.engine.long(found, **asdict(query))

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        whose = "workspace_id in (:workspace_id, '')" if query.of_hosts else "workspace_id = :workspace_id"
        begins = query.action is not None and query.action.endswith("*")
        where = _where(
            {
                whose: query.workspace_id,
                "substr(action, 1, length(:action)) = :action" if begins else "action = :action": query.action,
                "actor = :actor": query.actor,
                "result = :result": query.result,
                "run_id = :run_id": query.run_id,
                "session_id = :session_id": query.session_id,
                "time >= :since": query.since,
                "time < :until": query.until,
                "audit_no < :before": query.before,
            }
        )
        sql = f"select audit_no, {AUDIT.columns} from audit where {where} order by audit_no desc limit :limit"
        asked = {**asdict(query), "action": query.action and query.action.removesuffix("*")}
        return await self.engine.long(Query(_entry, sql), **asked)

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        whose = {"workspace_id": workspace_id, "user_id": user_id}
        return await self.engine.long(_USAGE, **whose, since=since, every=float(every))

    spenders = long(
        Spender,
        f"""
select user_id, count(*), coalesce(sum(total_tokens), 0)::bigint, {COST}, {UNPRICED}
  from model_usage where workspace_id = :workspace_id and started_at >= :since and {ENDED}
 group by 1 order by 4 desc, 3 desc, 1 limit :limit""",
    )

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        """Ids of runs are in order of time, so only the newest part of the table is read."""
        where = _where(
            {
                "workspace_id = :workspace_id": workspace_id,
                "run_id >= :first": since,
                "created_at >= :since": since,
                "user_id = :user_id": user_id,
            }
        )
        start = "0.0" if every is None else f"(floor(created_at / {every}) * {every})"
        asked = {"workspace_id": workspace_id, "user_id": user_id, "since": since}
        query = Query(Pace, _PACES.format(start=start, where=where))
        return await self.engine.long(query, **asked, first=first_id_after(since - CLOCKS_APART))
