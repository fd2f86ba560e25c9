"""Input during a run: offered to its runner, taken in once, and recorded each time.

The host only says that input waits; the runner asks for it through the gate. Input that it does not take before its run
ends gets a turn of its own.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from paddock.host.calls.work import CallHandler
from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.live_runs import LiveRuns
from paddock.ports import Rows
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import HostError
from paddock.rules.log.payloads import RunEvent, actor_of, subject_of
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.context import RunInput, addressed_to
from paddock.rules.session.messages import SteeringTaken
from paddock_sdk.protocol.history import SteeringInputItem, SteeringPullResult

PULL_AT_MOST = 32
PULL_BYTES = 2 * 1024 * 1024
"""Bytes of one answer, which has at least one input: an answer that does not fit a frame would be lost."""

log = structlog.get_logger("paddock.steering")


class Steering:
    def __init__(self, records: Rows, live: LiveRuns) -> None:
        self._records = records
        self._live = live

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"steering.pull": CallHandler(write=self.pull)}

    async def pull(self, grant: Grant, asked: Any, row: AuditRow) -> SteeringPullResult:
        """Return the inputs that wait for this run, as many as asked for and as fit. Each is taken in by exactly one
        answer, also when the rest cannot be any more."""
        run = self._live.find(grant.scope.run_id)
        waiting = [] if run is None else [found.turn_id for found in run.session.state.queue if found.steers]
        items: list[SteeringInputItem] = []
        rows: tuple[AuditRow, ...] = (row,)
        room = PULL_BYTES
        for run_id in waiting[: min(asked.limit or PULL_AT_MOST, PULL_AT_MOST)]:
            assert run is not None
            item = _item(run, run_id, row.time)
            room -= len(item.model_dump_json()) if item is not None else 0
            if items and room < 0:
                break
            try:
                decision = await run.session.record(SteeringTaken(run_id, run.run_id, row.time), rows=rows)
            except HostError as error:
                if not items:
                    raise
                log.warning("input stays in line", action="steering.pull", run_id=run.run_id, reason=error.message)
                break
            rows = ()
            if decision.facts and item is not None:
                items.append(item)
        if rows:
            await self._records.write([row])
        return SteeringPullResult(items=items)


def _item(run: LiveRun, run_id: str, at: float) -> SteeringInputItem | None:
    found = run.session.find_input(run_id)
    if found is None:
        return None
    return SteeringInputItem.model_validate(_described(run, run_id, found, at))


def _described(run: LiveRun, run_id: str, given: RunInput, at: float) -> dict[str, Any]:
    scope, event = run.grant.scope, given.event or RunEvent()
    given = addressed_to(given, scope.agent_id)
    place = {"thread_id": scope.subthread_id} if scope.subthread_id is not None else {}
    about = {"source_event_type": event.source_event_type} if event.source_event_type is not None else {}
    return {
        "claimed_run_id": run.run_id,
        "runner_id": run.grant.runner_id,
        "claimed_at": at,
        "event": {
            "event_id": f"{scope.session_id}.{given.seq}",
            "event_type": event.event_type,
            "event_time": given.at if event.event_time is None else event.event_time,
            "source": given.source,
            "data": event.data,
            **about,
        },
        "input": {
            "text": given.text,
            "contents": [{"type": "text", "text": given.text}] if given.text else [],
            "attachments": list(given.attachments),
        },
        "conversation": {
            "conversation_id": scope.session_id,
            "bot_id": scope.agent_id,
            "workspace_id": scope.workspace_id,
            **place,
        },
        "actor": actor_of(event, scope.user_id, given.source),
        "subject": subject_of(event, given.message),
        "metadata": {"run_id": run_id},
    }
