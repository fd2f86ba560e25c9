"""Automations over HTTP: the caller's own jobs, what became of their ticks, and a run of one by hand."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.automation.automations import Automation, Automations
from paddock.host.automation.shapes import FIELDS, as_given
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import TickRow

MAX_LISTED = 200


class AutomationsDoor:
    def __init__(self, *, auth: Auth, automations: Automations) -> None:
        self._auth = auth
        self._automations = automations

    def routes(self) -> list[BaseRoute]:
        base = "/api/v1/automations"
        return [
            route("GET", base, self.list),
            route("POST", base, self.create),
            route("GET", f"{base}/{{job}}", self.get),
            route("PATCH", f"{base}/{{job}}", self.change),
            route("DELETE", f"{base}/{{job}}", self.delete),
            route("POST", f"{base}/{{job}}/run", self.fire),
            route("GET", f"{base}/{{job}}/firings", self.firings),
        ]

    async def list(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        return json_response({"automations": [self._seen(one) for one in await self._automations.list(who)]})

    async def create(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        made = await self._automations.create(who, await read_object(request, FIELDS))
        return json_response(self._seen(made), 201)

    async def get(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        return json_response(self._seen(await self._automations.get(who, request.path_params["job"])))

    async def change(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        given = await read_object(request, FIELDS)
        return json_response(self._seen(await self._automations.change(who, request.path_params["job"], given)))

    async def delete(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        await self._automations.delete(who, request.path_params["job"])
        return Response(status_code=204)

    async def fire(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        accepted = await self._automations.fire(who, request.path_params["job"])
        answer = {"taskId": accepted.task_id, "threadId": accepted.thread_id, "runId": accepted.run_id}
        return json_response({**answer, "created": accepted.created}, 202)

    async def firings(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        before, limit = _number(request, "before"), _number(request, "limit")
        if limit is not None and not 1 <= limit <= MAX_LISTED:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"limit must be from 1 to {MAX_LISTED}")
        found = await self._automations.firings(who, request.path_params["job"], before=before, limit=int(limit or 50))
        return json_response({"firings": [_firing(row) for row in found]})

    def _seen(self, automation: Automation) -> Mapping[str, Any]:
        row, job = automation.row, automation.job
        return {
            "jobId": row.job_id,
            "threadId": row.thread_id,
            **as_given(job, enabled=row.enabled),
            "startsAt": iso(job.starts_at),
            "nextAt": iso(row.next_at),
            "upcoming": [iso(tick) for tick in self._automations.upcoming(automation)],
            "createdAt": iso(row.created_at),
            "updatedAt": iso(row.updated_at),
        }


def _number(request: Request, name: str) -> float | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.replace(".", "", 1).isascii() or not text.replace(".", "", 1).isdigit() or len(text) > 20:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be a number")
    return float(text)


def _firing(row: TickRow) -> Mapping[str, Any]:
    """`tick` is also the cursor of the next page."""
    seen = {
        "tick": row.tick,
        "scheduledAt": iso(row.tick),
        "through": iso(row.through),
        "result": row.result,
        "taskId": row.run_id,
        "reason": row.reason or None,
        "at": iso(row.at),
    }
    return {key: value for key, value in seen.items() if value is not None}
