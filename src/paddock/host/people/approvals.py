"""Platform actions that runs ask for: put before the user, decided once, done once. Otherwise only recorded.

Manifest and agent have consented when a request comes here, or it is refused. Nothing here knows a platform.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any
from uuid import uuid4

import msgspec
import structlog

from paddock.host.calls.work import CallHandler
from paddock.host.ids import chance
from paddock.host.people.principals import Principal
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import CallRecords
from paddock.ports.platforms import Performed, PlatformAction, PlatformActions
from paddock.rules.access.approvals import DECIDED, DONE, HANDOVER, MAX_PER_RUN, Approval, Decision, approval_for
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError, UnansweredWriteError
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.rules.rows.rows import AuditRow, Row
from paddock.rules.run.outputs import as_object
from paddock.rules.values import replace
from paddock_sdk.protocol.host_calls import PlatformRequestActionParams, PlatformRequestActionResult

PERFORM_SECONDS = 30.0
"""How long a platform may take; after that nobody knows, and the record says so."""

MAX_ASKING = 1024
"""Runs that wait for their users at once, as far as they are told so when they end."""
MAX_DETAILS = 4096
"""Bytes of an action's target and payload that are told with the question."""
STOPPED = "the host stopped while this was being done"
YES_OR_NO = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}

log = structlog.get_logger("paddock.approvals")


