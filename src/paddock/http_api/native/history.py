"""History for people: a conversation day by day, and search with the place of each hit."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, cast

import msgspec
from starlette.requests import Request

from paddock.host.conversations.days import Day as FoundDay
from paddock.host.conversations.days import Days
from paddock.host.conversations.inbox import ThreadNames
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.requests import absolute
from paddock.http_api.edge.shapes import Answer, Count, Day, Json, Moment, Query, about, iso, seen
from paddock.ports.attachments import Attachments
from paddock.rules.rows.rows import TranscriptRow, is_erased
from paddock.rules.search.queries import MAX_QUERY, FoundThread, snippet, titled
from paddock.rules.search.tokens import Phrase

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
AgentName = Callable[[str, str], str | None]
"""The name people know an agent by: (agent, workspace) -> name."""


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


class Opinion(Answer):
    """The opinion of a conversation's owner on an answer."""

    rating: Literal["up", "down"]
    comment: str


class HistoryFile(Answer):
    mime_type: str
    url: str


class SaidByUser(Answer, tag_field="role", tag="user"):
    id: str
    item_id: str
    task_id: str | None
    seq: Count
    content: str
    attachments: list[HistoryFile]
    timestamp: Moment
    erased: Annotated[bool, about("Its words were erased on purpose.")] | None = None


class SaidByAgent(Answer, tag_field="role", tag="assistant"):
    id: str
    task_id: str | None
    seq: Count
    content: str
    ui_schema: Json | None = msgspec.field(name="ui_schema")
    timestamp: Moment
    agent_id: str | None = None
    name: str | None = None
    partial: Annotated[bool, about("Its run ended in the middle of it.")] | None = None
    erased: Annotated[bool, about("Its words were erased on purpose.")] | None = None
    feedback: Opinion | None = None


class HistoryDay(Answer):
    """One day of a conversation; empty when there is no such day."""

    scope: Literal["history_day"]
    thread_id: str | None
    day: Day | None
    has_more: bool
    messages: list[SaidByUser | SaidByAgent]
    truncated: bool | None = None


class HistoryQuery(Query):
    thread_id: Annotated[str, about("The thread; else the one opened last that is not archived.")] | None = None
    before: (
        Annotated[
            str,
            about(
                "The latest such day strictly before this one.",
                must="be a day such as 2026-03-15 (YYYY-MM-DD)",
                check=_is_day,
                schema={"format": "date"},
            ),
        ]
        | None
    ) = None


@dataclass(frozen=True, kw_only=True)
class HistoryDoor(Operations):
    group = "Runs"
    auth: Auth
    names: ThreadNames
    days: Days
    attachments: Attachments
    agent_name: AgentName

    @operation(
        "GET",
        "/api/v1/agent/history",
        {200: "The latest day with a message, in the caller's own time zone."},
        errors=(404,),
    )
    async def get(self, who: Principal, request: Request, query: HistoryQuery) -> HistoryDay:
        """Read what was said on one day"""
        thread_id = None if query.thread_id is None else await self.names.find(who, query.thread_id)
        before = None if query.before is None else date.fromisoformat(query.before)
        found = await self.days.day(who, thread_id, before)
        return HistoryDay(
            scope="history_day",
            thread_id=found.session_id,
            day=None if found.day is None else found.day.isoformat(),
            has_more=found.more,
            messages=[self._said(request, who, row, found) for row in found.items],
            truncated=True if found.cut else None,
        )

    def _said(self, request: Request, who: Principal, row: TranscriptRow, found: FoundDay) -> SaidByUser | SaidByAgent:
        if row.role == "user":
            return self._by_user(request, who, row)
        known, opinion = _metadata(row), found.opinions.get(row.item_id)
        name = self.agent_name(row.agent_id, who.workspace_id) if row.agent_id else None
        rating = opinion and cast("Literal['up', 'down']", opinion.rating)
        return seen(
            SaidByAgent,
            row,
            id=row.item_id,
            task_id=row.run_id,
            ui_schema=known.get("ui_schema"),
            timestamp=row.created_at,
            agent_id=row.agent_id or None,
            name=name or row.agent_id or None,
            partial=True if known.get("partial") else None,
            erased=True if known.get("erased") else None,
            feedback=Opinion(rating, opinion.comment) if opinion and rating else None,
        )

    def _by_user(self, request: Request, who: Principal, row: TranscriptRow) -> SaidByUser:
        name, files = _metadata(row).get("message_id") or row.item_id, self._files(request, who, row)
        own = {"id": name, "task_id": row.run_id, "attachments": files, "timestamp": row.created_at}
        return seen(SaidByUser, row, **own, erased=True if is_erased(row) else None)

    def _files(self, request: Request, principal: Principal, row: TranscriptRow) -> list[HistoryFile]:
        """Return attached files with fresh URLs; deleted files are left out."""
        if b'"binary"' not in row.content_json:
            return []
        whole: dict[str, Any] = msgspec.json.decode(row.content_json)
        content = whole.get("content")
        files: list[HistoryFile] = []
        for block in cast("list[dict[str, Any]]", content) if isinstance(content, list) else ():
            if block.get("type") == "binary" and isinstance(block.get("id"), str):
                url = self.attachments.signed_url(
                    block["id"], workspace_id=principal.workspace_id, user_id=principal.user_id, by=principal.credential
                )
                files += [HistoryFile(str(block.get("mimeType") or ""), absolute(request, url))] if url else []
        return files


def _metadata(row: TranscriptRow) -> Mapping[str, Any]:
    return msgspec.json.decode(row.metadata) if row.metadata else {}


# --- where the words of a search stand --------------------------------------------------------------------------------


SearchWords = Annotated[
    str,
    about(
        "Only those of which the title, or one message, holds all these words. What stands together must be "
        "found together; the last word may be the beginning of one, from three letters on.",
        schema={"minLength": 1, "maxLength": MAX_QUERY, "pattern": r"\S"},
        example="oslo weath",
    ),
]


class Piece(Answer):
    """A stretch of text, and whether it is what was looked for."""

    text: str
    hit: bool


class FoundMessage(Answer):
    item_id: str
    role: Literal["user", "assistant"]
    timestamp: Moment
    snippet: list[Piece]
    agent_id: str | None = None


class Found(Answer):
    """Where the words of a search stand: in the title, in a message, or in both."""

    title: list[Piece] | None = None
    message: FoundMessage | None = None


def found_in(one: FoundThread, phrases: Sequence[Phrase]) -> Found:
    title = _pieces(one.summary.title or "", phrases) if titled(one.summary, phrases) else None
    if (item := one.item) is None:
        return Found(title)
    role, by = cast("Literal['user', 'assistant']", item.role), item.agent_id or None
    return Found(title, FoundMessage(item.item_id, role, iso(item.created_at), _pieces(item.content, phrases), by))


def _pieces(text: str, phrases: Sequence[Phrase]) -> list[Piece]:
    return [Piece(piece.text, piece.hit) for piece in snippet(text, phrases)]
