"""Approvals: what was asked for, and the steps since, each written once by whoever comes first."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.storage.tables.statements import HasEngine, Query, value
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the column lists are our own, values are always bound
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


_ONE = Query(_approval, f"{_WHOLE} where a.approval_id = :approval_id")
_OF_USER = Query(
    _approval,
    f"""{_WHOLE} where a.workspace_id = :workspace_id and a.user_id = :user_id
 order by a.created_at desc, a.approval_id limit :limit""",
)
_UNFINISHED = Query(
    _approval, f"{_WHOLE} where d.result = 'granted' and e.step is null order by a.created_at, a.approval_id"
)
_COUNT = Query(value, "select count(*) from approvals where run_id = :run_id")


class ApprovalReads(HasEngine):
    """The part of the store that looks approvals up."""

    async def approval(self, approval_id: str) -> Approval | None:
        return await self.engine.one(_ONE, approval_id=approval_id)

    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        return await self.engine.all(_OF_USER, workspace_id=workspace_id, user_id=user_id, limit=limit)

    async def approval_count(self, run_id: str) -> int:
        return await self.engine.one(_COUNT, run_id=run_id) or 0

    async def unfinished_approvals(self) -> Sequence[Approval]:
        return await self.engine.all(_UNFINISHED)
