"""Deliveries over HTTP, for administrators: what waits, what was given up, and once more."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.platforms.deliveries import Deliveries, type_of
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.deliveries import DeliveryRow

MAX_LISTED = 200
STATUSES = ("pending", "delivered", "dead")


class DeliveriesDoor:
    def __init__(self, *, auth: Auth, deliveries: Deliveries) -> None:
        self._auth = auth
        self._deliveries = deliveries

    def routes(self) -> Sequence[BaseRoute]:
        base = "/api/v1/deliveries"
        return [route("GET", base, self.list), route("POST", f"{base}/{{delivery}}/redeliver", self.again)]

    async def list(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        status, limit = request.query_params.get("status"), request.query_params.get("limit", "50")
        if status is not None and status not in STATUSES:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"status must be one of {', '.join(STATUSES)}")
        if not (limit.isascii() and limit.isdigit() and len(limit) < 5 and 1 <= int(limit) <= MAX_LISTED):
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"limit must be from 1 to {MAX_LISTED}")
        before = request.query_params.get("before")
        found = await self._deliveries.list(who, status=status, before=before, limit=int(limit))
        return json_response({"deliveries": [_seen(row) for row in found]})

    async def again(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        return json_response(_seen(await self._deliveries.again(who, request.path_params["delivery"])), 202)


def _seen(row: DeliveryRow) -> Mapping[str, Any]:
    """Everything but the words: those are in the conversation, for whom it belongs to."""
    seen = {
        "deliveryId": row.delivery_id,
        "platform": row.platform,
        "type": type_of(row),
        "threadId": row.session_id,
        "taskId": row.run_id,
        "status": row.status,
        "attempts": row.attempts,
        "detail": row.detail or None,
        "dueAt": iso(row.due_at) if row.status == "pending" else None,
        "createdAt": iso(row.created_at),
        "endedAt": iso(row.ended_at),
    }
    return {key: value for key, value in seen.items() if value is not None}
