"""Approvals: platform actions that runs request. The user decides each once, and an approved action is done once.

The gate has checked manifest and agent before a request comes here. An action that no platform offers is only recorded.
Nothing here knows a particular platform.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import msgspec
import structlog

from paddock.host.calls.work import CallHandler
from paddock.host.conflicts import written_first
from paddock.host.ids import random_bytes
from paddock.host.people.principals import Principal
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import CallRecords
from paddock.ports.platforms import Performed, PlatformAction, PlatformActions
from paddock.rules.access.approvals import (
    DECIDED,
    DONE,
    HANDOVER,
    MAX_PER_RUN,
    Approval,
    ApprovalDecision,
    approval_for,
)
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError, UnansweredWriteError
from paddock.rules.log.payloads import as_object
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.rules.rows.rows import AuditRow, Row
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import PlatformRequestActionParams, PlatformRequestActionResult

PERFORM_SECONDS = 30.0
"""How long a platform may take; after that the result is recorded as unknown."""

MAX_ASKING = 1024
"""How many runs with open questions are remembered."""
MAX_DETAILS = 4096
"""The most bytes of target and payload that are shown with the question."""
STOPPED = "the host stopped while this was being done"
YES_OR_NO = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}

log = structlog.get_logger("paddock.approvals")


@dataclass(eq=False)
class Approvals:
    store: CallRecords
    platform: PlatformActions
    _: KW_ONLY
    outcomes: Outcomes
    clock: Callable[[], float]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    _key: bytes = field(default_factory=partial(random_bytes, 32), init=False)
    """Gives equal requests of a run equal ids; it may be random because no run outlives this process."""
    _asking: OrderedDict[str, dict[str, ApprovalRow]] = field(
        default_factory=OrderedDict[str, dict[str, ApprovalRow]], init=False
    )
    """Undecided requests by run, until the run ends."""

    # --- requests of runs --------------------------------------------------------------------------------------------

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"platform.request_action": CallHandler(write=self.request)}

    async def request(
        self, grant: Grant, asked: PlatformRequestActionParams, audit: AuditRow
    ) -> PlatformRequestActionResult:
        """Ask the user. A repeated request returns what became of the first."""
        row = approval_for(grant, asked.action, asked.target, asked.payload, self.clock(), key=self._key)
        known = await self.store.approval(row.approval_id)
        if known is not None:
            status = known.outcome(self.clock())
            await self.store.write([replace(audit, reason=f"asked before: {status}")])
            return PlatformRequestActionResult(status=status, approval_id=row.approval_id)
        if not self.platform.offers(grant.scope, row.action):
            await self.store.write([replace(audit, result="recorded", reason=_nobody(row))])
            return PlatformRequestActionResult(status="recorded")
        if await self.store.approval_count(row.run_id) >= MAX_PER_RUN:
            raise HostError(ErrorCode.RATE_LIMITED, f"a run may ask for at most {MAX_PER_RUN} platform actions")
        await self.store.write([row, replace(audit, reason="waits for the user's approval")])
        self._remember(row)
        return PlatformRequestActionResult(status="pending", approval_id=row.approval_id)

    def requested(self, grant: Grant, data: Mapping[str, Any], asked_before: int) -> Sequence[Row]:
        """The rows for an `action.requested`: an audit row, and an approval if the action may be asked for."""
        target, payload = as_object(data.get("target")), as_object(data.get("payload"))
        row = approval_for(grant, data["action"], target, payload, self.clock(), key=self._key)
        if row.action == HANDOVER:
            return ()
        if row.action not in grant.platform_actions:
            return (_judged(grant, row, "unauthorized", "manifest and agent do not both allow it"),)
        if not self.platform.offers(grant.scope, row.action):
            return (_judged(grant, row, "recorded", _nobody(row)),)
        if asked_before >= MAX_PER_RUN:
            return (_judged(grant, row, "rate_limited", f"more than {MAX_PER_RUN} actions in one run"),)
        self._remember(row)
        return (row, _judged(grant, row, "allowed", "waits for the user's approval"))

    def asks(self, run_id: str) -> bool:
        """True when a run asked for something that may still be undecided."""
        return bool(self._asking.get(run_id))

    async def waiting(self, run_id: str) -> Sequence[Mapping[str, Any]]:
        """The questions that a run leaves open at its end; each is returned once."""
        asked = self._asking.pop(run_id, {})
        return [_question(row) for row in asked.values() if await self._is_open(row.approval_id)]

    async def _is_open(self, approval_id: str) -> bool:
        try:
            found = await self.store.approval(approval_id)
        except StorageUnavailableError:
            return True  # better asked twice than never
        return found is None or found.decided is None

    def _remember(self, row: ApprovalRow) -> None:
        self._asking.setdefault(row.run_id, {})[row.approval_id] = row
        if len(self._asking) > MAX_ASKING:  # failed runs are never asked for their open questions
            self._asking.popitem(last=False)

    # --- decisions of users ------------------------------------------------------------------------------------------

    async def list(self, principal: Principal, *, limit: int = 100) -> Sequence[Approval]:
        return await self.store.approvals(principal.workspace_id, principal.user_id, limit=limit)

    async def get(self, principal: Principal, approval_id: str) -> Approval:
        found = await self.store.approval(approval_id)
        if found is None or not principal.owns(found.asked):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such approval")
        return found

    async def decide(self, principal: Principal, approval_id: str, decision: ApprovalDecision) -> Approval:
        """Grant or deny. A granted action is done before this returns. Repeating the decision changes nothing."""
        found = await self.get(principal, approval_id)
        status = found.status(self.clock())
        if status == decision:
            return found
        if status != "pending":
            raise HostError(ErrorCode.CONFLICT, f"this was {status} already; nothing was changed")
        step = self._step(found, DECIDED, decision, f"user:{principal.user_id}")
        try:
            taken = await written_first(self.store, [step, _decided(found.asked, step)])
        except UnansweredWriteError:
            self.spawn(self._go_on(step))
            raise
        self._asking.get(found.asked.run_id, {}).pop(approval_id, None)
        if not taken:
            raise HostError(ErrorCode.CONFLICT, "somebody else decided this at the same moment; nothing was changed")
        if decision == "granted":
            await asyncio.shield(self.spawn(self._perform(found)))  # the action goes on when the caller goes away
        return await self.get(principal, approval_id)

    async def recover(self, *, alone: bool = True) -> int:
        """Record actions that were running when the host ended as unknown; they are not done again.

        Where there are other hosts, one of them may be doing it right now: only overdue actions are recorded.
        """
        left = await self.store.unfinished_approvals()
        if not alone:
            overdue = self.clock() - 2 * PERFORM_SECONDS
            left = [found for found in left if found.decided is not None and found.decided.time < overdue]
        for approval in left:
            await self._finish(approval, "unknown", STOPPED)
        return len(left)

    async def _go_on(self, step: ApprovalStepRow) -> None:
        """Act on a decision whose write was not confirmed, if it turns out to be recorded and has not expired."""
        found = await self.outcomes.outlast(lambda: self.store.approval(step.approval_id), for_ever=True)
        if found is None or found.decided is None or found.decided.token != step.token or step.result != "granted":
            return
        if found.asked.expires_at < self.clock():
            await self._finish(found, "failed", "the store was away when this was approved; nothing was done")
        else:
            await self._perform(found)

    async def _perform(self, approval: Approval) -> None:
        try:
            async with asyncio.timeout(PERFORM_SECONDS):
                done = await self.platform.perform(_action(approval.asked))
        except TimeoutError:
            await self._finish(approval, "unknown", f"the platform did not answer within {PERFORM_SECONDS:g} seconds")
            return
        except asyncio.CancelledError:
            self.outcomes.later(approval.asked.workspace_id, self._end_of(approval, "unknown", STOPPED))
            raise
        except Exception:
            log.exception("a platform action failed", action="platform.perform", approval=approval.asked.approval_id)
            done = Performed(ok=False, detail="the host could not reach the platform; its log has the details")
        await self._finish(approval, "done" if done.ok else "failed", done.detail)

    async def _finish(self, approval: Approval, result: str, detail: str) -> None:
        try:
            await self.outcomes.record(approval.asked.workspace_id, self._end_of(approval, result, detail))
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            about = {"approval": approval.asked.approval_id, "result": result}
            log.warning("another host has recorded the end of this action already", action="platform.perform", **about)

    def _end_of(self, approval: Approval, result: str, detail: str) -> tuple[ApprovalStepRow, AuditRow]:
        step = self._step(approval, DONE, result, "host", detail)
        return step, _performed(approval.asked, step)

    def _step(self, approval: Approval, step: str, result: str, actor: str, detail: str = "") -> ApprovalStepRow:
        return ApprovalStepRow(
            approval_id=approval.asked.approval_id,
            step=step,
            result=result,
            actor=actor,
            time=self.clock(),
            token=uuid4().hex,
            detail=detail[:2000],
        )


def _nobody(row: ApprovalRow) -> str:
    return f"no platform of this conversation offers {row.action[:64]!r}; recorded, not done"


def _question(row: ApprovalRow) -> Mapping[str, Any]:
    """The approval as a question in the form of a runner's own; front ends show it beside the call of the same name."""
    return {
        "id": row.approval_id,
        "reason": "tool_call",
        "tool_call_id": row.approval_id,
        "message": f"{row.action} needs your approval",
        "response_schema": YES_OR_NO,
        "expires_at": row.expires_at,
        "action": row.action,
        **_details(row),
    }


