"""Another course for a conversation, opinions on its answers, and all of it to take away. Reads and answers only."""

from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp

from paddock.host.conversations.branches import Again, Branches
from paddock.host.conversations.controls import Controls
from paddock.host.conversations.exports import Exports
from paddock.host.conversations.inbox import ThreadNames
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import JSON, Content, Operations, operation
from paddock.http_api.edge.requests import source_of
from paddock.http_api.edge.shapes import Accepted, Answer, Body, Count, ItemName, Json, Moment, Query, ThreadName, about
from paddock.http_api.native.history import Opinion
from paddock.http_api.native.sessions import ONE
from paddock.http_api.streams.run_stream import in_pieces
from paddock.rules.run.input import MAX_RUN_ID, MAX_TEXT

MAX_COMMENT = 2_000
ItemId = Annotated[
    str,
    about(
        min_length=1,
        max_length=512,
        must="be text of at most 512 characters",
        needed="name a message: an id that the history gives",
    ),
]
RunId = Annotated[str, about(max_length=MAX_RUN_ID)]
AgentId = Annotated[str, about(max_length=512)]


class Edit(Body):
    item_id: ItemId
    content: Annotated[
        str,
        about(
            min_length=1,
            max_length=MAX_TEXT,
            must=f"be text of at most {MAX_TEXT} characters",
            needed="be the new words, and not empty",
            example="And in Bergen?",
        ),
    ]
    run_id: RunId | None = None
    agent_id: AgentId | None = None


class Regenerate(Body):
    item_id: ItemId
    run_id: RunId | None = None
    agent_id: AgentId | None = None


class Feedback(Body):
    rating: Annotated[Literal["up", "down"] | None, about(must="be up or down, or null to take it back", example="up")]
    comment: Annotated[str, about(max_length=MAX_COMMENT, example="just right")] | None = None


class ExportedItem(Answer):
    id: str
    seq: Count
    role: str
    type: Annotated[str, about(example="message")]
    content: str
    timestamp: Moment
    task_id: str | None = None
    agent_id: str | None = None
    details: Json | None = None
    partial: bool | None = None
    feedback: Opinion | None = None


class Export(Answer):
    """A conversation, whole."""

    thread_id: str
    title: str | None
    created_at: Moment
    updated_at: Moment
    messages: list[ExportedItem]


class ExportQuery(Query):
    format: Annotated[
        Literal["json", "markdown"], about("json, or markdown (then it is text/markdown).", example="markdown")
    ] = "json"


@dataclass(frozen=True, kw_only=True)
class BranchesDoor(Operations):
    group = "Conversations"
    auth: Auth
    names: ThreadNames
    branches: Branches
    controls: Controls
    exports: Exports

    @operation("POST", f"{ONE}/edit", {202: "The conversation goes on from there."}, errors=(404, 409), rate="runs")
    async def edit(self, who: Principal, request: Request, thread: ThreadName, body: Edit) -> Accepted:
        """Say an earlier message differently

        What was said from that message on is left behind: it stays on record and is not read any more."""
        return await self._again(who, request, thread, body, body.content)

    @operation(
        "POST", f"{ONE}/regenerate", {202: "The conversation goes on from there."}, errors=(404, 409), rate="runs"
    )
    async def regenerate(self, who: Principal, request: Request, thread: ThreadName, body: Regenerate) -> Accepted:
        """Have a message answered again"""
        return await self._again(who, request, thread, body, None)

    async def _again(
        self, who: Principal, request: Request, thread: str, body: Edit | Regenerate, text: str | None
    ) -> Accepted:
        thread_id = await self.names.find(who, thread)
        run_id = body.run_id or str(uuid4())
        asked = Again(body.item_id, run_id, body.agent_id or None, text, source_of(request.scope))
        run = await self.branches.again(who, thread_id, asked)
        return Accepted(run.run_id, run.session_id, run.client_run_id, created=False)

    @operation("PUT", f"{ONE}/messages/{{item}}/feedback", {204: "It is on record."}, errors=(404,))
    async def feedback(self, who: Principal, thread: ThreadName, item: ItemName, body: Feedback) -> None:
        """Say what you think of an answer"""
        thread_id = await self.names.find(who, thread)
        await self.branches.rate(who, thread_id, item, body.rating, body.comment or "")

    @operation(
        "GET",
        f"{ONE}/export",
        {200: "All of it."},
        errors=(404,),
        response=[Content(JSON, Export), Content("text/markdown", str, "# A trip\n")],
    )
    async def export(self, who: Principal, thread: ThreadName, query: ExportQuery) -> ASGIApp:
        """Take a conversation away"""
        thread_id = await self.names.find(who, thread)
        session = await self.controls.find(who, thread_id)
        as_json = query.format == "json"
        pieces = self.exports.as_json(session) if as_json else self.exports.as_markdown(session)
        name = f"conversation-{thread_id}.{'json' if as_json else 'md'}"
        headers = {**GUARDED, "Content-Disposition": f'attachment; filename="{name}"'}
        media_type = "application/json" if as_json else "text/markdown; charset=utf-8"
        return in_pieces(StreamingResponse(pieces, headers=headers, media_type=media_type))
