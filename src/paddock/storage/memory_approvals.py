"""Approvals in memory: what was asked for and the steps since, each written once. A part of the memory store."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow


class MemoryApprovals:
    def __init__(self) -> None:
        super().__init__()
        self._approvals: dict[str, ApprovalRow] = {}
        self._approval_steps: dict[tuple[str, str], ApprovalStepRow] = {}

    async def approval(self, approval_id: str) -> Approval | None:
        asked = self._approvals.get(approval_id)
        return self._whole_approval(asked) if asked else None

    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        mine = [row for row in self._approvals.values() if (row.workspace_id, row.user_id) == (workspace_id, user_id)]
        newest = sorted(mine, key=lambda row: (-row.created_at, row.approval_id))
        return [self._whole_approval(row) for row in newest[:limit]]

    async def approval_count(self, run_id: str) -> int:
        return sum(row.run_id == run_id for row in self._approvals.values())

    async def unfinished_approvals(self) -> Sequence[Approval]:
        oldest = sorted(self._approvals.values(), key=lambda row: (row.created_at, row.approval_id))
        found = [self._whole_approval(row) for row in oldest]
        return [one for one in found if one.decided and one.decided.result == "granted" and one.done is None]

    def _whole_approval(self, asked: ApprovalRow) -> Approval:
        steps = (self._approval_steps.get((asked.approval_id, step)) for step in (DECIDED, DONE))
        return Approval(asked, *steps)

    def _check_steps(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        seen = set(self._approval_steps)
        for row in rows:
            if isinstance(row, ApprovalStepRow):
                if (row.approval_id, row.step) in seen:
                    raise HostError(ErrorCode.CONFLICT, "this step was taken already")
                seen.add((row.approval_id, row.step))

    def _write_approval(self, row: ApprovalRow | ApprovalStepRow) -> None:
        if isinstance(row, ApprovalRow):
            self._approvals.setdefault(row.approval_id, row)
        else:
            self._approval_steps[row.approval_id, row.step] = row