def _details(row: ApprovalRow) -> Mapping[str, Any]:
    if len(row.target) + len(row.payload) > MAX_DETAILS:
        return {}
    return {"target": msgspec.json.decode(row.target), "payload": msgspec.json.decode(row.payload)}


def _action(row: ApprovalRow) -> PlatformAction:
    return PlatformAction(
        approval_id=row.approval_id,
        workspace_id=row.workspace_id,
        user_id=row.user_id,
        session_id=row.session_id,
        run_id=row.run_id,
        action=row.action,
        target=msgspec.json.decode(row.target),
        payload=msgspec.json.decode(row.payload),
    )


def _judged(grant: Grant, row: ApprovalRow, result: str, reason: str) -> AuditRow:
    plugin = grant.runner_id.removeprefix("plugin:").rpartition("/")[0]
    return replace(
        _about(row, "action.requested", result, reason, row.created_at, f"plugin:{plugin}"), runner_id=grant.runner_id
    )


def _decided(row: ApprovalRow, step: ApprovalStepRow) -> AuditRow:
    reason = f"{row.action} for run {row.run_id}"
    return replace(
        _about(row, "approvals.decide", step.result, reason, step.time, step.actor), resource=row.approval_id
    )


def _performed(row: ApprovalRow, step: ApprovalStepRow) -> AuditRow:
    return _about(row, "platform.perform", step.result, step.detail or "approved by the user", step.time, step.actor)


def _about(row: ApprovalRow, action: str, result: str, reason: str, at: float, actor: str) -> AuditRow:
    return AuditRow(
        time=at,
        workspace_id=row.workspace_id,
        actor=actor,
        action=action,
        resource=row.action[:256],
        scope=row.session_id,
        result=result,
        reason=reason,
        run_id=row.run_id,
        session_id=row.session_id,
    )
