"""Platform actions that wait for their user: listed, granted, denied. Only by the one whose conversation it is."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.people.approvals import Approvals
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.rules.access.approvals import Approval, Decision
from paddock.rules.errors import ErrorCode, HostError

MAX_LISTED = 100
DECISIONS: Mapping[str, Decision] = {"grant": "granted", "deny": "denied"}


class ApprovalsDoor:
    def __init__(self, *, auth: Auth, approvals: Approvals) -> None:
        self._auth = auth
        self._approvals = approvals

    def routes(self) -> Sequence[BaseRoute]:
        base = "/api/v1/approvals"
        return [route("GET", base, self.list), route("POST", f"{base}/{{approval}}", self.decide)]

    async def list(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        wanted = request.query_params.get("status")
        if wanted not in {None, "pending", "granted", "denied", "expired"}:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "status must be pending, granted, denied or expired")
        now = self._approvals.clock()
        found = await self._approvals.list(principal, limit=MAX_LISTED)
        shown = [_as_json(one, now) for one in found if wanted in {None, one.status(now)}]
        return json_response({"approvals": shown})

    async def decide(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        decision = DECISIONS.get(str((await read_object(request, ("decision",))).get("decision")))
        if decision is None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "decision must be grant or deny")
        decided = await self._approvals.decide(principal, request.path_params["approval"], decision)
        return json_response(_as_json(decided, self._approvals.clock()))


def _as_json(approval: Approval, now: float) -> Mapping[str, Any]:
    asked, done = approval.asked, approval.done
    seen = {
        "approvalId": asked.approval_id,
        "taskId": asked.run_id,
        "threadId": asked.session_id,
        "agentId": asked.agent_id,
        "action": asked.action,
        "target": msgspec.Raw(asked.target),
        "payload": msgspec.Raw(asked.payload),
        "status": approval.status(now),
        "outcome": approval.outcome(now),
        "detail": done.detail if done is not None and done.detail else None,
        "createdAt": _iso(asked.created_at),
        "expiresAt": _iso(asked.expires_at),
        "decidedAt": _iso(approval.decided.time) if approval.decided is not None else None,
    }
    return {key: value for key, value in seen.items() if value is not None}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