class Approvals:
    def __init__(
        self,
        store: CallRecords,
        platform: PlatformActions,
        *,
        outcomes: Outcomes,
        clock: Callable[[], float],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._store = store
        self._platform = platform
        self._outcomes = outcomes
        self.clock = clock
        self._spawn = spawn
        self._key = chance(32)
        """Makes equal ids of equal requests of a run, and a run does not outlive the process it was started by."""
        self._asking: OrderedDict[str, dict[str, ApprovalRow]] = OrderedDict()
        """What runs asked for that nobody has decided about, by run, until the run has ended."""

    # --- what runs ask for -------------------------------------------------------------------------------------------

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"platform.request_action": CallHandler(write=self.request)}

    async def request(
        self, grant: Grant, asked: PlatformRequestActionParams, audit: AuditRow
    ) -> PlatformRequestActionResult:
        """Ask the user. The same request again says what became of the first."""
        row = approval_for(grant, asked.action, asked.target, asked.payload, self.clock(), key=self._key)
        known = await self._store.approval(row.approval_id)
        if known is not None:
            status = known.outcome(self.clock())
            await self._store.write([replace(audit, reason=f"asked before: {status}")])
            return PlatformRequestActionResult(status=status, approval_id=row.approval_id)
        if not self._platform.offers(grant.scope, row.action):
            await self._store.write([replace(audit, result="recorded", reason=_nobody(row))])
            return PlatformRequestActionResult(status="recorded")
        if await self._store.approval_count(row.run_id) >= MAX_PER_RUN:
            raise HostError(ErrorCode.RATE_LIMITED, f"a run may ask for at most {MAX_PER_RUN} platform actions")
        await self._store.write([row, replace(audit, reason="waits for the user's approval")])
        self._remember(row)
        return PlatformRequestActionResult(status="pending", approval_id=row.approval_id)

    def requested(self, grant: Grant, data: Mapping[str, Any], asked_before: int) -> Sequence[Row]:
        """The rows that follow from an `action.requested`: an audit row, and an approval when it may have one."""
        target, payload = as_object(data.get("target")), as_object(data.get("payload"))
        row = approval_for(grant, data["action"], target, payload, self.clock(), key=self._key)
        if row.action == HANDOVER:
            return ()
        if row.action not in grant.platform_actions:
            return (_judged(grant, row, "unauthorized", "manifest and agent do not both allow it"),)
        if not self._platform.offers(grant.scope, row.action):
            return (_judged(grant, row, "recorded", _nobody(row)),)
        if asked_before >= MAX_PER_RUN:
            return (_judged(grant, row, "rate_limited", f"more than {MAX_PER_RUN} actions in one run"),)
        self._remember(row)
        return (row, _judged(grant, row, "allowed", "waits for the user's approval"))

    def asks(self, run_id: str) -> bool:
        """True when a run asked for something that may not be decided yet."""
        return bool(self._asking.get(run_id))

    async def waiting(self, run_id: str) -> Sequence[Mapping[str, Any]]:
        """Questions that a run leaves open at its end; each is asked once."""
        asked = self._asking.pop(run_id, {})
        return [_question(row) for row in asked.values() if await self._is_open(row.approval_id)]

    async def _is_open(self, approval_id: str) -> bool:
        """True while no host has a decision on record; one that is just being recorded counts as open."""
        try:
            found = await self._store.approval(approval_id)
        except StorageUnavailableError:
            return True  # asking once more is better than never
        return found is None or found.decided is None

    def _remember(self, row: ApprovalRow) -> None:
        self._asking.setdefault(row.run_id, {})[row.approval_id] = row
        if len(self._asking) > MAX_ASKING:  # runs that failed are never asked what they leave
            self._asking.popitem(last=False)

    # --- what the user decides ---------------------------------------------------------------------------------------

    async def list(self, principal: Principal, *, limit: int = 100) -> Sequence[Approval]:
        return await self._store.approvals(principal.workspace_id, principal.user_id, limit=limit)

    async def get(self, principal: Principal, approval_id: str) -> Approval:
        found = await self._store.approval(approval_id)
        if found is None or (found.asked.workspace_id, found.asked.user_id) != _who(principal):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such approval")
        return found

    async def decide(self, principal: Principal, approval_id: str, decision: Decision) -> Approval:
        """Grant or deny; what is granted is done before this returns. The same decision again changes nothing."""
        found = await self.get(principal, approval_id)
        status = found.status(self.clock())
        if status == decision:
            return found
        if status != "pending":
            raise HostError(ErrorCode.CONFLICT, f"this was {status} already; nothing was changed")
        step = self._step(found, DECIDED, decision, f"user:{principal.user_id}")
        try:
            taken = await self._take(step, _decided(found.asked, step))
        except UnansweredWriteError:
            self._spawn(self._go_on(step))
            raise
        self._asking.get(found.asked.run_id, {}).pop(approval_id, None)
        if not taken:
            raise HostError(ErrorCode.CONFLICT, "somebody else decided this at the same moment; nothing was changed")
        if decision == "granted":
            await asyncio.shield(self._spawn(self._perform(found)))  # a caller that goes away takes nothing back
        return await self.get(principal, approval_id)

    async def recover(self, *, alone: bool = True) -> int:
        """Mark actions that were under way when the host ended as unknown; they are not done again.

        Where there are other hosts, one of them may be doing it at this moment: only what is overdue counts.
        """
        left = await self._store.unfinished_approvals()
        if not alone:
            overdue = self.clock() - 2 * PERFORM_SECONDS
            left = [found for found in left if found.decided is not None and found.decided.time < overdue]
        for approval in left:
            await self._finish(approval, "unknown", STOPPED)
        return len(left)

    async def _go_on(self, step: ApprovalStepRow) -> None:
        """A decision of which the store did not say whether it was taken: if it was, it is acted on now, in time."""
        found = await self._outcomes.outlast(lambda: self._store.approval(step.approval_id), for_ever=True)
        if found is None or found.decided is None or found.decided.token != step.token or step.result != "granted":
            return
        if found.asked.expires_at < self.clock():
            await self._finish(found, "failed", "the store was away when this was approved; nothing was done")
        else:
            await self._perform(found)

    async def _perform(self, approval: Approval) -> None:
        try:
            async with asyncio.timeout(PERFORM_SECONDS):
                done = await self._platform.perform(_action(approval.asked))
        except TimeoutError:
            await self._finish(approval, "unknown", f"the platform did not answer within {PERFORM_SECONDS:g} seconds")
            return
        except asyncio.CancelledError:
            self._outcomes.later(approval.asked.workspace_id, self._end_of(approval, "unknown", STOPPED))
            raise
        except Exception:
            log.exception("a platform action failed", action="platform.perform", approval=approval.asked.approval_id)
            done = Performed(ok=False, detail="the host could not reach the platform; its log has the details")
        await self._finish(approval, "done" if done.ok else "failed", done.detail)

    async def _finish(self, approval: Approval, result: str, detail: str) -> None:
        """Have it on record, now or when the store is back."""
        try:
            await self._outcomes.record(approval.asked.workspace_id, self._end_of(approval, result, detail))
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            about = {"approval": approval.asked.approval_id, "result": result}
            log.warning("another host said how an action ended before", action="platform.perform", **about)

    def _end_of(self, approval: Approval, result: str, detail: str) -> tuple[ApprovalStepRow, AuditRow]:
        step = self._step(approval, DONE, result, "host", detail)
        return step, _performed(approval.asked, step)

    async def _take(self, step: ApprovalStepRow, audit: AuditRow) -> bool:
        """Take a step; return False when somebody else took it, whose row is then on record."""
        try:
            await self._store.write([step, audit])
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            return False
        return True

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


def _who(principal: Principal) -> tuple[str, str]:
    return principal.workspace_id, principal.user_id


def _nobody(row: ApprovalRow) -> str:
    return f"no platform of this conversation offers {row.action[:64]!r}; recorded, not done"


def _question(row: ApprovalRow) -> Mapping[str, Any]:
    """In the form of a runner's own questions; front ends show it beside the call of the same name."""
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
    """Details of the action, where they are short enough to show to a person."""
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
