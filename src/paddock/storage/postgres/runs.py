"""Runs: how they are written and looked up."""

from collections.abc import Sequence

from paddock.rules.rows.rows import RunRow
from paddock.rules.values import replace
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column lists are our own, values are always bound
RUN = (
    "run_id, session_id, workspace_id, user_id, client_run_id, agent_id, runner_id, status, code, message, "
    'created_at, started_at, ended_at, deadline_at, first_seq, last_seq, "grant", usage, '
    "subthread_id, begun_seq"
)
_COLUMNS = (
    "run_id text, session_id text, workspace_id text, user_id text, client_run_id text, agent_id text, "
    "runner_id text, status text, code text, message text, created_at float, started_at float, ended_at float, "
    'deadline_at float, first_seq int, last_seq int, "grant" bytes, usage bytes, '
    "subthread_id text, begun_seq int"
)
# To whom a run belongs is written once, so these columns (and their index) are left alone by a later write.
_LATER = ("agent_id", "runner_id", "status", "code", "message", "started_at", "ended_at", "deadline_at")
_AGAIN = ", ".join(
    f"{name} = excluded.{name}" for name in (*_LATER, "first_seq", "last_seq", '"grant"', "usage", "begun_seq")
)
RUNS = insert("runs", _COLUMNS, on_conflict=f"on conflict (run_id) do update set {_AGAIN}", order="run_id")

_RUN = f"select {RUN} from runs"
_UNFINISHED = f"{_RUN} where status in ('queued', 'running') order by created_at, run_id"
_LABEL = f"""
{_RUN} where workspace_id = $1 and user_id = $2 and client_run_id = $3 and client_run_id <> ''
 order by session_id limit $4"""


def written_again(known: RunRow, row: RunRow) -> RunRow:
    """What is left of two writes of one run: the later one, belonging to whom the first one says."""
    return replace(
        row,
        session_id=known.session_id,
        workspace_id=known.workspace_id,
        user_id=known.user_id,
        client_run_id=known.client_run_id,
        created_at=known.created_at,
        subthread_id=known.subthread_id,
    )


class RunReads(HasReader):
    """Runs, looked up."""

    async def run(self, run_id: str) -> RunRow | None:
        found = await self.reader.one(f"{_RUN} where run_id = $1", run_id)
        return RunRow(*found) if found else None

    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]:
        return [RunRow(*found) for found in await self.reader.all(_LABEL, workspace_id, user_id, client_run_id, limit)]

    async def unfinished_runs(self) -> Sequence[RunRow]:
        return [RunRow(*found) for found in await self.reader.all(_UNFINISHED)]
