"""The transcript for runners: pages of what was said in a conversation, and searches in it.

The run's own conversation, or with a grant for it another one of the same workspace. Full text, never cut; an answer
holds as many items as fit one frame and says when there are more.
"""

from collections.abc import Mapping, Sequence

from paddock.host.transcript_items import MAX_ANSWER_BYTES, item_of, weight_of
from paddock.host.work import Work
from paddock.ports import Records
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.history_search import conversation_of, transcript_query
from paddock.rules.limits import MAX_PAGE
from paddock.rules.permissions import Grant
from paddock.rules.rows import TranscriptRow
from paddock.rules.run_context import cursor_of, seq_of
from paddock_sdk.protocol.history import HistoryPage, HistorySearchResult
from paddock_sdk.protocol.host_calls import HistoryPageParams, HistorySearchParams


class History:
    def __init__(self, records: Records) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, Work]:
        return {"history.page": Work(read=self.page), "history.search": Work(read=self.search)}

    async def page(self, grant: Grant, query: HistoryPageParams) -> HistoryPage:
        """One page, newest first when reading backward. `before_cursor` and `after_cursor` are not part of it."""
        conversation = await self._conversation(grant, query.conversation_id)
        rows, more = await self._rows(conversation, query)
        return HistoryPage.from_wire(
            {
                "items": [item_of(row, grant, with_artifacts=query.include_artifacts) for row in rows],
                "next_cursor": cursor_of(rows[-1].seq) if rows and more else None,
                "prev_cursor": cursor_of(rows[0].seq) if rows else None,
                "has_more": more,
            }
        )

    async def search(self, grant: Grant, asked: HistorySearchParams) -> HistorySearchResult:
        """Items that contain every word of the query, newest first. Fewer items than `total_count`: the rest did not
        fit; ask again with `before`."""
        filters = asked.filters or {}
        query = transcript_query(asked.query, filters, asked.top_k)
        conversation = await self._conversation(grant, conversation_of(filters))
        rows = await self._records.search(conversation, query)
        fitting = _fitting(rows)
        return HistorySearchResult.from_wire(
            {
                "items": [item_of(row, grant) for row in rows[:fitting]],
                "total_count": len(rows) if len(rows) < query.limit or fitting < len(rows) else None,
                "query": asked.query,
            }
        )

    async def _rows(self, conversation: str, query: HistoryPageParams) -> tuple[list[TranscriptRow], bool]:
        """The rows of a page, and whether there are more in that direction."""
        limit = max(1, min(query.limit, MAX_PAGE))
        before, after = _place(query.before_cursor), _place(query.after_cursor)
        backward = query.direction == "backward"
        rows, room = list[TranscriptRow](), MAX_ANSWER_BYTES
        while True:
            size = limit + 1 - len(rows)
            part = await self._records.transcript(
                conversation, before=before, after=after, limit=size, newest_first=backward, room=max(room, 0)
            )
            for row in part:
                room -= weight_of(row)
                if (room < 0 and rows) or len(rows) == limit:
                    return rows, True
                rows.append(row)
            if not part or (len(part) < size and room >= 0):
                return rows, False
            before, after = (part[-1].seq, after) if backward else (before, part[-1].seq)

    async def _conversation(self, grant: Grant, asked: str | None) -> str:
        own = grant.scope.conversation_id
        if asked is None or asked == own:
            return own
        if grant.history_scope != "workspace":
            raise HostError(ErrorCode.UNAUTHORIZED, "this run may see its own conversation only")
        session = await self._records.session(asked)
        if session is None or session.workspace_id != grant.scope.workspace_id:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such conversation")
        return asked


def _fitting(rows: Sequence[TranscriptRow]) -> int:
    """How many of the rows fit one answer; one always does."""
    room = MAX_ANSWER_BYTES
    for count, row in enumerate(rows):
        room -= weight_of(row)
        if room < 0 and count:
            return count
    return len(rows)


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    seq = seq_of(cursor)
    if seq is None:
        raise HostError(ErrorCode.NOT_FOUND, "there is no such place in this conversation's history")
    return seq
