"""Search in one conversation: an index for what is old, a look at each item for what is new, one answer.

A conversation is not indexed while it is written, but in parts, once enough has come together. An append only counts. A
conversation that has gathered enough new items is indexed in the background; a short one never is. Parts follow each
other one at a time, workspaces in turn, so that one with long conversations delays the searches of another by a part.
Whatever is not counted or not lined up is indexed when somebody searches it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio.to_thread

from paddock.ports import Batch
from paddock.ports.places import Places
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.queries import TranscriptQuery
from paddock.storage.search import Index, IndexedTo, Text, unchanged
from paddock.storage.tables.conversations import ITEMS, NO_END, PRESENT
from paddock.storage.tables.statements import Engine, Query, Work, ask, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
MAX_COUNTED = 65_536
"""Conversations whose new items are counted; the one counted longest ago is forgotten first."""
MAX_DUE, MAX_DUE_IN_ALL = 256, 4096
"""Conversations that wait to be indexed, of one workspace and in all."""
WAITING, WAITING_IN_ALL = 64, 1024
"""Searches that wait for a part of theirs."""
PART = 64
"""Items per commit: bounds how long others wait for theirs."""
PAGE = 64
"""Items that are not indexed yet and are read at once."""
FILTERED = f"""
   {PRESENT}
   and (:roles::text[] is null or t.role = any(:roles::text[]))
   and (:kinds::text[] is null or t.role || ' ' || t.item_type = any(:kinds::text[]))
   and (:later::double precision is null or t.created_at > :later)
   and (:earlier::double precision is null or t.created_at < :earlier)
   and (:all_subthreads::boolean or t.subthread_id is not distinct from :subthread_id::text)"""
"""The filters of a query, of items `t`."""
_WORKSPACE = Query(value, "select workspace_id from sessions where session_id = :session_id")
_INDEXED_TO = """
select s.session_no, coalesce(p.seq, 0),
       (select count(*) from (
         select 1 from transcript t where t.session_no = s.session_no and t.seq > coalesce(p.seq, 0)
          limit :enough) as missing)
  from sessions s left join search_progress p on p.session_no = s.session_no where s.session_id = :session_id"""
_NEXT = """
select session_no, seq, content, octet_length(content) from transcript
 where session_no = :number and seq > :seq order by seq limit :limit"""
_REACHED = """
insert into search_progress (session_no, seq)
select session_no, :seq::bigint from sessions where session_no = :number and session_id = :session_id
on conflict (session_no) do update set seq = excluded.seq where search_progress.seq = :before"""
_TAIL = f"""
select {ITEMS.of("t")} from transcript t where t.session_no = :number and t.seq > :after and t.seq < :before {FILTERED}
 order by t.seq desc limit :limit"""
_log = logging.getLogger(__name__)


class HistorySearch:
    """Searches conversations, counts what is new in them and has one indexed when enough has come together."""

    def __init__(self, engine: Engine, index: Index) -> None:
        self._engine = engine
        self._index = index
        self._new: dict[str, int] = {}
        self._due: dict[str, None] = {}
        """Conversations with enough that is new, whose workspace has not been looked up yet."""
        self._lines: dict[str, dict[str, None]] = {}
        """Conversations that are due, by workspace."""
        self._wake = asyncio.Event()
        self._places = Places(1, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._working: set[asyncio.Task[None]] = set()
        """One for each workspace with a line."""
        self._task = asyncio.get_running_loop().create_task(self._keep_up(), name="paddock-indexing")

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        """The newest items that answer. When too many are missing from the index (after an upgrade, or a restart that
        forgot the counts) they are indexed first."""
        look = partial(_find, self._index, session_id, query)
        found = await self._engine.ask(partial(look, self._index.MAX_TAIL))
        if found is None:
            await self.catch_up(session_id)
            found = await self._engine.ask(look)
        return found or []

    async def workspace_of(self, session_id: str) -> str | None:
        return await self._engine.one(_WORKSPACE, session_id=session_id)

    async def add_part(self, session_id: str) -> bool:
        """Index the next items of a conversation; whether there may be more."""
        place, texts = await self._engine.ask(partial(_next, session_id))
        if not texts:
            return False
        words = await anyio.to_thread.run_sync(self._cut, texts)
        await self._engine.do(partial(_put_in, self._index, session_id, place, texts, words), durably=False)
        return len(texts) == PART

    def _cut(self, texts: Sequence[Text]) -> Sequence[str]:
        return [self._index.words_of_item(*text.place, text.content) for text in texts]

    async def catch_up(self, session_id: str) -> None:
        """Index all that is missing of a conversation, part by part. Raises RATE_LIMITED when too many wait."""
        workspace = await self.workspace_of(session_id)
        more = workspace is not None
        while more:
            async with self._places.taken(workspace or ""):
                more = await self.add_part(session_id)

    async def stop(self) -> None:
        for task in (self._task, *self._working):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def count(self, batch: Batch) -> None:
        """Hear of an append. Cheap, because every message passes here."""
        items = 0
        for row in batch.rows:
            if type(row) is TranscriptRow:
                items += 1
        if items:
            new = self._new.pop(batch.session_id, 0) + items
            if new >= self._index.ENOUGH:
                self._line_up(batch.session_id)
            else:
                self._new[batch.session_id] = new
                if len(self._new) > MAX_COUNTED:
                    del self._new[next(iter(self._new))]

    def _line_up(self, session_id: str) -> None:
        if len(self._due) < MAX_DUE_IN_ALL:
            self._due[session_id] = None
            self._wake.set()

    async def _keep_up(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                session_id = next(iter(self._due))
                del self._due[session_id]
                with suppress(StorageUnavailableError):  # a search will ask again
                    await self._sort(session_id)

    async def _sort(self, session_id: str) -> None:
        workspace = await self.workspace_of(session_id)
        if workspace is None or sum(map(len, self._lines.values())) >= MAX_DUE_IN_ALL:
            return
        if (line := self._lines.get(workspace)) is None:
            line = self._lines[workspace] = {}
            task = asyncio.get_running_loop().create_task(self._work_through(workspace), name="paddock-indexing")
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        if len(line) < MAX_DUE:
            line[session_id] = None

    async def _work_through(self, workspace: str) -> None:
        line = self._lines[workspace]
        try:
            while line:
                session_id = next(iter(line))
                del line[session_id]
                await self._try(session_id)
        finally:
            del self._lines[workspace]

    async def _try(self, session_id: str) -> None:
        try:
            await self.catch_up(session_id)
        except (StorageUnavailableError, HostError) as error:  # a search will ask again
            about = {"action": "storage.index_failed", "session_id": session_id, "error": str(error)}
            _log.warning("a conversation could not be indexed for search", extra=about)


def _indexed_to(session_id: str, enough: int) -> Work[IndexedTo | None]:
    found = yield ask(_INDEXED_TO, session_id=session_id, enough=enough)
    return IndexedTo(*found[0]) if found else None


def _next(session_id: str) -> Work[tuple[IndexedTo, Sequence[Text]]]:
    place = (yield from _indexed_to(session_id, 0)) or IndexedTo(0, 0, 0)
    found = yield ask(_NEXT, number=place.session_no, seq=place.seq, limit=PART)
    return place, [Text(*row) for row in found]


def _put_in(index: Index, session_id: str, place: IndexedTo, texts: Sequence[Text], words: Sequence[str]) -> Work[None]:
    """Index what is still as it was read; the first item that is not begins the next part."""
    same = yield from unchanged(texts)
    yield from index.add("search", [(*text.place, cut) for text, cut in zip(texts, words, strict=True) if text in same])
    reached = next((text.seq - 1 for text in texts if text not in same), texts[-1].seq)
    yield ask(_REACHED, number=place.session_no, session_id=session_id, seq=reached, before=place.seq)


def _find(
    index: Index, session_id: str, query: TranscriptQuery, most: int | None = None
) -> Work[list[TranscriptRow] | None]:
    """The newest items that answer the query; None when more than `most` would have to be read one by one."""
    place = yield from _indexed_to(session_id, 1 if most is None else most + 1)
    if place is None or not query.phrases:
        return []
    if most is not None and place.missing > most:
        return None
    filters = _filters(query)
    before = NO_END if query.before_seq is None else query.before_seq
    found, rows, last = list[TranscriptRow](), [None] * PAGE, before
    while place.missing and len(rows) == PAGE and len(found) < query.limit:
        where = {"number": place.session_no, "after": place.seq, "before": last, "limit": PAGE}
        rows = yield ask(_TAIL, **where, **filters)
        items = [TranscriptRow(session_id, *row) for row in rows]
        found += query.scan(items)[: query.limit - len(found)]
        last = items[-1].seq if items else 0
    if place.seq and len(found) < query.limit:
        until, limit = min(before, place.seq + 1), query.limit - len(found)
        indexed = yield from index.find_items(place, query, filters, until, limit)
        found += [TranscriptRow(session_id, *row) for row in indexed]
    return found


def _filters(query: TranscriptQuery) -> dict[str, object]:
    return {
        "roles": None if query.roles is None else sorted(query.roles),
        "kinds": None if query.kinds is None else sorted(f"{role} {kind}" for role, kind in query.kinds),
        "later": query.after,
        "earlier": query.before,
        "all_subthreads": query.view.all_subthreads,
        "subthread_id": query.view.subthread_id,
    }
