"""Approvals as they are looked up. They are written like other rows: with a session's facts, or by `Records.write`."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.access.approvals import Approval


class ApprovalRecords(Protocol):
    """Every read is of committed data. A row that exists is never written again: who writes a step first, has it."""

    async def approval(self, approval_id: str) -> Approval | None: ...
    async def approvals(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[Approval]:
        """A user's, newest first."""
        ...

    async def approval_count(self, run_id: str) -> int: ...
    async def unfinished_approvals(self) -> Sequence[Approval]:
        """Granted, and nothing on record about how it went: what a host that died left behind."""
        ...
