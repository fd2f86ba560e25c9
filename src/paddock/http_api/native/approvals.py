"""Decisions of a user: platform actions to grant or deny, and buttons and forms of cards. Only for the one whose
conversation it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from starlette.requests import Request

from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.requests import source_of
from paddock.http_api.edge.shapes import Accepted, Answer, Body, Json, Moment, Query, about, accepted, seen
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


@dataclass(frozen=True, kw_only=True)
class ApprovalsDoor(Operations):
    group = "Approvals"
    auth: Auth
    approvals: Approvals

    @operation("GET", BASE, {200: f"Newest first, at most {MAX_LISTED}."})
    async def list(self, who: Principal, query: ApprovalsQuery) -> ApprovalList:
        """List what your agents asked for"""
        now = self.approvals.clock()
        found = await self.approvals.list(who, limit=MAX_LISTED)
        return ApprovalList([_seen(one, now) for one in found if query.status in {None, one.status(now)}])

    @operation("POST", f"{BASE}/{{approval}}", {200: "It is decided."}, errors=(404, 409))
    async def decide(
        self,
        who: Principal,
        approval: Annotated[str, about("Its approvalId.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")],
        body: Decision,
    ) -> Approval:
        """Grant or deny"""
        decided = await self.approvals.decide(who, approval, DECISIONS[body.decision])
        return _seen(decided, self.approvals.clock())


def _seen(approval: KeptApproval, now: float) -> Approval:
    asked, done = approval.asked, approval.done
    return seen(
        Approval,
        asked,
        task_id=asked.run_id,
        thread_id=asked.session_id,
        target=msgspec.Raw(asked.target),
        payload=msgspec.Raw(asked.payload),
        status=approval.status(now),
        outcome=approval.outcome(now),
        detail=(done.detail or None) if done is not None else None,
        decided_at=approval.decided.time if approval.decided is not None else None,
    )


# --- buttons and forms of cards ---------------------------------------------------------------------------------------


PATH = "/api/v1/agent/ui-actions/{action}"
REF = "0199a8c4-5b1e-7c3a-9d2f-0123456789ab.rXkq3nVw0mZ4tUe7"


class UiAnswer(Body):
    values: Annotated[
        Json, about(must="be an object: the fields of the form by name", example={"day": "2026-03-15"})
    ] = msgspec.field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class UiActionsDoor(Operations):
    group = "Cards"
    auth: Auth
    actions: UiActions

    @operation(
        "POST",
        PATH,
        {202: "The run that answers is on record; the same again gives the same answer."},
        errors=(404, 409),
        rate="runs",
    )
    async def post(
        self,
        who: Principal,
        request: Request,
        action: Annotated[str, about("The `ref` of the button or form.", example=REF)],
        body: UiAnswer | None = None,
    ) -> Accepted:
        """Press a button of a card, or send its form

        For actions of kind `say` and `answer`; clients do `open` and `copy` themselves."""
        return accepted(
            await self.actions.use(who, action, {} if body is None else body.values, source_of(request.scope))
        )
