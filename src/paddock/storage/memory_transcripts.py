"""The part of the memory store that reads conversations: which there are, what was said in them, where it is found."""

from collections.abc import Sequence
from itertools import islice

from paddock.rules.log.chain import StoredFact
from paddock.rules.log.events import HANDED_OVER
from paddock.rules.rows.calls import PlacedCall
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import (
    BEGINS_CHARS,
    BEGINS_FACTS,
    WHOLE,
    RunRow,
    SessionDetailsRow,
    SessionRow,
    SessionSummary,
    TranscriptRow,
    View,
)
from paddock.rules.search.history_search import TranscriptQuery
from paddock.rules.search.thread_search import FoundThread, FoundThreads, ThreadQuery, is_said, titled
from paddock.rules.search.tokens import Phrase, matches
from paddock.storage.memory_keeping import MemoryKeeping
from paddock.storage.memory_people import MemoryPeople
from paddock.storage.memory_sessions import MemorySessions
from paddock.storage.room import until_full


class MemoryTranscripts(MemoryKeeping, MemorySessions, MemoryPeople):
    _runs: dict[str, RunRow]

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        log = self._sessions.get(session_id)
        facts = log.facts.values() if log else ()
        known = (
            f
            for f in facts
            if f.kind in kinds
            and (f.target != "AGENT" or f.kind == HANDED_OVER)
            and (before is None or f.position < before)
            and (f.turn_id is None or view.all_subthreads or self._is_in(f.turn_id, view))
        )
        return sorted(known, key=lambda fact: (fact.position, fact.seq), reverse=True)[:limit]

    def _is_in(self, run_id: str, view: View) -> bool:
        run = self._runs.get(run_id)
        return run is not None and view.shows(run.subthread_id)

    async def fact(self, session_id: str, seq: int) -> StoredFact | None:
        log = self._sessions.get(session_id)
        return log.facts.get(seq) if log else None

    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        found = [
            one
            for one in self._placed_calls()
            if one.row.session_id == session_id
            and (before is None or (one.after, one.number) < before)
            and (view.all_subthreads or self._is_in(one.row.run_id, view))
        ]
        return sorted(found, key=lambda one: (one.after, one.number), reverse=True)[:limit]

    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        found = [
            row
            for row in self._deliveries.values()
            if row.session_id == session_id
            and (before is None or row.number < before)
            and (view.all_subthreads or self._is_in(row.run_id, view))
        ]
        return sorted(found, key=lambda row: row.number, reverse=True)[:limit]

    def _head_of(self, session_id: str) -> int | None:
        log = self._sessions.get(session_id)
        return log.head.seq if log else None

    async def session(self, session_id: str) -> SessionRow | None:
        log = self._sessions.get(session_id)
        return log.row if log else None

    async def session_summary(self, session_id: str) -> SessionSummary | None:
        log = self._sessions.get(session_id)
        if log is None:
            return None
        details = self._details.get(session_id) or SessionDetailsRow(session_id)
        return SessionSummary(
            session_id=session_id,
            workspace_id=log.row.workspace_id,
            user_id=log.row.user_id,
            created_at=log.row.created_at,
            updated_at=log.updated_at,
            items=len(log.items),
            number=log.number,
            title=details.title,
            archived=bool(details.archived),
            closed=bool(details.closed),
            begins=None if details.title else self._begins(session_id),
        )

    def _begins(self, session_id: str) -> str | None:
        items = self._sessions[session_id].items
        early = (items[seq] for seq in sorted(items) if seq < min(items) + BEGINS_FACTS)
        for row in early:
            is_said_by_user = row.role == "user" and row.item_type == "message" and row.content
            if is_said_by_user and self._is_present(session_id, row.seq):
                return row.content[:BEGINS_CHARS]
        return None

    async def sessions_of(
        self,
        workspace_id: str,
        user_id: str,
        *,
        before: int | None = None,
        archived: bool | None = None,
        limit: int = 50,
    ) -> Sequence[SessionSummary]:
        whose = (workspace_id, user_id)
        mine = [log for log in self._sessions.values() if (log.row.workspace_id, log.row.user_id) == whose]
        mine.sort(key=lambda log: -log.number)
        earlier = [log.row.session_id for log in mine if before is None or log.number < before]
        found = [await self.session_summary(session_id) for session_id in earlier]
        return [row for row in found if row is not None and archived in (None, row.archived)][:limit]

    async def find_sessions(self, query: ThreadQuery) -> FoundThreads:
        found: list[FoundThread] = []
        for summary in await self.sessions_of(
            query.workspace_id, query.user_id, before=query.before, archived=query.archived, limit=len(self._sessions)
        ):
            item = await self._newest_said(summary.session_id, query.phrases)
            if item is not None or titled(summary, query.phrases):
                found.append(FoundThread(summary, item))
        return FoundThreads(found[: query.limit])

    async def _newest_said(self, session_id: str, phrases: Sequence[Phrase]) -> TranscriptRow | None:
        rows = await self.transcript(session_id, limit=len(self._sessions[session_id].items))
        return next((row for row in rows if is_said(row) and matches(row.content, phrases)), None)

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        newest_first: bool = True,
        room: int | None = None,
        view: View = WHOLE,
    ) -> Sequence[TranscriptRow]:
        log = self._sessions.get(session_id)
        seqs = sorted(log.items if log else (), reverse=newest_first)
        seqs = [seq for seq in seqs if self._is_present(session_id, seq)]
        if log is not None and view is not WHOLE:
            seqs = [seq for seq in seqs if view.shows_item(row := log.items[seq], self._runs.get(row.run_id or ""))]
        wanted = (seq for seq in seqs if (before is None or seq < before) and (after is None or seq > after))
        return list(until_full((log.items[seq] for seq in islice(wanted, limit)), room)) if log else []

    async def search(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        log = self._sessions.get(session_id)
        seqs = sorted(log.items, reverse=True) if log else ()
        return query.scan(log.items[seq] for seq in seqs if self._is_present(session_id, seq)) if log else []

    async def place_of(self, session_id: str, moment: float) -> int:
        log = self._sessions.get(session_id)
        items = log.items if log else {}
        later = (seq for seq, row in items.items() if row.created_at >= moment)
        return min(later, default=max(items, default=0) + 1)

    async def spoken(
        self,
        session_id: str,
        *,
        before: int,
        start: int = 0,
        limit: int = 1,
        newest_first: bool = True,
        left_behind: bool = False,
    ) -> Sequence[TranscriptRow]:
        log = self._sessions.get(session_id)
        rows = (log.items[seq] for seq in sorted(log.items, reverse=newest_first)) if log else ()
        wanted = (
            row
            for row in rows
            if start <= row.seq < before
            and (row.item_type == "message" and row.role in {"user", "assistant"})
            and (left_behind or self._is_present(session_id, row.seq))
        )
        return list(islice(wanted, limit))

    async def transcript_count(self, session_id: str) -> int:
        log = self._sessions.get(session_id)
        return len(log.items) if log else 0
