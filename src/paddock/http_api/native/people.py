"""The callers themselves: who they are, what they set, and what they decide for their agents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from paddock.host.conversations.ui_actions import UiActions
from paddock.host.people.approvals import Approvals
from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.host.zones import is_time_zone
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.requests import source_of
from paddock.http_api.edge.shapes import Accepted, Answer, Body, Json, Moment, Query, about, accepted, seen
from paddock.ports.definitions import PersonRole
from paddock.rules.access.approvals import Approval as KeptApproval
from paddock.rules.access.approvals import ApprovalDecision as Decided
from paddock.rules.access.approvals import ApprovalStatus
from paddock.rules.rows.rows import UserRow

ME = "/api/v1/users/me"
_LOCALE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}", re.ASCII)


def _is_locale(text: str) -> bool:
    return len(text) <= 35 and _LOCALE.fullmatch(text) is not None


Zone = Annotated[
    str, about(must="be the name of an IANA zone, such as Europe/Oslo", check=is_time_zone, example="Asia/Shanghai")
]
Locale = Annotated[str, about(must="be a language tag, such as en or zh-CN", check=_is_locale, example="zh-CN")]


class Settings(Answer):
    timezone: Zone | None
    locale: Locale | None


class Profile(Answer):
    settings: Settings


class Me(Answer):
    """You, as this host knows you."""

    user_id: str
    workspace_id: str
    role: PersonRole
    profile: Profile


class SettingsChange(Body):
    """Null takes a setting back; one that is left out stays."""

    timezone: Zone | UnsetType | None = UNSET
    locale: Locale | UnsetType | None = UNSET


class ProfileChange(Body):
    settings: SettingsChange = msgspec.field(default_factory=SettingsChange)


class MeChange(Body):
    profile: ProfileChange = msgspec.field(default_factory=ProfileChange)


@dataclass(frozen=True, kw_only=True)
class UsersDoor(Operations):
    group = "People"
    auth: Auth
    users: Users

    @operation("GET", ME, {200: "You."})
    async def get(self, who: Principal) -> Me:
        """Say who you are here"""
        return _seen(who, await self.users.profile(who))

    @operation(
        "PATCH", ME, {200: "You, as you are now."}, example={"profile": {"settings": {"timezone": "Asia/Shanghai"}}}
    )
    async def patch(self, who: Principal, body: MeChange) -> Me:
        """Set your time zone and language"""
        given, known = body.profile.settings, await self.users.profile(who)
        zone = known.time_zone if given.timezone is UNSET else given.timezone
        locale = known.locale if given.locale is UNSET else given.locale
        return _seen(who, await self.users.change(who, time_zone=zone, locale=locale))


def _seen(who: Principal, row: UserRow) -> Me:
    settings = Settings(row.time_zone, row.locale)
    return Me(user_id=who.user_id, workspace_id=who.workspace_id, role=who.role, profile=Profile(settings))


# --- actions on platforms, to grant or deny ---------------------------------------------------------------------------


BASE = "/api/v1/approvals"
MAX_LISTED = 100
DECISIONS: Mapping[str, Decided] = {"grant": "granted", "deny": "denied"}


class Approval(Answer):
    """Something that an agent wants to do on a platform."""

    approval_id: Annotated[str, about(example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")]
    task_id: str
    thread_id: str
    agent_id: str
    action: Annotated[str, about(example="message.edit")]
    target: Annotated[Any, about(example={"message_id": "5"})]
    payload: Annotated[Any, about(example={"text": "better"})]
    status: ApprovalStatus
    outcome: Annotated[str, about(example="pending")]
    created_at: Moment
    expires_at: Moment
    detail: str | None = None
    decided_at: Moment | None = None


class ApprovalList(Answer):
    approvals: list[Approval]


class ApprovalsQuery(Query):
    status: Annotated[ApprovalStatus, about("Only these.")] | None = None


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
        return ApprovalList([_approval(one, now) for one in found if query.status in {None, one.status(now)}])

    @operation("POST", f"{BASE}/{{approval}}", {200: "It is decided."}, errors=(404, 409))
    async def decide(
        self,
        who: Principal,
        approval: Annotated[str, about("Its approvalId.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")],
        body: Decision,
    ) -> Approval:
        """Grant or deny"""
        decided = await self.approvals.decide(who, approval, DECISIONS[body.decision])
        return _approval(decided, self.approvals.clock())


def _approval(approval: KeptApproval, now: float) -> Approval:
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
