"""Platform actions that wait for their user: listed, granted, denied. Only by the one whose conversation it is."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import CONFLICT, NOT_FOUND, Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, Moment, Query, about, iso
from paddock.rules.access.approvals import Approval as KeptApproval
from paddock.rules.access.approvals import Decision as Decided

BASE = "/api/v1/approvals"
MAX_LISTED = 100
DECISIONS: Mapping[str, Decided] = {"grant": "granted", "deny": "denied"}
Status = Literal["pending", "granted", "denied", "expired"]


class Approval(Answer):
    """Something that an agent wants to do on a platform."""

    approval_id: Annotated[str, about(example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")]
    task_id: str
    thread_id: str
    agent_id: str
    action: Annotated[str, about(example="message.edit")]
    target: Annotated[Any, about(example={"message_id": "5"})]
    payload: Annotated[Any, about(example={"text": "better"})]
    status: Status
    outcome: Annotated[str, about(example="pending")]
    created_at: Moment
    expires_at: Moment
    detail: str | None = None
    decided_at: Moment | None = None


class ApprovalList(Answer):
    approvals: list[Approval]


class ApprovalsQuery(Query):
    status: Annotated[Status, about("Only these.")] | None = None


class Decision(Body):
    decision: Literal["grant", "deny"]


class ApprovalsDoor(Operations):
    group = "Approvals"

    def __init__(self, *, auth: Auth, approvals: Approvals) -> None:
        self.auth = auth
        self._approvals = approvals

    @operation("GET", BASE, answers={200: f"Newest first, at most {MAX_LISTED}."})
    async def list(self, who: Principal, query: ApprovalsQuery) -> ApprovalList:
        """List what your agents asked for"""
        now = self._approvals.clock()
        found = await self._approvals.list(who, limit=MAX_LISTED)
        return ApprovalList([_seen(one, now) for one in found if query.status in {None, one.status(now)}])

    @operation("POST", f"{BASE}/{{approval}}", answers={200: "It is decided."}, errors=[NOT_FOUND, CONFLICT])
    async def decide(
        self,
        who: Principal,
        approval: Annotated[str, about("Its approvalId.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")],
        body: Decision,
    ) -> Approval:
        """Grant or deny"""
        decided = await self._approvals.decide(who, approval, DECISIONS[body.decision])
        return _seen(decided, self._approvals.clock())


def _seen(approval: KeptApproval, now: float) -> Approval:
    asked, done = approval.asked, approval.done
    return Approval(
        approval_id=asked.approval_id,
        task_id=asked.run_id,
        thread_id=asked.session_id,
        agent_id=asked.agent_id,
        action=asked.action,
        target=msgspec.Raw(asked.target),
        payload=msgspec.Raw(asked.payload),
        status=approval.status(now),
        outcome=approval.outcome(now),
        detail=done.detail if done is not None and done.detail else None,
        created_at=iso(asked.created_at),
        expires_at=iso(asked.expires_at),
        decided_at=iso(approval.decided.time) if approval.decided is not None else None,
    )
