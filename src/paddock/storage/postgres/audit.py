"""The audit trail: rows are added in the order in which they were handed in, and told newest first."""

from collections.abc import Sequence

from paddock.rules.rows.rows import AuditRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column lists are our own, values are always bound
AUDIT = "time, workspace_id, actor, action, resource, scope, result, reason, run_id, runner_id, session_id"
DECISIONS = insert(
    "audit",
    "time float, workspace_id text, actor text, action text, resource text, scope text, result text, reason text, "
    "run_id text, runner_id text, session_id text",
)

_ALL = f"select {AUDIT} from audit order by audit_no desc limit $1"
_OF_RUN = f"select {AUDIT} from audit where run_id = $2 order by audit_no desc limit $1"


class AuditReads(HasReader):
    """The audit trail, looked up."""

    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]:
        about = () if run_id is None else (run_id,)
        return [AuditRow(*found) for found in await self.reader.all(_OF_RUN if about else _ALL, limit, *about)]
