"""Looking over a workspace: runs, the story of one, the audit trail, usage and speed. Reads and answers only."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.overview import Overview
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.routing import RUNS, route
from paddock.http_api.native.runs import as_json, iso
from paddock.rules.access.reasons import coded
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.overview import (
    MAX_LISTED,
    AuditEntry,
    AuditQuery,
    Pace,
    RunsQuery,
    Spender,
    UsageLine,
    known_cost,
)
from paddock.rules.rows.rows import RUN_STATUSES, RunRow
from paddock.rules.run.story import Chapter

SPANS: Mapping[str, tuple[int, int]] = {"day": (86_400, 3_600), "week": (604_800, 21_600), "month": (2_592_000, 86_400)}
"""How far back, and in steps of how many seconds."""


class OverviewDoor:
    def __init__(self, *, auth: Auth, names: ThreadNames, overview: Overview) -> None:
        self._auth = auth
        self._names = names
        self._overview = overview

    def routes(self) -> list[BaseRoute]:
        return [
            route("GET", RUNS, self.runs),
            route("GET", f"{RUNS}/{{run}}/story", self.story),
            route("GET", "/api/v1/audit", self.audit),
            route("GET", "/api/v1/usage", self.usage),
        ]

    async def runs(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        asked = request.query_params
        statuses = tuple(filter(None, asked.get("status", "").split(",")))
        strange = next((one for one in statuses if one not in RUN_STATUSES), None)
        if strange is not None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"status must be of {', '.join(RUN_STATUSES)}")
        thread = asked.get("threadId")
        query = RunsQuery(
            principal.workspace_id,
            _of_whom(principal, asked.get("scope")),
            None if thread is None else await self._names.find(principal, thread),
            asked.get("agent"),
            statuses,
            asked.get("before"),
            _limit(request),
        )
        found = await self._overview.runs(query)
        more = found[-1].run_id if len(found) == query.limit else None
        return json_response({"runs": [_entry(run) for run in found], "next": more})

    async def story(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        thread = request.query_params.get("threadId")
        thread_id = None if thread is None else await self._names.find(principal, thread)
        run = await self._overview.find(principal, request.path_params["run"], thread_id)
        story = await self._overview.story(principal, run)
        told: dict[str, Any] = {
            "run": {**_entry(run), **({"usage": story.usage} if story.usage else {})},
            "grant": story.grant,
            "entries": [_chapter(one) for one in story.chapters],
            "truncated": story.cut,
        }
        return json_response(told)

    async def audit(self, request: Request) -> Response:
        principal = await self._auth.admin(request.scope)
        asked = request.query_params
        before = asked.get("before")
        if before is not None and (not before.isdecimal() or len(before) > 18):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "before must be `next` of the page before")
        query = AuditQuery(
            principal.workspace_id,
            asked.get("actor"),
            asked.get("action"),
            asked.get("result"),
            asked.get("run"),
            asked.get("threadId"),
            _moment(request, "since"),
            _moment(request, "until"),
            None if before is None else int(before),
            _limit(request),
            principal.operator,
        )
        found = await self._overview.decisions(principal, query)
        more = str(found[-1].number) if len(found) == query.limit else None
        return json_response({"decisions": [_decision(one) for one in found], "next": more})

    async def usage(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        span = SPANS.get(request.query_params.get("span", "day"))
        if span is None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"span must be one of {', '.join(SPANS)}")
        user_id = _of_whom(principal, request.query_params.get("scope"))
        found = await self._overview.spending(principal, user_id, seconds=span[0], every=span[1])
        told: dict[str, Any] = {
            "since": iso(found.since),
            "everySeconds": found.every,
            "usage": [_usage(line) for line in found.usage],
            "runs": [_pace(pace) for pace in found.paces],
            "total": _counted(found.whole),
        }
        if user_id is None:
            told["people"] = [_spender(one) for one in found.people]
        return json_response(told)


def _of_whom(principal: Principal, scope: str | None) -> str | None:
    """The caller, or None for everybody of the workspace, which is for administrators."""
    if scope not in (None, "mine", "workspace"):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "scope must be mine or workspace")
    if scope != "workspace":
        return principal.user_id
    if principal.role != "admin":
        raise HostError(ErrorCode.UNAUTHORIZED, "to look over the workspace takes a key with the role admin")
    return None


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", "50")
    if not given.isdecimal() or len(given) > 4 or not 1 <= int(given) <= MAX_LISTED:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"limit must be a whole number from 1 to {MAX_LISTED}")
    return int(given)


def _moment(request: Request, name: str) -> float | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        example = "2026-03-16T16:12:33Z"
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be a moment with its offset, such as {example}")
    return moment.timestamp()


def _entry(run: RunRow) -> dict[str, Any]:
    return {**as_json(run), "userId": run.user_id, **({"runnerId": run.runner_id} if run.runner_id else {})}


def _chapter(one: Chapter) -> Mapping[str, Any]:
    told = {"time": iso(one.time), "kind": one.kind, "name": one.name, "result": one.result, "until": iso(one.until)}
    detail = {name: value for name, value in one.detail.items() if value is not None}
    return {name: value for name, value in told.items() if value is not None} | {"detail": detail}


def _decision(entry: AuditEntry) -> Mapping[str, Any]:
    row, why = entry.row, coded(entry.row.reason)
    told = {
        "number": entry.number,
        "time": iso(row.time),
        "actor": row.actor,
        "action": row.action,
        "resource": row.resource,
        "scope": row.scope,
        "result": row.result,
        "reason": row.reason,
        "reasonCode": why and why.code,
        "reasonParams": why and why.params,
        "taskId": row.run_id,
        "runnerId": row.runner_id,
        "threadId": row.session_id,
    }
    return {name: value for name, value in told.items() if value is not None}


def _usage(line: UsageLine) -> Mapping[str, Any]:
    return {
        "start": iso(line.start),
        "agentId": line.agent_id,
        "modelId": line.model_id,
        "modelCalls": line.calls,
        "promptTokens": line.prompt_tokens,
        "completionTokens": line.completion_tokens,
        "totalTokens": line.total_tokens,
        **_cost(line),
    }


def _spender(one: Spender) -> Mapping[str, Any]:
    return {
        "userId": one.user_id,
        "modelCalls": one.calls,
        "totalTokens": one.total_tokens,
        **_cost(one),
    }


def _cost(one: UsageLine | Spender) -> dict[str, Any]:
    told = {"cost": known_cost(one.cost, one.unpriced)}
    return {**told, "unpricedCalls": one.unpriced} if one.unpriced else told


def _pace(pace: Pace) -> Mapping[str, Any]:
    return {"start": iso(pace.start), **_counted(pace)}


def _counted(pace: Pace) -> Mapping[str, Any]:
    """Times are left out where no run completed: nobody knows them, and they are not zero."""
    told = {
        "runs": pace.runs,
        "completed": pace.completed,
        "failed": pace.failed,
        "cancelled": pace.cancelled,
        "medianSeconds": pace.median,
        "p95Seconds": pace.slowest_twentieth,
    }
    return {name: value for name, value in told.items() if value is not None}
