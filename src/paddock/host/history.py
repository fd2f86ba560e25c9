"""The transcript for runners: pages of what was said in the run's own conversation."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from paddock.host.work import Work
from paddock.ports import Records
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.limits import MAX_PAGE
from paddock.rules.permissions import Grant
from paddock.rules.rows import TranscriptRow
from paddock.rules.run_context import cursor_of, seq_of
from paddock_sdk.protocol.artifacts import ArtifactRef
from paddock_sdk.protocol.history import HistoryPage, TranscriptItem, TranscriptItemType
from paddock_sdk.protocol.host_calls import HistoryPageParams


class History:
    def __init__(self, records: Records) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, Work]:
        return {"history.page": Work(read=self.page)}

    async def page(self, grant: Grant, query: HistoryPageParams) -> HistoryPage:
        """One page, newest first when reading backward. `before_cursor` and `after_cursor` are not part of it."""
        limit = max(1, min(query.limit, MAX_PAGE))
        backward = query.direction == "backward"
        rows = await self._records.transcript(
            grant.scope.conversation_id,
            before=_place(query.before_cursor),
            after=_place(query.after_cursor),
            limit=limit + 1,
            newest_first=backward,
        )
        more, rows = len(rows) > limit, rows[:limit]
        return HistoryPage(
            items=[_item(row, grant) for row in rows],
            next_cursor=cursor_of(rows[-1].seq) if rows and more else None,
            prev_cursor=cursor_of(rows[0].seq) if rows else None,
            has_more=more,
        )


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    seq = seq_of(cursor)
    if seq is None:
        raise HostError(ErrorCode.NOT_FOUND, "there is no such place in this conversation's history")
    return seq


def _item(row: TranscriptRow, grant: Grant) -> TranscriptItem:
    whole: dict[str, Any] = msgspec.json.decode(row.content_json) if row.content_json else {}
    metadata: dict[str, Any] = msgspec.json.decode(row.metadata) if row.metadata else {}
    return TranscriptItem(
        transcript_id=row.item_id,
        event_id=f"{row.session_id}.{row.seq}",
        conversation_id=row.session_id,
        bot_id=row.agent_id,
        workspace_id=grant.scope.workspace_id,
        role=row.role,
        item_type=cast("TranscriptItemType", row.item_type),
        content=row.content,
        content_json=whole or {"role": row.role, "content": row.content},
        attachment_refs=[ArtifactRef.model_validate(ref) for ref in metadata.pop("attachments", ())],
        seq=row.seq,
        cursor=cursor_of(row.seq),
        created_at=row.created_at,
        metadata=metadata,
    )
