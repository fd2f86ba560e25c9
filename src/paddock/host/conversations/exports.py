"""Exports of a conversation as JSON or Markdown, piece by piece: it is never held in memory as a whole."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from paddock.ports import ConversationRecords, PeopleRecords
from paddock.rules.rows.rows import ERASED_WORDS, SessionSummary, TranscriptRow, is_erased, session_name

AT_ONCE = 500

_encode = msgspec.json.Encoder().encode


class _Records(ConversationRecords, PeopleRecords, Protocol): ...


class Exports:
    def __init__(self, records: _Records) -> None:
        self._records = records

    async def as_json(self, session: SessionSummary) -> AsyncIterator[bytes]:
        """Export the conversation as one JSON object, with tools and events, without items of other branches."""
        about = {
            "threadId": session.session_id,
            "title": session_name(session),
            "createdAt": _iso(session.created_at),
            "updatedAt": _iso(session.updated_at),
        }
        yield _encode(about)[:-1] + b',"messages":['
        first = True
        async for rows in self._pages(session.session_id):
            opinions = await self._records.feedback(session.session_id, [row.item_id for row in rows])
            for row in rows:
                opinion = opinions.get(row.item_id)
                more = {"feedback": {"rating": opinion.rating, "comment": opinion.comment}} if opinion else {}
                yield (b"" if first else b",") + _encode({**_item(row), **more})
                first = False
        yield b"]}\n"

    async def as_markdown(self, session: SessionSummary) -> AsyncIterator[bytes]:
        """Export the conversation as Markdown, without tools and events."""
        title = " ".join((session_name(session) or "Conversation").split())
        yield f"# {title}\n".encode()
        async for rows in self._pages(session.session_id):
            for row in rows:
                if row.item_type == "message" and row.role in {"user", "assistant"}:
                    who = "You" if row.role == "user" else row.agent_id or "Agent"
                    cut = "\n*(unfinished)*\n" if _about(row).get("partial") else ""
                    yield f"\n## {who} · {_iso(row.created_at)}\n\n{_words(row)}\n{cut}".encode()

    async def _pages(self, session_id: str) -> AsyncIterator[list[TranscriptRow]]:
        after: int | None = None
        while rows := list(await self._records.transcript(session_id, after=after, limit=AT_ONCE, newest_first=False)):
            yield rows
            after = rows[-1].seq


def _about(row: TranscriptRow) -> Mapping[str, Any]:
    return msgspec.json.decode(row.metadata) if row.metadata else {}


def _words(row: TranscriptRow) -> str:
    return f"*({ERASED_WORDS})*" if is_erased(row) else row.content


def _item(row: TranscriptRow) -> Mapping[str, Any]:
    about = _about(row)
    seen = {
        "id": row.item_id,
        "seq": row.seq,
        "role": row.role,
        "type": row.item_type,
        "content": row.content,
        "details": msgspec.Raw(row.content_json) if row.content_json else None,
        "ui_schema": about.get("ui_schema"),
        "partial": True if about.get("partial") else None,
        "erased": True if about.get("erased") else None,
        "agentId": row.agent_id,
        "taskId": row.run_id,
        "timestamp": _iso(row.created_at),
    }
    return {name: value for name, value in seen.items() if value is not None}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
