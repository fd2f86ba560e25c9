"""Calls of tools and models: how they are written, listed and added up."""

from collections.abc import Sequence

from paddock.ports import Spent
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.values import replace
from paddock.storage.filters import UNPRICED
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import Table, insert

# ruff: noqa: S608 - the column lists are our own, values are always bound
TOOL_CALL = (
    "call_id, run_id, session_id, workspace_id, user_id, agent_id, tool_name, status, parameters, result, artifact_id, "
    "started_at, ended_at"
)
TOOL_CALLS = Table(
    "tool_calls",
    "call_id text, run_id text, session_id text, workspace_id text, user_id text, agent_id text, tool_name text, "
    "status text, parameters bytes, result bytes, artifact_id text, started_at float, ended_at float",
    {
        "w_tool_calls": "insert into tool_calls ({columns}, after_seq) select {columns}, "
        "(select head_seq from sessions s where s.session_id = r.session_id) from {rows} order by n "
        "on conflict (call_id) do update set status = excluded.status, result = excluded.result, "
        "artifact_id = excluded.artifact_id, ended_at = excluded.ended_at "
        "where tool_calls.status = 'started' or excluded.status <> 'unknown'"
    },
)
MODEL_USAGE = (
    "call_id, run_id, session_id, workspace_id, user_id, agent_id, model_id, answered_by, operation, result, "
    "prompt_tokens, completion_tokens, total_tokens, cost, started_at, ended_at, estimated"
)
USAGE = insert(
    "model_usage",
    "call_id text, run_id text, session_id text, workspace_id text, user_id text, agent_id text, model_id text, "
    "answered_by text, operation text, result text, prompt_tokens int, completion_tokens int, total_tokens int, "
    "cost float, started_at float, ended_at float, estimated bool",
    on_conflict="on conflict do nothing",
)

_CALLS = f"select {TOOL_CALL} from tool_calls where run_id = $1 order by call_no limit $2"
_UNANSWERED = f"""
select {TOOL_CALL} from tool_calls where status = 'started' and not exists (
  select 1 from runs
   where runs.run_id = tool_calls.run_id and (runs.status in ('queued', 'running') or runs.ended_at > $1))
 order by call_no limit $2"""
_USAGE = f"select {MODEL_USAGE} from model_usage where run_id = $1 order by usage_no limit $2"
_SPENT = f"""
select count(*), coalesce(sum(prompt_tokens), 0)::bigint, coalesce(sum(completion_tokens), 0)::bigint,
       coalesce(sum(total_tokens), 0)::bigint, coalesce(sum(cost), 0)::double precision,
       {UNPRICED}
  from model_usage where started_at >= $1"""

SPENT_ON = """
select coalesce(sum(tokens), 0)::bigint, coalesce(sum(cost), 0)::double precision from model_spent
 where day = $1 and workspace_id = $2 and ($3::text is null or user_id = $3)"""


def called_again(known: ToolCallRow, row: ToolCallRow) -> ToolCallRow:
    """What is left of two writes of one call: what was asked first, and what became of it last; what is known is not
    replaced by that nobody knows."""
    if row.status == "unknown" and known.status != "started":
        return known
    return replace(known, status=row.status, result=row.result, artifact_id=row.artifact_id, ended_at=row.ended_at)


class CallReads(HasReader):
    """Calls, looked up."""

    async def tool_calls(self, run_id: str, *, limit: int = 1000) -> Sequence[ToolCallRow]:
        return [ToolCallRow(*found) for found in await self.reader.all(_CALLS, run_id, limit)]

    async def unanswered_tool_calls(self, *, over_since: float, limit: int = 1000) -> Sequence[ToolCallRow]:
        return [ToolCallRow(*found) for found in await self.reader.all(_UNANSWERED, over_since, limit)]

    async def model_usage(self, run_id: str, *, limit: int = 1000) -> Sequence[ModelUsageRow]:
        return [ModelUsageRow(*found) for found in await self.reader.all(_USAGE, run_id, limit)]

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        tokens, cost = await self.reader.one(SPENT_ON, day, workspace_id, user_id)
        return tokens, cost

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        where = {"run_id": run_id, "workspace_id": workspace_id, "user_id": user_id}
        asked = {column: value for column, value in where.items() if value is not None}
        sql = _SPENT + "".join(f" and {column} = ${number}" for number, column in enumerate(asked, 2))
        return Spent(*await self.reader.one(sql, since, *asked.values()))
