"""Approvals in SQLite: how their rows are written, and the questions about them. No decisions live here."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.storage.sqlite.reader import Reader
from paddock.storage.sqlite.rows import Table, getter

# ruff: noqa: S608 - the column lists are our own, values are always bound
ASKED = (
    "approval_id, workspace_id, user_id, session_id, run_id, agent_id, action, target, payload, created_at, expires_at"
)
STEP = "approval_id, step, result, actor, time, token, detail"
FIRST = "on conflict do nothing"

TABLES: Mapping[type, Table] = {
    ApprovalRow: Table("approvals", ASKED, getter(ASKED), FIRST),
    ApprovalStepRow: Table("approval_steps", STEP, getter(STEP)),
}

_ASKED_COUNT, _STEP_COUNT = len(ASKED.split(", ")), len(STEP.split(", "))
_WHOLE = f"""
select {", ".join(f"a.{name}" for name in ASKED.split(", "))}, {", ".join(f"d.{name}" for name in STEP.split(", "))},
       {", ".join(f"e.{name}" for name in STEP.split(", "))}
  from approvals a
  left join approval_steps d on d.approval_id = a.approval_id and d.step = '{DECIDED}'
  left join approval_steps e on e.approval_id = a.approval_id and e.step = '{DONE}'"""
_OF_USER = f"{_WHOLE} where a.workspace_id = ? and a.user_id = ? order by a.created_at desc, a.approval_id limit ?"
_UNFINISHED = f"{_WHOLE} where d.result = 'granted' and e.step is null order by a.created_at, a.approval_id"


class ApprovalReads(ABC):
    """The part of the store that answers questions about approvals."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def approval(self, approval_id: str) -> Approval | None:
        found = self._reader.one(f"{_WHOLE} where a.approval_id = ?", (approval_id,))
        return _read(found) if found else None

    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        return [_read(found) for found in self._reader.all(_OF_USER, (workspace_id, user_id, limit))]

    async def approval_count(self, run_id: str) -> int:
        return self._reader.one("select count(*) from approvals where run_id = ?", (run_id,))[0]

    async def unfinished_approvals(self) -> Sequence[Approval]:
        return [_read(found) for found in self._reader.all(_UNFINISHED)]


def _read(found: Sequence[Any]) -> Approval:
    asked, rest = found[:_ASKED_COUNT], found[_ASKED_COUNT:]
    decided, done = rest[:_STEP_COUNT], rest[_STEP_COUNT:]
    return Approval(ApprovalRow(*asked), _step(decided), _step(done))


def _step(found: Sequence[Any]) -> ApprovalStepRow | None:
    return ApprovalStepRow(*found) if found[0] is not None else None
