"""The conversation for people: `GET /history`, one day at a time, in the published shape."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.conversations.days import Day, Days
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.public_urls import absolute
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.ports.attachments import Attachments
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import TranscriptRow, is_erased

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
AgentName = Callable[[str, str], str | None]
"""The name people know an agent by: (agent, workspace) -> name."""


class HistoryDoor:
    def __init__(
        self, *, auth: Auth, names: ThreadNames, days: Days, attachments: Attachments, agent_name: AgentName
    ) -> None:
        self._auth = auth
        self._names = names
        self._days = days
        self._attachments = attachments
        self._agent_name = agent_name

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/api/v1/agent/history", self.get)]

    async def get(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        thread, before = request.query_params.get("threadId"), request.query_params.get("before")
        thread_id = None if thread is None else await self._names.find(principal, thread)
        found = await self._days.day(principal, thread_id, None if before is None else _date(before))
        return json_response(self._snapshot(request, principal, found))

    def _snapshot(self, request: Request, principal: Principal, found: Day) -> Mapping[str, Any]:
        snapshot: dict[str, Any] = {
            "scope": "history_day",
            "threadId": found.thread_id,
            "day": None if found.day is None else found.day.isoformat(),
            "hasMore": found.more,
            "messages": [self._with_opinion(request, principal, row, found) for row in found.items],
        }
        return {**snapshot, "truncated": True} if found.cut else snapshot

    def _with_opinion(
        self, request: Request, principal: Principal, row: TranscriptRow, found: Day
    ) -> Mapping[str, Any]:
        told = self.message(request, principal, row)
        opinion = found.opinions.get(row.item_id)
        if opinion is None:
            return told
        return {**told, "feedback": {"rating": opinion.rating, "comment": opinion.comment}}

    def message(self, request: Request, principal: Principal, row: TranscriptRow) -> Mapping[str, Any]:
        return self._user(request, principal, row) if row.role == "user" else self._assistant(principal, row)

    def _user(self, request: Request, principal: Principal, row: TranscriptRow) -> Mapping[str, Any]:
        seen: dict[str, Any] = {
            "id": _metadata(row).get("message_id") or row.item_id,
            "itemId": row.item_id,
            "taskId": row.run_id,
            "seq": row.seq,
            "role": "user",
            "content": row.content,
            "attachments": list(self._files(request, principal, row)),
            "timestamp": iso(row.created_at),
        }
        return {**seen, "erased": True} if is_erased(row) else seen

    def _assistant(self, principal: Principal, row: TranscriptRow) -> Mapping[str, Any]:
        known = _metadata(row)
        seen: dict[str, Any] = {
            "id": row.item_id,
            "taskId": row.run_id,
            "seq": row.seq,
            "role": "assistant",
            "content": row.content,
            "ui_schema": known.get("ui_schema"),
            "timestamp": iso(row.created_at),
        }
        if row.agent_id:
            name = self._agent_name(row.agent_id, principal.workspace_id)
            seen |= {"agentId": row.agent_id, "name": name or row.agent_id}
        return seen | {mark: True for mark in ("partial", "erased") if known.get(mark)}

    def _files(self, request: Request, principal: Principal, row: TranscriptRow) -> list[Mapping[str, Any]]:
        """What came along, under fresh URLs; a file that is gone is left out."""
        if b'"binary"' not in row.content_json:
            return []
        whole: dict[str, Any] = msgspec.json.decode(row.content_json)
        content = whole.get("content")
        files: list[Mapping[str, Any]] = []
        for block in cast("list[dict[str, Any]]", content) if isinstance(content, list) else ():
            if block.get("type") == "binary" and isinstance(block.get("id"), str):
                url = self._attachments.signed_url(
                    block["id"],
                    workspace_id=principal.workspace_id,
                    user_id=principal.user_id,
                    by=principal.credential,
                )
                files += [{"mimeType": block.get("mimeType"), "url": absolute(request, url)}] if url else []
        return files


def _metadata(row: TranscriptRow) -> Mapping[str, Any]:
    return msgspec.json.decode(row.metadata) if row.metadata else {}


def _date(text: str) -> date:
    try:
        if _DAY.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise HostError(ErrorCode.INVALID_ARGUMENT, "before must be a day such as 2026-03-15 (YYYY-MM-DD)")
