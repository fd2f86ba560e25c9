"""The transcript for runners: pages of a conversation's items, and searches in them.

A run reads its own conversation, and of that its own thread on the platform; with a grant also other conversations of
the workspace. Items are complete; an answer holds as many as fit one frame and says whether there are more.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from paddock.host.calls.work import CallHandler
from paddock.ports import ConversationRecords
from paddock.rules.access.limits import MAX_PAGE
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.events import ALL_SUBTHREADS, INLINE_BYTES, Place, cursor_of, place_of
from paddock.rules.log.payloads import as_object
from paddock.rules.rows.rows import WHOLE, TranscriptRow, View
from paddock.rules.search.queries import conversation_of, subthread_of, transcript_query
from paddock.rules.values import Value, replace
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.history import HistoryPage, HistorySearchResult
from paddock_sdk.protocol.host_calls import HistoryPageParams, HistorySearchParams


class _Section(Value, frozen=True):
    session_id: str
    view: View

    def cursor(self, seq: int) -> str:
        return cursor_of(Place(seq, self.view.as_of), self.session_id, self.view)

    def place(self, cursor: str | None) -> Place | None:
        if cursor is None:
            return None
        place = place_of(cursor, self.session_id, self.view)
        if place is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such place in this conversation's history")
        return place


class History:
    def __init__(self, records: ConversationRecords) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"history.page": CallHandler(read=self.page), "history.search": CallHandler(read=self.search)}

    async def page(self, grant: Grant, query: HistoryPageParams) -> HistoryPage:
        """Return one page, newest first when reading backward. The items of `before_cursor` and `after_cursor` are
        excluded."""
        part = await self._part(grant, query.conversation_id, query.thread_id)
        before, after = part.place(query.before_cursor), part.place(query.after_cursor)
        began = next((place.as_of for place in (before, after) if place is not None), None)
        part = replace(part, view=replace(part.view, as_of=began))
        rows, more = await self._rows(part, query, before.seq if before else None, after.seq if after else None)
        with_artifacts = query.include_artifacts
        return HistoryPage.from_wire(
            {
                "items": [item_of(row, grant, part.cursor(row.seq), with_artifacts=with_artifacts) for row in rows],
                "next_cursor": part.cursor(rows[-1].seq) if rows and more else None,
                "prev_cursor": part.cursor(rows[0].seq) if rows else None,
                "has_more": more,
            }
        )

    async def search(self, grant: Grant, asked: HistorySearchParams) -> HistorySearchResult:
        """Return items that contain every word of the query, newest first. `next_cursor` continues the answer, whether
        `top_k` were found or no more fit."""
        filters = asked.filters or {}
        query = transcript_query(asked.query, filters, asked.top_k)
        part = await self._part(grant, conversation_of(filters), subthread_of(filters))
        before = part.place(asked.before_cursor)
        query = replace(query, view=part.view, before_seq=before.seq if before else None, limit=query.limit + 1)
        rows = await self._records.search(part.session_id, query)
        shown = rows[: min(_fitting(rows), asked.top_k)]
        more = len(shown) < len(rows)
        return HistorySearchResult.from_wire(
            {
                "items": [item_of(row, grant, part.cursor(row.seq)) for row in shown],
                "total_count": len(rows) if before is None and len(rows) <= asked.top_k else None,
                "query": asked.query,
                "next_cursor": part.cursor(shown[-1].seq) if more else None,
                "has_more": more,
            }
        )

    async def _rows(
        self, part: _Section, query: HistoryPageParams, before: int | None, after: int | None
    ) -> tuple[list[TranscriptRow], bool]:
        limit = max(1, min(query.limit, MAX_PAGE))
        backward = query.direction == "backward"
        rows, room = list[TranscriptRow](), MAX_ANSWER_BYTES
        while True:
            size = limit + 1 - len(rows)
            found = await self._records.transcript(
                part.session_id,
                before=before,
                after=after,
                limit=size,
                newest_first=backward,
                room=max(room, 0),
                view=part.view,
            )
            for row in found:
                room -= weight_of(row)
                if (room < 0 and rows) or len(rows) == limit:
                    return rows, True
                rows.append(row)
            if not found or (len(found) < size and room >= 0):
                return rows, False
            before, after = (found[-1].seq, after) if backward else (before, found[-1].seq)

    async def _part(self, grant: Grant, asked: str | None, subthread_id: str | None) -> _Section:
        own = grant.scope
        if asked in (None, own.session_id) and subthread_id in (None, own.subthread_id):
            return _Section(own.session_id, View(own.subthread_id))
        if grant.history_scope != "workspace":
            raise HostError(ErrorCode.UNAUTHORIZED, "this run may see its own conversation only")
        conversation = own.session_id if asked is None else asked
        session = await self._records.session(conversation)
        if session is None or session.workspace_id != own.workspace_id:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such conversation")
        return _Section(conversation, WHOLE if subthread_id in (None, ALL_SUBTHREADS) else View(subthread_id))


def _fitting(rows: Sequence[TranscriptRow]) -> int:
    """Return how many of the rows fit one answer; one always does."""
    room = MAX_ANSWER_BYTES
    for count, row in enumerate(rows):
        room -= weight_of(row)
        if room < 0 and count:
            return count
    return len(rows)


MAX_ANSWER_BYTES = 2 * 1024 * 1024
"""Bytes of items in one answer; a frame may have twice that, so the last item to fit never exceeds it."""
MAX_ITEM_BYTES = 3 * 1024 * 1024
ENVELOPE_BYTES = 512
SMALL = 100_000
"""Characters of an item that fits a frame whatever they are."""

_encode = msgspec.json.Encoder().encode


def weight_of(row: TranscriptRow) -> int:
    """Estimate the bytes of an item on the wire: its text, and its other fields."""
    return ENVELOPE_BYTES + len(_encode(row.content)) + len(row.content_json) + len(row.metadata)


def is_oversize(row: TranscriptRow) -> bool:
    """Tell whether an item is too large for any frame. Short ones are known by their length: a character takes at most
    six bytes."""
    at_most = ENVELOPE_BYTES + 6 * len(row.content) + len(row.content_json) + len(row.metadata)
    return at_most > MAX_ITEM_BYTES and weight_of(row) > MAX_ITEM_BYTES


def item_of(row: TranscriptRow, grant: Grant, cursor: str, *, with_artifacts: bool = False) -> dict[str, Any]:
    """Return the fields of a `TranscriptItem`; a page of them is validated at once.

    The text of an item that fits no frame is left out, and its metadata says how long it is.
    """
    metadata = _metadata(row.metadata) if row.metadata else {}
    speaker: Mapping[str, Any] = metadata.pop("actor", None) or {}
    if row.run_id is not None:
        metadata["run_id"] = row.run_id
    content: str | None = row.content
    whole: dict[str, Any] | None = msgspec.json.decode(row.content_json) if row.content_json else None
    refs = list(_refs(whole)) if with_artifacts and whole else []
    if len(row.content) + len(row.content_json) + len(row.metadata) > SMALL and is_oversize(row):
        metadata |= {"oversize_bytes": len(row.content.encode())}
        content = whole = None
    elif row.item_type == "tool_result":
        content = None
    elif whole is not None and row.item_type == "message":
        whole = _beside_the_text(whole)
    elif whole is not None and row.item_type == "system":
        speaker = as_object(whole.get("actor"))
        whole = _event(whole)
    if not speaker and row.role == "user" and row.session_id == grant.scope.session_id:
        speaker = {"actor_type": "user", "actor_id": grant.scope.user_id}
    return {
        "transcript_id": row.item_id,
        "event_id": f"{row.session_id}.{row.seq}",
        "conversation_id": row.session_id,
        "thread_id": row.subthread_id,
        "bot_id": row.agent_id,
        "workspace_id": grant.scope.workspace_id,
        "role": row.role,
        "item_type": row.item_type,
        "actor_type": speaker.get("actor_type"),
        "actor_id": speaker.get("actor_id"),
        "actor_name": speaker.get("actor_name"),
        "content": content,
        "content_json": whole,
        "attachment_refs": refs,
        "seq": row.seq,
        "cursor": cursor,
        "created_at": row.created_at,
        "metadata": metadata,
    }


def _beside_the_text(whole: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a message without its text, which the item has already; None when only its role is left."""
    content = whole.get("content")
    blocks = cast("Sequence[Any]", content) if isinstance(content, list) else ()
    others = [block for block in blocks if "text" not in as_object(block)]
    rest = {name: value for name, value in whole.items() if name != "content"}
    left: dict[str, Any] = {**rest, "content": others} if others else rest
    return left if left.keys() - {"role", "id"} else None


