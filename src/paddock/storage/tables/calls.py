"""Calls of tools and models: what was asked, what came of it, and what was used, one by one and added up. And actions
that somebody has to approve."""

from collections.abc import Sequence
from typing import Any

from paddock.ports import Spent
from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow, ModelUsageRow, PlacedCall, ToolCallRow
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import WHOLE, View
from paddock.rules.values import replace
from paddock.storage.tables.conversations import NO_END, subthread
from paddock.storage.tables.statements import HasEngine, Query, columns_of, many, one, several, value
from paddock.storage.tables.table import LookedUp, Table

# ruff: noqa: S608 - the column lists are our own, values are always bound


def _called_again(known: ToolCallRow, row: ToolCallRow) -> ToolCallRow:
    """Merge two writes of one call: the first question and the last outcome; a known outcome stays known."""
    if row.status == "unknown" and known.status != "started":
        return known
    return replace(known, status=row.status, result=row.result, artifact_id=row.artifact_id, ended_at=row.ended_at)


TOOL_CALLS = Table(
    "tool_calls",
    ToolCallRow,
    key=("call_id",),
    again=("status", "result", "artifact_id", "ended_at"),
    only_where="tool_calls.status = 'started' or excluded.status <> 'unknown'",
    looked_up=LookedUp("after_seq", "(select head_seq from sessions s where s.session_id = {})", "session_id"),
    merged=_called_again,
)


def _used_again(known: ModelUsageRow, row: ModelUsageRow) -> ModelUsageRow:
    """Merge two writes of one call, in whatever order they come: what is known of its end stays known."""
    return known if row.result in UNENDED and known.result != "started" else row


UNENDED = ("started", "unknown")
USAGE = Table(
    "model_usage",
    ModelUsageRow,
    key=("call_id",),
    again=(
        *("answered_by", "result", "prompt_tokens", "completion_tokens", "total_tokens", "cost", "ended_at"),
        "estimated",
    ),
    only_where=f"model_usage.result = 'started' or excluded.result not in {UNENDED}",
    merged=_used_again,
)
ENDED = "result <> 'started'"

UNPRICED = "count(*) filter (where cost is null and total_tokens is not null)"
"""Calls that cost nobody knows how much. One that was never heard has no tokens, and cost nothing."""
TOKENS = ", ".join(
    f"coalesce(sum({name}), 0)::bigint" for name in ("prompt_tokens", "completion_tokens", "total_tokens")
)
COST = "coalesce(sum(cost), 0.0)::double precision"
_SPENT = f"select count(*), {TOKENS}, {COST}, {UNPRICED} from model_usage where started_at >= :since and {ENDED}"
SPENT_ON = Query(
    several,
    f"""
select coalesce(sum(tokens), 0)::bigint, {COST} from model_spent
 where day = :day and workspace_id = :workspace_id and (:user_id::text is null or user_id = :user_id)""",
)
_PLACED = f"select {TOOL_CALLS.columns}, after_seq, call_no from tool_calls c where"
_CALL = f"{_PLACED} call_id = :call_id and after_seq is not null"
_OF_SESSION = f"""
{_PLACED} session_id = :session_id and (after_seq, call_no) < (:after::bigint, :number::bigint) {{view}}
 order by after_seq desc, call_no desc limit :limit"""
_DELIVERIES = f"""
select {columns_of(DeliveryRow)} from deliveries d
 where session_id = :session_id and number < :before {{view}} order by number desc limit :limit"""
_OF_A_RUN = "and exists (select 1 from runs r where r.run_id = {table}.run_id {subthread})"


def _placed(*found: Any) -> PlacedCall:
    *row, after, number = found
    return PlacedCall(ToolCallRow(*row), after, number)


def _of_a_run(table: str, view: View) -> str:
    condition = subthread("r", view)
    return _OF_A_RUN.format(table=table, subthread=condition) if condition else ""


