"""Conversations: listed, opened, looked at, named, deleted, spoken in, controlled, followed. Reads and answers only."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast
from uuid import uuid4

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.conversations.inbox import Inbox, NewRun
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.keeping.deletion import Deletion
from paddock.host.people.principals import Principal
from paddock.host.session.controls import Controls
from paddock.host.streams.tails import Tails
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import has_body, json_response, read_object
from paddock.http_api.edge.routing import SESSION, route
from paddock.http_api.edge.sources import source_of
from paddock.http_api.native.runs import iso
from paddock.http_api.streams.cursors import Cursor, parse_cursor
from paddock.http_api.streams.run_streams import signed_for
from paddock.http_api.streams.session_stream import SessionStream
from paddock.ports.attachments import Attachments
from paddock.rules.conversations.naming import name_of
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import SessionSummary
from paddock.rules.run.input import body_hash
from paddock.rules.search.thread_search import FoundThread, FoundThreads, snippet, titled
from paddock.rules.search.tokens import Phrase
from paddock.rules.session.context import SessionContext
from paddock.rules.values import replace

MAX_LIST = 200
MAX_TEXT = 10_000
MAX_RUN_ID = 128
MENTIONED = ("mentioned_agent_id", "mentionedAgentId")
ASKED = ("agent_id", "agentId")

_encode = msgspec.json.Encoder().encode


class SessionsDoor:
    def __init__(
        self,
        *,
        auth: Auth,
        names: ThreadNames,
        controls: Controls,
        keeping: Deletion,
        inbox: Inbox,
        tails: Tails,
        keep_alive_seconds: float,
        attachments: Attachments,
    ) -> None:
        self._keeping = keeping
        self._auth = auth
        self._names = names
        self._controls = controls
        self._inbox = inbox
        self._tails = tails
        self._keep_alive = keep_alive_seconds
        self._attachments = attachments

    # --- the list ----------------------------------------------------------------------------------------------------

    def routes(self) -> Sequence[BaseRoute]:
        base, one = "/api/v1/agent/sessions", SESSION
        return [
            route("GET", base, self.list),
            route("POST", base, self.open),
            route("GET", one, self.get),
            route("PATCH", one, self.patch),
            route("DELETE", one, self.delete),
            route("POST", f"{one}/messages", self.message),
            route("POST", f"{one}/items/{{item}}/erase", self.erase),
            route("POST", f"{one}/control", self.control),
            route("GET", f"{one}/events", self.events),
        ]

    async def list(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        limit = _number(request, "limit", 50, most=MAX_LIST)
        before = _number(request, "before", 0) or None
        archived = _truth(request.query_params.get("archived"), "archived")
        if (query := request.query_params.get("query")) is not None:
            phrases, found = await self._controls.search(
                principal, query, before=before, archived=archived, limit=limit
            )
            return json_response(_page_of_found(found, phrases, limit))
        rows = await self._controls.list(principal, before=before, archived=archived, limit=limit)
        more = rows[-1].number if len(rows) == limit else None
        return json_response({"sessions": [_summary(row) for row in rows], "next": more})

    async def open(self, request: Request) -> Response:
        """201 when it is open: a new conversation, or one that had been closed."""
        principal = await self._auth.principal(request.scope)
        given = await read_object(request, ("threadId", "title"))
        thread_id = await self._names.find(principal, _text(given, "threadId") or str(uuid4()))
        title = _text(given, "title")
        answer = await self._controls.open(principal, thread_id)
        await self._controls.settled(thread_id, answer.tx_id)
        if title is not None:
            await self._controls.change(principal, thread_id, title=title, archived=None)
        seen = await self._seen(principal, thread_id)
        return json_response(_as_sent(seen, _text(given, "threadId") or ""), 200 if answer.note else 201)

    # --- one conversation --------------------------------------------------------------------------------------------

    async def get(self, request: Request) -> Response:
        principal, thread_id = await self._thread(request)
        return json_response(_as_sent(await self._seen(principal, thread_id), request.path_params["thread"]))

    async def patch(self, request: Request) -> Response:
        principal, thread_id = await self._thread(request)
        given = await read_object(request, ("title", "archived"))
        archived = given.get("archived")
        if archived is not None and not isinstance(archived, bool):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "archived must be true or false")
        await self._controls.change(principal, thread_id, title=_text(given, "title"), archived=archived)
        return json_response(_as_sent(await self._seen(principal, thread_id), request.path_params["thread"]))

    async def delete(self, request: Request) -> Response:
        principal, thread_id = await self._thread(request)
        await self._keeping.delete_thread(principal, thread_id)
        return Response(status_code=204)

    async def erase(self, request: Request) -> Response:
        """The words of one message, wherever they are stored; with `artifacts` also the files it refers to."""
        principal, thread_id = await self._thread(request)
        given = await read_object(request, ("artifacts",)) if has_body(request) else {}
        files = given.get("artifacts", False)
        if not isinstance(files, bool):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "artifacts must be true or false")
        erased = await self._keeping.erase(principal, thread_id, request.path_params["item"], artifacts=files)
        return json_response({"erased": True, "copies": erased.copies, "artifacts": erased.artifacts})

    async def message(self, request: Request) -> Response:
        principal, thread_id = await self._thread(request)
        known = ("payload", "mentioned_agent_id", "mentionedAgentId", "agent_id", "agentId", "runId", "metadata")
        new = _new_run(principal, thread_id, await read_object(request, known))
        accepted = await self._inbox.accept(replace(new, source=source_of(request.scope)))
        answer = {
            "taskId": accepted.task_id,
            "threadId": accepted.thread_id,
            "runId": accepted.run_id,
            "created": accepted.created,
        }
        return json_response(_as_sent(answer, request.path_params["thread"]), 202)

    async def control(self, request: Request) -> Response:
        """202 when the control is on record; what it leads to is in the stream."""
        principal, thread_id = await self._thread(request)
        given = await read_object(request, ("subtype", "payload", "txId", "tx_id", "turnId", "turn_id"))
        payload = given.get("payload", {})
        if not isinstance(payload, dict):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "payload must be an object")
        answer = await self._controls.control(
            principal,
            thread_id,
            _text(given, "subtype") or "",
            cast("dict[str, Any]", payload),
            tx_id=_text(given, "txId") or _text(given, "tx_id"),
            turn_id=_text(given, "turnId") or _text(given, "turn_id"),
        )
        told = {"txId": answer.tx_id, "said": answer.said, "note": answer.note, "turnId": answer.turn_id}
        return json_response({name: value for name, value in told.items() if value is not None}, 202)

    async def events(self, request: Request) -> SessionStream:
        principal, thread_id = await self._thread(request)
        await self._controls.find(principal, thread_id)
        form = request.query_params.get("format", "messages")
        if form not in ("messages", "ag-ui"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "format must be messages or ag-ui")
        start = await self._start(request, thread_id)
        place = self._auth.streams.stream(principal)
        follower = self._tails.follow(thread_id, None, start.seq - (start.k >= 0))
        gone = partial(self._keeping.is_gone, thread_id)
        signed = partial(signed_for, self._attachments, principal)
        return SessionStream(
            follower,
            thread_id,
            start,
            form,
            place=place,
            keep_alive=self._keep_alive,
            is_gone=gone,
            signed_url=signed,
        )

    async def _start(self, request: Request, thread_id: str) -> Cursor:
        """After the cursor the reader has; from now on when it has none, from the very beginning for `0`."""
        given = request.headers.get("last-event-id") or request.query_params.get("after")
        if not given:
            return Cursor("1", await self._controls.head(thread_id), -1)
        plain = given.isdecimal() and len(given) < 19
        start = Cursor("1", int(given), -1) if plain else parse_cursor(given)
        if start.seq:
            await self._keeping.check_cursor(thread_id, start.seq)
            await self._keeping.check_reached(thread_id, start.seq)
        return start

    # --- within ------------------------------------------------------------------------------------------------------

    async def _thread(self, request: Request) -> tuple[Principal, str]:
        principal = await self._auth.principal(request.scope)
        return principal, await self._names.find(principal, request.path_params["thread"])

    async def _seen(self, principal: Principal, thread_id: str) -> Mapping[str, Any]:
        found = await self._controls.snapshot(principal, thread_id)
        places = {"cursor": str(found.head), "inflightCursor": str(found.since)}
        return {**_summary(found.summary), **_context(found.context), **places}


def _summary(row: SessionSummary) -> dict[str, Any]:
    seen = {
        "threadId": row.session_id,
        "title": name_of(row),
        "archived": row.archived,
        "closed": row.closed,
        "items": row.items,
        "createdAt": iso(row.created_at),
        "updatedAt": iso(row.updated_at),
        "automationId": row.automation_id,
    }
    return {name: value for name, value in seen.items() if value is not None}


def _page_of_found(found: FoundThreads, phrases: Sequence[Phrase], limit: int) -> dict[str, Any]:
    more = found.threads[-1].summary.number if len(found.threads) == limit else None
    shown = [{**_summary(one.summary), "found": _found(one, phrases)} for one in found.threads]
    return {"sessions": shown, "next": more, "complete": found.complete}


def _found(one: FoundThread, phrases: Sequence[Phrase]) -> dict[str, Any]:
    """Where the words stand: in the title, in a message, or in both."""
    shown: dict[str, Any] = {}
    if titled(one.summary, phrases):
        shown["title"] = _pieces(one.summary.title or "", phrases)
    if (item := one.item) is not None:
        message = {"itemId": item.item_id, "role": item.role, "timestamp": iso(item.created_at)}
        by = {"agentId": item.agent_id} if item.agent_id else {}
        shown["message"] = {**message, **by, "snippet": _pieces(item.content, phrases)}
    return shown


def _as_sent(answer: Mapping[str, Any], thread: str) -> Mapping[str, Any]:
    """A thread's id as the caller spells it; a name of the caller's own is not one."""
    return {**answer, "threadId": thread} if thread.lower() == answer["threadId"] else answer


def _pieces(text: str, phrases: Sequence[Phrase]) -> Sequence[dict[str, Any]]:
    return [{"text": piece.text, "hit": piece.hit} for piece in snippet(text, phrases)]


def _context(context: SessionContext) -> dict[str, Any]:
    return {
        "activeAgentId": context.active_agent_id,
        "agentsInSession": context.agents_in_session,
        "speakingAgentId": context.speaking_agent_id,
        "userInterruptible": context.user_interruptible,
        "inflight": {
            turn.turn_id: {
                "turnId": turn.turn_id,
                "traceId": turn.trace_id,
                "requestedBy": turn.requested_by,
                "targetAgentId": turn.target_agent_id,
                "status": turn.status,
                "createdAt": iso(turn.created_at),
                "lastOutputAt": iso(turn.last_output_at),
                "collectedOutput": turn.collected_output,
                "waiting": turn.waiting,
                "parentTurnId": turn.parent_turn_id,
            }
            for turn in context.inflight.values()
        },
        "transactions": {
            found.tx_id: {
                "txId": found.tx_id,
                "kind": found.kind,
                "waiting": found.waiting,
                "agentId": found.agent_id,
                "turnId": found.turn_id,
                "reason": found.reason,
                "summary": found.summary,
                "fromAgentId": found.from_agent_id,
            }
            for found in context.transactions.values()
        },
    }


def _new_run(principal: Principal, thread_id: str, given: Mapping[str, Any]) -> NewRun:
    payload = given.get("payload")
    if not isinstance(payload, str | dict) or not payload:
        raise HostError(ErrorCode.INVALID_ARGUMENT, "payload must be text or an object, and not empty")
    text = payload if isinstance(payload, str) else _words(cast("dict[str, Any]", payload))
    if len(text) > MAX_TEXT:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"a message may have at most {MAX_TEXT} characters")
    run_id = _text(given, "runId") or str(uuid4())
    if len(run_id) > MAX_RUN_ID:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"runId may have at most {MAX_RUN_ID} characters")
    return NewRun(
        principal=principal,
        thread_id=thread_id,
        client_run_id=run_id,
        body_hash=body_hash(dict(given), None),
        message={"id": f"msg-{run_id}", "role": "user", "content": text},
        text=text,
        params=_params(given),
        agent_id=_asked(given),
        door="session",
    )


def _words(payload: Mapping[str, Any]) -> str:
    """A choice made in a user interface, as words: its own text, or the choice itself."""
    text = payload.get("text")
    return text if isinstance(text, str) and text else _encode(payload).decode()


def _params(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What reaches the runner besides the words, as it came."""
    payload, metadata = given["payload"], _metadata(given)
    return {
        **({"payload": payload} if isinstance(payload, dict) else {}),
        **({"metadata": metadata} if metadata else {}),
    }


def _metadata(given: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = given.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "metadata must be an object")
    return cast("dict[str, Any]", metadata or {})


def _asked(given: Mapping[str, Any]) -> str | None:
    """The agent that a message asks for: in its own fields, in its payload, or in metadata of subtype MENTION."""
    payload, metadata = given.get("payload"), _metadata(given)
    asked = _named(given, MENTIONED + ASKED)
    asked |= _named(cast("dict[str, Any]", payload), MENTIONED) if isinstance(payload, dict) else set()
    asked |= _named(metadata, MENTIONED) if metadata.get("subtype") == "MENTION" else set()
    if len(asked) > 1:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"one agent answers a message, not {len(asked)}")
    return next(iter(asked), None)


def _named(given: Mapping[str, Any], fields: Sequence[str]) -> set[str]:
    return {name for field in fields if (name := _text(given, field)) is not None}


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be text")
    return value or None


def _number(request: Request, name: str, default: int, most: int = 1 << 62) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 18 or not 1 <= int(given) <= most:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be a whole number from 1 to {most}")
    return int(given)


def _truth(given: str | None, name: str) -> bool | None:
    if given is None:
        return None
    if given not in ("true", "false"):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be true or false")
    return given == "true"
