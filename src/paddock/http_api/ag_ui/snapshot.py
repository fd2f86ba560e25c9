"""A conversation as one MESSAGES_SNAPSHOT: for readers that come later, and for clients that have another one in mind.

Clients drop what a snapshot does not list, so it is sent only where that is meant, and never empty. It has no cursor:
it says what the log says, and a reader that comes back asks again.
"""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from paddock.http_api.ag_ui.events import Peer, SignedUrl, media
from paddock.rules.conversations.client_history import RESULT, call_id_of, given_name, name_of
from paddock.rules.rows.rows import ERASED_WORDS, TranscriptRow, is_erased

Json = dict[str, Any]

MAX_ITEMS = 2_000
MAX_BYTES = 4 * 1024 * 1024
"""Clients take no more than 10 MB at once; of a longer conversation the newest messages are told."""

_encode = msgspec.json.Encoder().encode


def frame(event: Json) -> bytes:
    """An event without a place in the log."""
    return b"data: %b\n\n" % _encode(event)


def snapshot(rows: Sequence[TranscriptRow], peer: Peer, signed_url: SignedUrl) -> bytes:
    """The frame, or nothing for a conversation in which nothing was said. `rows` are the newest first."""
    kept: list[Json] = []
    size = 0
    for row in rows:
        message = _message(row, peer, signed_url)
        if message is None:
            continue
        size += len(_encode(message))
        if size > MAX_BYTES:
            break
        kept.append(message)
    return frame({"type": "MESSAGES_SNAPSHOT", "messages": kept[::-1]}) if kept else b""


def before_run(rows: Sequence[TranscriptRow], run_id: str) -> list[TranscriptRow]:
    """What was said up to the input of a run: what it says itself comes as it says it."""
    return [row for row in rows if row.run_id != run_id or row.role == "user" or _came_along(row)]


def _came_along(row: TranscriptRow) -> bool:
    return row.item_id.rpartition(".")[2].startswith("c")


def _message(row: TranscriptRow, peer: Peer, signed_url: SignedUrl) -> Json | None:
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
            return {"id": name, "role": "user", "content": _content(row, about, peer, signed_url)}
        case _:
            return {"id": name, "role": "assistant", "content": row.content}


def _tool_call(row: TranscriptRow, about: Json) -> Json:
    call_id, parameters = call_id_of(row), about.get("parameters")
    arguments = "{}" if parameters is None else _encode(parameters).decode()
    function = {"name": str(about.get("tool_name") or row.content or "unnamed"), "arguments": arguments}
    return {
        "id": call_id,
        "role": "assistant",
        "toolCalls": [{"id": call_id, "type": "function", "function": function}],
    }


def _result(row: TranscriptRow, about: Json) -> str:
    """As the stream says it."""
    error = about.get("error")
    return _encode({"error": error}).decode() if error is not None else row.content


def _content(row: TranscriptRow, about: Json, peer: Peer, signed_url: SignedUrl) -> str | list[Json]:
    given = about.get("content")
    blocks = cast("list[Json]", given) if isinstance(given, list) else []
    if not any(block.get("type") == "binary" for block in blocks):
        return row.content
    parts = [_part(block, peer, signed_url) for block in blocks]
    return [part for part in parts if part is not None]


def _part(block: Json, peer: Peer, signed_url: SignedUrl) -> Json | None:
    if block.get("type") == "text":
        return {"type": "text", "text": str(block.get("text") or "")}
    file_id, mime = str(block.get("id") or ""), str(block.get("mimeType") or "application/octet-stream")
    url = signed_url(file_id)
    name = block.get("filename")
    if url is None:
        return {"type": "text", "text": f"({name or 'a file'})"}
    if not peer.is_new:
        named = {"filename": name} if name else {}
        return {"type": "binary", "mimeType": mime, "id": file_id, "url": url, **named}
    return media(file_id, mime, url, name)