def _unanswered(table: str, outcome: str, order: str) -> str:
    return f"""
select {{columns}} from {table} /*sqlite indexed by {table}_open*/ where {outcome} = 'started' and not exists (
  select 1 from runs
   where runs.run_id = {table}.run_id and (runs.status in ('queued', 'running') or runs.ended_at > :over_since))
 order by {order} limit :limit"""


class CallReads(HasEngine):
    tool_calls = many(
        ToolCallRow, "select {columns} from tool_calls where run_id = :run_id order by call_no limit :limit", limit=1000
    )
    unanswered_tool_calls = many(ToolCallRow, _unanswered("tool_calls", "status", "call_no"), limit=1000)
    unanswered_model_calls = many(ModelUsageRow, _unanswered("model_usage", "result", "usage_no"), limit=1000)
    model_usage = many(
        ModelUsageRow,
        "select {columns} from model_usage where run_id = :run_id order by usage_no limit :limit",
        limit=1000,
    )

    async def spent_on(self, day: float, workspace_id: str, user_id: str | None = None) -> tuple[int, float]:
        tokens, cost = await self.engine.one(SPENT_ON, day=day, workspace_id=workspace_id, user_id=user_id) or (0, 0.0)
        return tokens, cost

    async def spent(
        self,
        *,
        run_id: str | None = None,
        workspace_id: str | None = None,
        user_id: str | None = None,
        since: float = 0,
    ) -> Spent:
        asked = {"run_id": run_id, "workspace_id": workspace_id, "user_id": user_id}
        sql = _SPENT + "".join(f" and {column} = :{column}" for column, one in asked.items() if one is not None)
        return await self.engine.one(Query(Spent, sql), since=since, **asked) or Spent()

    # --- as part of what happened in a conversation

    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        after, number = before or (NO_END, 0)
        query = Query(_placed, _OF_SESSION.format(view=_of_a_run("c", view)))
        asked = {"session_id": session_id, "after": after, "number": number, "limit": limit}
        return await self.engine.all(query, **asked, subthread_id=view.subthread_id)

    async def placed_call(self, call_id: str) -> PlacedCall | None:
        return await self.engine.one(Query(_placed, _CALL), call_id=call_id)

    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        query = Query(DeliveryRow, _DELIVERIES.format(view=_of_a_run("d", view)))
        asked = {"session_id": session_id, "before": NO_END if before is None else before, "limit": limit}
        return await self.engine.all(query, **asked, subthread_id=view.subthread_id)


# --- approvals: what was asked for, and the steps since, each written once by whoever comes first ---------------------

ASKED = Table("approvals", ApprovalRow, first=True)
STEPS = Table("approval_steps", ApprovalStepRow)
_FIRST, _SECOND = len(ASKED.names), len(ASKED.names) + len(STEPS.names)
_WHOLE = f"""
select {ASKED.of("a")}, {STEPS.of("d")}, {STEPS.of("e")}
  from approvals a
  left join approval_steps d on d.approval_id = a.approval_id and d.step = '{DECIDED}'
  left join approval_steps e on e.approval_id = a.approval_id and e.step = '{DONE}'"""


def _approval(*found: Any) -> Approval:
    return Approval(ApprovalRow(*found[:_FIRST]), _step(found[_FIRST:_SECOND]), _step(found[_SECOND:]))


def _step(found: Sequence[Any]) -> ApprovalStepRow | None:
    return ApprovalStepRow(*found) if found[0] is not None else None


class ApprovalReads(HasEngine):
    approval = one(_approval, f"{_WHOLE} where a.approval_id = :approval_id")
    approvals = many(
        _approval,
        f"""{_WHOLE} where a.workspace_id = :workspace_id and a.user_id = :user_id
 order by a.created_at desc, a.approval_id limit :limit""",
        limit=100,
    )
    approval_count = one(value, "select count(*) from approvals where run_id = :run_id", otherwise=0)
    unfinished_approvals = many(
        _approval, f"{_WHOLE} where d.result = 'granted' and e.step is null order by a.created_at, a.approval_id"
    )
