"""Conversations: listed, opened, looked at, named, deleted, spoken in, controlled, followed. Reads and answers only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
from starlette.requests import Request

from paddock.host.conversations.controls import Controls
from paddock.host.conversations.inbox import Inbox, NewRun, ThreadNames
from paddock.host.keeping.deletion import Deletion
from paddock.host.people.principals import Principal
from paddock.host.streams.tails import Tails
from paddock.http_api.ag_ui.event_types import AgUiEvent
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import SSE, Answered, Content, Operations, operation
from paddock.http_api.edge.requests import source_of
from paddock.http_api.edge.shapes import (
    Accepted,
    Answer,
    Body,
    Count,
    ItemName,
    Json,
    LastEventId,
    Moment,
    Query,
    ThreadName,
    about,
    accepted,
    invalid,
    seen,
)
from paddock.http_api.native.history import Found, SearchWords, found_in
from paddock.http_api.streams.run_stream import Cursor, parse_cursor, signed_for
from paddock.http_api.streams.session_stream import SessionEvent, SessionStream
from paddock.ports.attachments import Attachments
from paddock.rules.rows.rows import SessionSummary, session_name
from paddock.rules.run.request_bodies import body_hash
from paddock.rules.search.queries import FoundThreads
from paddock.rules.search.tokens import Phrase
from paddock.rules.session.bus import FROM_PEOPLE
from paddock.rules.session.state import InflightStatus
from paddock.rules.values import replace

BASE = "/api/v1/agent/sessions"
ONE = f"{BASE}/{{thread}}"
MAX_LIST = 200
MAX_TEXT = 10_000
MAX_RUN_ID = 128
MENTIONED = ("mentioned_agent_id", "mentionedAgentId")
ASKED = ("agent_id", "agentId")

_encode = msgspec.json.Encoder().encode

Text = Annotated[str, about(must="be text")]
RunName = Annotated[str, about(must="may have at most 128 characters", max_length=MAX_RUN_ID, example="run-002")]
Title = Annotated[str, about(must="be text", schema={"maxLength": 200}, example="Weather")]


class SessionEntry(Answer):
    """A conversation in a list."""

    thread_id: str
    archived: bool
    closed: bool
    items: Count
    created_at: Moment
    updated_at: Moment
    title: Title | None = None
    automation_id: Annotated[str, about("The job that talks in it.")] | None = None
    found: Found | None = None


class SessionList(Answer):
    sessions: list[SessionEntry]
    next: Count | None
    complete: bool | None = None


class InflightTurn(Answer):
    """A turn that has not ended."""

    turn_id: str
    trace_id: str
    requested_by: str
    target_agent_id: str
    status: InflightStatus
    created_at: Moment
    last_output_at: Moment | None
    collected_output: str
    waiting: list[str]
    parent_turn_id: str | None


class OpenTransaction(Answer):
    """Steps that have not ended: an agent joins, leaves or takes over, or the conversation opens or closes."""

    tx_id: str
    kind: str
    waiting: str
    agent_id: str | None
    turn_id: str | None
    reason: str
    summary: str
    from_agent_id: str | None


class Session(SessionEntry, kw_only=True):
    """A conversation at one moment."""

    active_agent_id: str | None
    agents_in_session: list[str]
    speaking_agent_id: str | None
    user_interruptible: bool
    inflight: Annotated[dict[str, InflightTurn], about("By turnId.", example={})]
    transactions: Annotated[dict[str, OpenTransaction], about("By txId.", example={})]
    cursor: Annotated[str, about("Where a reader starts that misses nothing from this moment on.", example="9")]
    inflight_cursor: Annotated[
        str, about("Where a reader starts that also wants all of the turns that have not ended.", example="7")
    ]


class SessionsQuery(Query):
    query: SearchWords | None = None
    limit: Annotated[int, about("At most so many.", ge=1, le=MAX_LIST)] = 50
    before: Annotated[int, about("`next` of the page before.", ge=1, le=1 << 62, example=40)] | None = None
    archived: Annotated[bool, about("Only these.")] | None = None


class NewSession(Body):
    thread_id: Text | None = None
    title: Title | None = None


class SessionChange(Body):
    title: Title | None = None
    archived: bool | None = None


class Erasing(Body):
    artifacts: Annotated[bool, about("Also the files that it refers to.", example=True)] = False


class Erased(Answer):
    erased: bool
    copies: Count
    artifacts: Count


class SessionMessage(Body):
    payload: Annotated[
        Annotated[str, about(min_length=1, schema={"maxLength": MAX_TEXT})] | Annotated[Json, about(min_length=1)],
        about(must="be text or an object, and not empty", example="@writer and now in verse"),
    ]
    mentioned_agent_id: Text | None = msgspec.field(name="mentioned_agent_id", default=None)
    mentioned_camel: Text | None = msgspec.field(name="mentionedAgentId", default=None)
    agent_id: Text | None = msgspec.field(name="agent_id", default=None)
    agent_camel: Text | None = msgspec.field(name="agentId", default=None)
    run_id: RunName | None = None
    metadata: Json | None = None


class Control(Body):
    subtype: Annotated[str, about(schema={"enum": sorted(FROM_PEOPLE)}, example="SWITCH_AGENT")]
    payload: Annotated[Json, about(example={"agent_id": "writer"})] = msgspec.field(default_factory=dict[str, Any])
    tx_id: Text | None = None
    tx_snake: Text | None = msgspec.field(name="tx_id", default=None)
    turn_id: Text | None = None
    turn_snake: Text | None = msgspec.field(name="turn_id", default=None)


class ControlAnswer(Answer):
    tx_id: Annotated[str, about(example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab")]
    said: Annotated[list[str], about(example=["CONTROL:SWITCH_AGENT"])]
    note: str | None = None
    turn_id: str | None = None


class EventsQuery(Query):
    after: (
        Annotated[str, about("A cursor; 0 is the very beginning. Without one the stream begins now.", example="1.7.1")]
        | None
    ) = None
    last_event_id: LastEventId | None = None
    format: Annotated[Literal["messages", "ag-ui"], about("messages, or ag-ui.")] = "messages"


_FRAME = 'id: 1.7.0\ndata: {"session_id":"550e...","event":"EVENT","subtype":"AGENT_ADDED","target":"FRONTEND"}\n\n'


@dataclass(frozen=True, kw_only=True)
class SessionsDoor(Operations):
    group = "Conversations"
    auth: Auth
    names: ThreadNames
    controls: Controls
    keeping: Deletion
    inbox: Inbox
    tails: Tails
    keep_alive_seconds: float
    attachments: Attachments

    # --- the list ----------------------------------------------------------------------------------------------------

    @operation("GET", BASE, {200: "The one opened last first."}, errors=(504,))
    async def list(self, who: Principal, query: SessionsQuery) -> SessionList:
        """List your conversations

        With `query` every entry also tells where the words stand, and `complete` is false while older conversations are
        still on their way into the index: then ask again a moment later."""
        page: Json = {"before": query.before, "archived": query.archived, "limit": query.limit}
        if query.query is not None:
            phrases, found = await self.controls.search(who, query.query, **page)
            return _page_of_found(found, phrases, query.limit)
        rows = await self.controls.list(who, **page)
        more = rows[-1].number if len(rows) == query.limit else None
        return SessionList([seen(SessionEntry, row, **_summary(row)) for row in rows], more)

    @operation("POST", BASE, {201: "It is open now.", 200: "It was open already."}, errors=(404, 409))
    async def open(self, who: Principal, body: NewSession) -> Answered[Session]:
        """Open a conversation"""
        thread_id = await self.names.find(who, body.thread_id or str(uuid4()))
        answer = await self.controls.open(who, thread_id)
        await self.controls.settled(thread_id, answer.tx_id)
        if body.title:
            await self.controls.change(who, thread_id, title=body.title, archived=None)
        return Answered(await self._seen(who, thread_id, body.thread_id or ""), 200 if answer.note else 201)

    # --- one conversation --------------------------------------------------------------------------------------------

    @operation("GET", ONE, {200: "As it is now."}, errors=(404,))
    async def get(self, who: Principal, thread: ThreadName) -> Session:
        """Look at a conversation"""
        return await self._seen(who, await self.names.find(who, thread), thread)

    @operation("PATCH", ONE, {200: "As it is now."}, errors=(404,))
    async def patch(self, who: Principal, thread: ThreadName, body: SessionChange) -> Session:
        """Name or archive a conversation"""
        thread_id = await self.names.find(who, thread)
        await self.controls.change(who, thread_id, title=body.title or None, archived=body.archived)
        return await self._seen(who, thread_id, thread)

    @operation("DELETE", ONE, {204: "It is gone."}, errors=(404, 409))
    async def delete(self, who: Principal, thread: ThreadName) -> None:
        """Delete a conversation"""
        await self.keeping.delete_thread(who, await self.names.find(who, thread))

    @operation(
        "POST",
        f"{ONE}/items/{{item}}/erase",
        {200: "Erased wherever it was stored; the log still verifies."},
        errors=(404, 409),
    )
    async def erase(self, who: Principal, thread: ThreadName, item: ItemName, body: Erasing | None = None) -> Erased:
        """Erase the words of one message

        With `artifacts` the files that it refers to are forgotten too."""
        thread_id = await self.names.find(who, thread)
        erased = await self.keeping.erase(who, thread_id, item, artifacts=body is not None and body.artifacts)
        return Erased(erased=True, copies=erased.copies, artifacts=erased.artifacts)

    @operation("POST", f"{ONE}/messages", {202: "It is on record."}, errors=(404, 409), rate="runs")
    async def message(
        self, who: Principal, request: Request, thread: ThreadName, body: SessionMessage, given: Json
    ) -> Accepted:
        """Say something"""
        thread_id = await self.names.find(who, thread)
        new = _new_run(who, thread_id, body, given)
        made = accepted(await self.inbox.accept(replace(new, source=source_of(request.scope))))
        return msgspec.structs.replace(made, thread_id=_as_sent(made.thread_id, thread))

    @operation(
        "POST", f"{ONE}/control", {202: "It is on record; what it leads to is in the stream."}, errors=(404, 409)
    )
    async def control(self, who: Principal, thread: ThreadName, body: Control) -> ControlAnswer:
        """Control a conversation"""
        thread_id = await self.names.find(who, thread)
        tx_id, turn_id = body.tx_id or body.tx_snake or None, body.turn_id or body.turn_snake or None
        answer = await self.controls.control(who, thread_id, body.subtype, body.payload, tx_id=tx_id, run_id=turn_id)
        return ControlAnswer(answer.tx_id, [*answer.said], answer.note, answer.run_id)

    @operation(
        "GET",
        f"{ONE}/events",
        {200: "Every message for front ends; it does not end."},
        errors=(404, 410),
        rate="streams",
        response=[Content(SSE, SessionEvent, _FRAME), Content(SSE, AgUiEvent, name="AgUiEvent")],
    )
    async def events(self, who: Principal, thread: ThreadName, query: EventsQuery) -> SessionStream:
        """Follow a conversation"""
        thread_id = await self.names.find(who, thread)
        await self.controls.find(who, thread_id)
        start = await self._start(query.last_event_id or query.after, thread_id)
        place = self.auth.streams.stream(who)
        return SessionStream(
            self.tails.follow(thread_id, None, start.seq - (start.k >= 0)),
            thread_id,
            start,
            query.format,
            place=place,
            keep_alive=self.keep_alive_seconds,
            is_gone=partial(self.keeping.is_gone, thread_id),
            signed_url=partial(signed_for, self.attachments, who),
        )

    async def _start(self, given: str | None, thread_id: str) -> Cursor:
        """Return where the stream starts: after the cursor, now without one, at the very beginning for `0`."""
        if not given:
            return Cursor("1", await self.controls.head(thread_id), -1)
        plain = given.isdecimal() and len(given) < 19
        start = Cursor("1", int(given), -1) if plain else parse_cursor(given)
        if start.seq:
            await self.keeping.check_cursor(thread_id, start.seq)
            await self.keeping.check_reached(thread_id, start.seq)
        return start

    async def _seen(self, who: Principal, thread_id: str, as_sent: str) -> Session:
        found = await self.controls.snapshot(who, thread_id)
        context = found.context
        return seen(
            Session,
            context,
            **_summary(found.summary) | {"thread_id": _as_sent(thread_id, as_sent)},
            inflight={name: seen(InflightTurn, turn) for name, turn in context.inflight.items()},
            transactions={name: seen(OpenTransaction, one) for name, one in context.transactions.items()},
            cursor=str(found.head),
            inflight_cursor=str(found.since),
        )


def _summary(row: SessionSummary, found: Found | None = None) -> Json:
    same = ("archived", "closed", "items", "created_at", "updated_at", "automation_id")
    told = {name: getattr(row, name) for name in same}
    return {**told, "thread_id": row.session_id, "title": session_name(row), "found": found}


def _page_of_found(found: FoundThreads, phrases: Sequence[Phrase], limit: int) -> SessionList:
    more = found.threads[-1].summary.number if len(found.threads) == limit else None
    shown = [seen(SessionEntry, one, **_summary(one.summary, found_in(one, phrases))) for one in found.threads]
    return SessionList(shown, more, found.complete)


def _as_sent(thread_id: str, thread: str) -> str:
    """Return the thread's id as the caller spelled it. A name of the caller's own is replaced by the id."""
    return thread if thread.lower() == thread_id else thread_id


def _new_run(who: Principal, thread_id: str, body: SessionMessage, given: Json) -> NewRun:
    text = body.payload if isinstance(body.payload, str) else _words(body.payload)
    if len(text) > MAX_TEXT:
        raise invalid(f"a message may have at most {MAX_TEXT} characters")
    run_id = body.run_id or str(uuid4())
    payload = {"payload": body.payload} if isinstance(body.payload, dict) else {}
    return NewRun(
        principal=who,
        session_id=thread_id,
        client_run_id=run_id,
        body_hash=body_hash(dict(given), None),
        message={"id": f"msg-{run_id}", "role": "user", "content": text},
        text=text,
        params={**payload, **({"metadata": body.metadata} if body.metadata else {})},
        agent_id=_asked(given, body),
        door="session",
    )


def _words(payload: Mapping[str, Any]) -> str:
    text = payload.get("text")
    return text if isinstance(text, str) and text else _encode(payload).decode()


def _asked(given: Json, body: SessionMessage) -> str | None:
    """Return the agent that a message names in its fields, its payload, or metadata of subtype MENTION."""
    metadata = body.metadata or {}
    asked = _named(given, MENTIONED + ASKED)
    asked |= _named(body.payload, MENTIONED) if isinstance(body.payload, dict) else set()
    asked |= _named(metadata, MENTIONED) if metadata.get("subtype") == "MENTION" else set()
    if len(asked) > 1:
        raise invalid(f"one agent answers a message, not {len(asked)}")
    return next(iter(asked), None)


def _named(given: Mapping[str, Any], fields: Sequence[str]) -> set[str]:
    values = {field: given.get(field) for field in fields}
    for field, value in values.items():
        if value is not None and not isinstance(value, str):
            raise invalid(f"{field} must be text")
    return {value for value in values.values() if value}
