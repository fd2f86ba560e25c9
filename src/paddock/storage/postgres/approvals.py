"""Approvals: how their rows are written, and the questions about them. No decisions live here."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column lists are our own, values are always bound
FIRST = "on conflict do nothing"
ASKED = insert(
    "approvals",
    "approval_id text, workspace_id text, user_id text, session_id text, run_id text, agent_id text, action text, "
    "target bytes, payload bytes, created_at float, expires_at float",
    on_conflict=FIRST,
)
STEPS = insert(
    "approval_steps",
    "approval_id text, step text, result text, actor text, time float, token text, detail text",
)


def _of(alias: str, names: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{name}" for name in names)


_WHOLE = f"""
select {_of("a", ASKED.names)}, {_of("d", STEPS.names)}, {_of("e", STEPS.names)}
  from approvals a
  left join approval_steps d on d.approval_id = a.approval_id and d.step = '{DECIDED}'
  left join approval_steps e on e.approval_id = a.approval_id and e.step = '{DONE}'"""
_ONE = f"{_WHOLE} where a.approval_id = $1"
_OF_USER = f"{_WHOLE} where a.workspace_id = $1 and a.user_id = $2 order by a.created_at desc, a.approval_id limit $3"
_UNFINISHED = f"{_WHOLE} where d.result = 'granted' and e.step is null order by a.created_at, a.approval_id"
_COUNT = "select count(*) from approvals where run_id = $1"


class ApprovalReads(HasReader):
    """Approvals, looked up."""

    async def approval(self, approval_id: str) -> Approval | None:
        found = await self.reader.one(_ONE, approval_id)
        return _read(found) if found else None

    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        return [_read(found) for found in await self.reader.all(_OF_USER, workspace_id, user_id, limit)]

    async def approval_count(self, run_id: str) -> int:
        return (await self.reader.one(_COUNT, run_id))[0]

    async def unfinished_approvals(self) -> Sequence[Approval]:
        return [_read(found) for found in await self.reader.all(_UNFINISHED)]


def _read(found: Any) -> Approval:
    first, second = len(ASKED.names), len(ASKED.names) + len(STEPS.names)
    return Approval(ApprovalRow(*found[:first]), _step(found[first:second]), _step(found[second:]))


def _step(found: Sequence[Any]) -> ApprovalStepRow | None:
    return ApprovalStepRow(*found) if found[0] is not None else None
