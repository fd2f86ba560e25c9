"""Finding a run for the one who asks: their own, by the host's id or by their own label. Foreign looks like unknown."""

from typing import Any, Protocol

from paddock.host.people.principals import Principal
from paddock.ports import CallRecords, ConversationRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.overview import known_cost
from paddock.rules.rows.rows import RunRow


class _Records(CallRecords, ConversationRecords, Protocol):
    """The ports of the store that are used here."""


class RunsView:
    def __init__(self, records: _Records) -> None:
        self._records = records

    async def usage(self, run: RunRow) -> dict[str, Any] | None:
        """Model usage of a run for its owner; None when it asked none."""
        spent = await self._records.spent(run_id=run.run_id)
        if not spent.calls:
            return None
        return {
            "modelCalls": spent.calls,
            "promptTokens": spent.prompt_tokens,
            "completionTokens": spent.completion_tokens,
            "totalTokens": spent.total_tokens,
            "cost": known_cost(spent.cost, spent.unpriced),
            **({"unpricedCalls": spent.unpriced} if spent.unpriced else {}),
        }

    async def find(self, principal: Principal, ref: str, thread_id: str | None = None) -> RunRow:
        """By taskId, or by the caller's own runId. Raises NOT_FOUND, or CONFLICT when that names several."""
        run = await self._records.run(ref)
        if run is not None and _owns(principal, run) and thread_id in {None, run.session_id}:
            return run
        named = await self._records.runs_by_label(principal.workspace_id, principal.user_id, ref, limit=1000)
        mine = [run for run in named if thread_id in {None, run.session_id}]
        if len(mine) > 1:
            raise HostError(
                ErrorCode.CONFLICT, f"runId {ref!r} names runs in several threads; add ?threadId= to say which"
            )
        if not mine:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such run")
        return mine[0]

    async def find_to_stop(self, principal: Principal, ref: str, thread_id: str | None = None) -> RunRow:
        """Find a run to stop. Administrators find every run of their workspace, by its taskId."""
        run = await self._records.run(ref) if principal.role == "admin" else None
        if run is not None and run.workspace_id == principal.workspace_id and thread_id in {None, run.session_id}:
            return run
        return await self.find(principal, ref, thread_id)


def _owns(principal: Principal, run: RunRow) -> bool:
    return (run.workspace_id, run.user_id) == (principal.workspace_id, principal.user_id)
