"""How a thread stands, for an AG-UI client that comes to it: what was said, what is being said, what waits for it.

AG-UI itself has no way to ask for that. A live run is joined from its beginning, so that the stream is whole by
itself; of a thread at rest the stream is one run that says what was said and ends as the last one did.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.controls import Controls
from paddock.host.conversations.inbox import Accepted
from paddock.host.people.principals import Principal, no_such_thread
from paddock.http_api.ag_ui.events import AgUiPeer, finished, media, started
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.streams.run_stream import Cursor, RunReader, RunStreams, accepted_before
from paddock.ports import ConversationRecords
from paddock.rules.conversations.client_history import RESULT, call_id_of, given_name, name_of
from paddock.rules.rows.rows import ERASED_WORDS, TERMINAL_STATUSES, RunRow, TranscriptRow, is_erased


@dataclass(kw_only=True, eq=False)
class ThreadSnapshot:
    records: ConversationRecords
    controls: Controls
    streams: RunStreams
    history: ClientHistory

    async def before_run(self, accepted: Accepted, peer: AgUiPeer) -> bytes:
        """Items up to the input of a run, as a snapshot frame."""
        rows = await self.records.transcript(accepted.session_id, limit=MAX_ITEMS)
        return snapshot(before_run(rows, accepted.run_id), peer)

    async def stream(self, principal: Principal, thread_id: str, peer: AgUiPeer) -> ASGIApp:
        """A thread that is not there yet has nothing to tell, which is no error; a foreign one is not there."""
        owner = await self.records.session(thread_id)
        if owner is None:
            return _at_rest(peer, b"", frame(finished(peer, {})))
        if not principal.owns(owner):
            raise no_such_thread()
        live = await self._live(principal, thread_id)
        if live is not None:
            return await self._join(principal, live, peer)
        rows = await self.records.transcript(thread_id, limit=MAX_ITEMS)
        _, end = await self.history.interrupts(thread_id)
        told = snapshot(rows, peer)
        return _at_rest(
            peer, told, frame(finished(peer, {"interrupts": end.get("interrupts"), "approvals": end.get("approvals")}))
        )

    async def _live(self, principal: Principal, thread_id: str) -> RunRow | None:
        looked = await self.controls.snapshot(principal, thread_id)
        turn_id = next(iter(looked.context.inflight), None)
        run = await self.records.run(turn_id) if turn_id is not None else None
        return run if run is not None and run.status not in TERMINAL_STATUSES else None

    async def _join(self, principal: Principal, run: RunRow, peer: AgUiPeer) -> ASGIApp:
        accepted = accepted_before(run)
        joined = self.streams.peer(principal, peer.dialect, run.session_id, accepted.client_run_id, peer.thread_id)
        told = await self.before_run(accepted, joined)
        start = Cursor(peer.dialect, run.first_seq, -1)
        reader = RunReader(joined, start, self.streams.open_streams.stream(principal), after_start=told)
        return await self.streams.open(principal, accepted, reader)


def _at_rest(peer: AgUiPeer, told: bytes, end: bytes) -> ASGIApp:
    headers = {**GUARDED, "X-Accel-Buffering": "no"}
    response = Response(frame(started(peer)) + told + end, headers=headers)
    response.headers["content-type"] = "text/event-stream"
    return response


# --- the conversation as one message ----------------------------------------------------------------------------------


Json = dict[str, Any]

MAX_ITEMS = 2_000
MAX_BYTES = 4 * 1024 * 1024
"""Clients take no more than 10 MB at once; of a longer conversation the newest messages are told."""

_encode = msgspec.json.Encoder().encode


def frame(event: Json) -> bytes:
    """An event without a place in the log."""
    return b"data: %b\n\n" % _encode(event)


def snapshot(rows: Sequence[TranscriptRow], peer: AgUiPeer) -> bytes:
    """The frame, or nothing for a conversation in which nothing was said. `rows` are the newest first."""
    kept: list[Json] = []
    size = 0
    for row in rows:
        message = _message(row, peer)
        if message is None:
            continue
        size += len(_encode(message))
        if size > MAX_BYTES:
            break
        kept.append(message)
    return frame({"type": "MESSAGES_SNAPSHOT", "messages": kept[::-1]}) if kept else b""


def before_run(rows: Sequence[TranscriptRow], run_id: str) -> list[TranscriptRow]:
    """Items up to the input of a run; its own words come with its stream."""
    return [row for row in rows if row.run_id != run_id or row.role == "user" or _came_along(row)]


def _came_along(row: TranscriptRow) -> bool:
    return row.item_id.rpartition(".")[2].startswith("c")


def _message(row: TranscriptRow, peer: AgUiPeer) -> Json | None:
    name = name_of(row)
    if name is None:
        return None
    about: Json = msgspec.json.decode(row.content_json) if row.content_json else {}
    match row.item_type, row.role:
        case "tool_call", _:
            return _tool_call(row, about)
        case "tool_result", _:
            call_id = call_id_of(row)
            own = {"id": given_name(row) or f"{call_id}{RESULT}", "role": "tool", "toolCallId": call_id}
            return {**own, "content": ERASED_WORDS if is_erased(row) else _result(row, about)}
        case _ if is_erased(row):
            return {"id": name, "role": row.role, "content": ERASED_WORDS}
        case _, "user":
            return {"id": name, "role": "user", "content": _content(row, about, peer)}
        case _:
            return {"id": name, "role": "assistant", "content": row.content}


def _tool_call(row: TranscriptRow, about: Json) -> Json:
    call_id, parameters = call_id_of(row), about.get("parameters")
    arguments = "{}" if parameters is None else _encode(parameters).decode()
    function = {"name": str(about.get("tool_name") or row.content or "unnamed"), "arguments": arguments}
    return {
        "id": call_id,
        "role": "assistant",
        **({"content": ERASED_WORDS} if is_erased(row) else {}),
        "toolCalls": [{"id": call_id, "type": "function", "function": function}],
    }


def _result(row: TranscriptRow, about: Json) -> str:
    error = about.get("error")
    return _encode({"error": error}).decode() if error is not None else row.content


def _content(row: TranscriptRow, about: Json, peer: AgUiPeer) -> str | list[Json]:
    given = about.get("content")
    blocks = cast("list[Json]", given) if isinstance(given, list) else []
    if not any(block.get("type") == "binary" for block in blocks):
        return row.content
    parts = [_part(block, peer) for block in blocks]
    return [part for part in parts if part is not None]


def _part(block: Json, peer: AgUiPeer) -> Json | None:
    if block.get("type") == "text":
        return {"type": "text", "text": str(block.get("text") or "")}
    file_id, mime = str(block.get("id") or ""), str(block.get("mimeType") or "application/octet-stream")
    url = peer.signed_url(file_id) if peer.signed_url else None
    name = block.get("filename")
    if url is None:
        return {"type": "text", "text": f"({name or 'a file'})"}
    if not peer.is_new:
        named = {"filename": name} if name else {}
        return {"type": "binary", "mimeType": mime, "id": file_id, "url": url, **named}
    return media(file_id, mime, url, name)
