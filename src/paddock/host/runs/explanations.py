"""Why a run may, or may not, make a host call: found for the one who owns the run, told from what is on record."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from paddock.ports import OverviewRecords
from paddock.rules.access.explain import explain, meant
from paddock.rules.access.gate import LOOKED_AT
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import RunRow

LOOK_BACK = 1000
"""How many of a run's newest decisions are counted."""


class Explanations:
    def __init__(self, records: OverviewRecords, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def explain(self, run: RunRow, action: str, resource: str = "") -> Mapping[str, Any]:
        """The layers in words, and how often the call was made and how it was answered. Reasons stay in the audit."""
        if action not in LOOKED_AT:
            raise HostError(ErrorCode.INVALID_ARGUMENT, meant(action))
        told: Mapping[str, Any] = msgspec.json.decode(run.grant) if run.grant else {}
        story = explain(run, told, action, resource[:256], self._clock())
        return {
            "taskId": run.run_id,
            "agentId": run.agent_id,
            "runnerId": run.runner_id,
            "action": story.action,
            "resource": story.resource,
            "granted": story.granted,
            "allowed": story.allowed,
            "layer": story.layer,
            "because": list(story.because),
            "reasons": [{"code": reason.code, "params": reason.params} for reason in story.reasons],
            "decisions": await self._decisions(run.run_id, action, resource),
        }

    async def _decisions(self, run_id: str, action: str, resource: str) -> Mapping[str, int]:
        rows = await self._records.audit(run_id=run_id, limit=LOOK_BACK)
        return Counter(row.result for row in rows if row.action == action and resource in ("", row.resource, row.scope))