def _event(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return the event of an item without its reply target; large data is read by `events.get`."""
    data = whole.get("data")
    left = {name: value for name, value in whole.items() if name not in {"delivery", "data", "tools"}}
    return {**left, "data": data} if data and len(_encode(data)) <= INLINE_BYTES else left


def _metadata(stored: bytes) -> dict[str, Any]:
    metadata: dict[str, Any] = msgspec.json.decode(stored)
    for drawn in ("ui_schema", "ui_compiler"):  # for people; agents read the text
        metadata.pop(drawn, None)
    return metadata


def _refs(whole: Mapping[str, Any]) -> Iterator[ArtifactRef]:
    content = whole.get("content")
    blocks: Sequence[Any] = cast("Sequence[Any]", content) if isinstance(content, list) else ()
    for block in (*blocks, whole.get("artifact")):
        if isinstance(block, dict) and (ref := _ref(cast("Mapping[str, Any]", block))):
            yield ref


def _ref(block: Mapping[str, Any]) -> ArtifactRef | None:
    artifact_id = block.get("artifact_id") or block.get("id")
    if not isinstance(artifact_id, str):
        return None
    return ArtifactRef(
        artifact_id=artifact_id,
        artifact_type=_text(block, "artifact_type"),
        mime_type=_text(block, "mime_type", "mimeType"),
        size=size if isinstance(size := block.get("size") or block.get("size_bytes"), int) else None,
        name=_text(block, "name", "filename", "file_name"),
        source=_text(block, "source"),
    )


def _text(block: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := block.get(name), str)), None)
