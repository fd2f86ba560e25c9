"""Runs as their owners see them: found by the host's id or their own label, with usage, and with the reasons why a host
call is allowed. Foreign runs look like unknown ones."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from paddock.host.people.principals import Principal
from paddock.ports import CallRecords, ConversationRecords, OverviewRecords
from paddock.rules.access.explain import Explanation, explain, meant
from paddock.rules.access.gate import LOOKED_AT
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import known_cost
from paddock.rules.rows.rows import RunRow


class _Records(CallRecords, ConversationRecords, Protocol): ...


class RunsView:
    def __init__(self, records: _Records) -> None:
        self._records = records

    async def usage(self, run: RunRow) -> dict[str, Any] | None:
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

    async def find(self, principal: Principal, ref: str, session_id: str | None = None) -> RunRow:
        """Find a run by taskId, or by the caller's own runId. Raises NOT_FOUND, or CONFLICT when that names several."""
        run = await self._records.run(ref)
        if run is not None and principal.owns(run) and session_id in {None, run.session_id}:
            return run
        named = await self._records.runs_by_label(principal.workspace_id, principal.user_id, ref, limit=1000)
        mine = [run for run in named if session_id in {None, run.session_id}]
        if len(mine) > 1:
            raise HostError(
                ErrorCode.CONFLICT, f"runId {ref!r} names runs in several threads; add ?threadId= to say which"
            )
        if not mine:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such run")
        return mine[0]

    async def find_to_stop(self, principal: Principal, ref: str, session_id: str | None = None) -> RunRow:
        """Find a run to stop. Administrators find every run of their workspace, by its taskId."""
        run = await self._records.run(ref) if principal.role == "admin" else None
        if run is not None and run.workspace_id == principal.workspace_id and session_id in {None, run.session_id}:
            return run
        return await self.find(principal, ref, session_id)


LOOK_BACK = 1000
"""Newest audit rows of a run that are counted."""


class Explanations:
    def __init__(self, records: OverviewRecords, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def explain(self, run: RunRow, action: str, resource: str = "") -> tuple[Explanation, Mapping[str, int]]:
        """Explain in words which layers allow a call, and count how it was answered. Reasons stay in the audit."""
        if action not in LOOKED_AT:
            raise HostError(ErrorCode.INVALID_ARGUMENT, meant(action))
        grant: Mapping[str, Any] = msgspec.json.decode(run.grant) if run.grant else {}
        told = explain(run, grant, action, resource[:256], self._clock())
        return told, await self._decisions(run.run_id, action, resource)

    async def _decisions(self, run_id: str, action: str, resource: str) -> Mapping[str, int]:
        rows = await self._records.audit(run_id=run_id, limit=LOOK_BACK)
        return Counter(row.result for row in rows if row.action == action and resource in ("", row.resource, row.scope))
