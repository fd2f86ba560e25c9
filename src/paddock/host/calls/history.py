"""The transcript for runners: pages of what was said in a conversation, and searches in it.

The run's own conversation, and of that the platform's thread it happens in; with a grant for it, others of the same
workspace. Full text, never cut; an answer holds as many items as fit one frame and says when there are more.
"""

from collections.abc import Mapping, Sequence

from paddock.host.calls.transcript_items import MAX_ANSWER_BYTES, item_of, weight_of
from paddock.host.calls.work import CallHandler
from paddock.ports import ConversationRecords
from paddock.rules.access.limits import MAX_PAGE
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.places import ALL_SUBTHREADS, Place, cursor_of, place_of
from paddock.rules.rows.rows import WHOLE, TranscriptRow, View
from paddock.rules.search.history_search import conversation_of, subthread_of, transcript_query
from paddock.rules.values import Value, replace
from paddock_sdk.protocol.history import HistoryPage, HistorySearchResult
from paddock_sdk.protocol.host_calls import HistoryPageParams, HistorySearchParams


class _Part(Value, frozen=True):
    """The part of a conversation that is read."""

    conversation_id: str
    view: View

    def cursor(self, seq: int) -> str:
        return cursor_of(Place(seq, self.view.as_of), self.conversation_id, self.view)

    def place(self, cursor: str | None) -> Place | None:
        if cursor is None:
            return None
        place = place_of(cursor, self.conversation_id, self.view)
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
        """One page, newest first when reading backward. `before_cursor` and `after_cursor` are not part of it."""
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
        """Items that contain every word of the query, newest first. `next_cursor` goes on where the answer ended, be it
        because `top_k` were found or because more did not fit."""
        filters = asked.filters or {}
        query = transcript_query(asked.query, filters, asked.top_k)
        part = await self._part(grant, conversation_of(filters), subthread_of(filters))
        before = part.place(asked.before_cursor)
        query = replace(query, view=part.view, before_seq=before.seq if before else None, limit=query.limit + 1)
        rows = await self._records.search(part.conversation_id, query)
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
        self, part: _Part, query: HistoryPageParams, before: int | None, after: int | None
    ) -> tuple[list[TranscriptRow], bool]:
        """The rows of a page, and whether there are more in that direction."""
        limit = max(1, min(query.limit, MAX_PAGE))
        backward = query.direction == "backward"
        rows, room = list[TranscriptRow](), MAX_ANSWER_BYTES
        while True:
            size = limit + 1 - len(rows)
            found = await self._records.transcript(
                part.conversation_id,
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

    async def _part(self, grant: Grant, asked: str | None, thread_id: str | None) -> _Part:
        """Find the part of the history that is asked for: by default the run's own subthread of its own session."""
        own = grant.scope
        if asked in (None, own.conversation_id) and thread_id in (None, own.subthread_id):
            return _Part(own.conversation_id, View(own.subthread_id))
        if grant.history_scope != "workspace":
            raise HostError(ErrorCode.UNAUTHORIZED, "this run may see its own conversation only")
        conversation = own.conversation_id if asked is None else asked
        session = await self._records.session(conversation)
        if session is None or session.workspace_id != own.workspace_id:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such conversation")
        return _Part(conversation, WHOLE if thread_id in (None, ALL_SUBTHREADS) else View(thread_id))


def _fitting(rows: Sequence[TranscriptRow]) -> int:
    """How many of the rows fit one answer; one always does."""
    room = MAX_ANSWER_BYTES
    for count, row in enumerate(rows):
        room -= weight_of(row)
        if room < 0 and count:
            return count
    return len(rows)
