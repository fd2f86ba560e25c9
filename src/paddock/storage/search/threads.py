"""Conversations found by their titles and messages: an index of its own, because the one of `history.py` has only long
conversations in it. It is filled when a user looks for something, and never before.

A search waits a moment for what is missing and then answers from what is there, saying that it is not complete, while
the rest follows behind it, the newest first. That is done once for each user at a time; parts are put in a few at a
time, workspaces in turn.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import cast, get_args

import anyio
import anyio.to_thread

from paddock.ports.places import Places
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.forgetting import ItemErased, SessionSettled
from paddock.rules.rows.rows import SessionDetailsRow, SessionSummary, TranscriptRow
from paddock.rules.search.queries import FoundThread, FoundThreads, ThreadQuery, owner_mark
from paddock.rules.search.tokens import contains_all
from paddock.rules.values import Value, replace
from paddock.storage.search import GIVEN, Index, Text, TextPlace, Whose, packed, unchanged
from paddock.storage.tables.conversations import ITEMS, NO_END, PRESENT, SUMMARY
from paddock.storage.tables.statements import Engine, Query, Work, ask

# ruff: noqa: S608 - the column lists are our own, values are always bound
AT_ONCE, EACH = 2, 1
"""Parts that are put in at once, in all and of one workspace."""
WAITING, WAITING_IN_ALL = 64, 1024
PATIENCE_SECONDS = 1.0
"""How long a search waits for what is missing."""
MAX_FRESH = 1024
"""Conversations remembered. When there are more, all is forgotten, and the next search of a user looks by itself."""
MAX_USERS = 4096
_log = logging.getLogger(__name__)

_THEIRS = """
select s.session_no, s.session_id, s.head_seq, coalesce(p.seq, 0), coalesce(p.titled, false)
  from sessions s left join thread_search_progress p on p.session_no = s.session_no
 where s.workspace_id = :workspace_id and s.user_id = :user_id"""
_BEHIND = f"""
{_THEIRS} and s.session_no < :before and (p.seq is null or p.seq < s.head_seq or not p.titled)
 order by s.session_no desc limit :limit"""
_AMONG = f"{_THEIRS} and s.session_id = any(:session_ids::text[]) order by s.session_no desc"
_SAID = "item_type = 'message' and role in ('user', 'assistant')"
# The next messages of each conversation: those before the one that would be too many.
_NEXT = f"""
with place as materialized (
  select session_no, seq, coalesce((
    select m.seq from transcript m where m.session_no = given.session_no and m.seq > given.seq and {_SAID}
     order by m.seq limit 1 offset :each), {NO_END}) as until from {GIVEN})
select t.session_no, t.seq, t.content, octet_length(t.content) from place cross join transcript t
 where t.session_no = place.session_no and t.seq > place.seq and t.seq < place.until and {_SAID}
 order by t.session_no, t.seq"""
_TITLES = """
select s.session_no, 0, d.title, octet_length(d.title) from sessions s
  join session_details d on d.session_id = s.session_id
 where s.session_no = any(:numbers::bigint[]) and d.title <> ''"""
# Held until the commit: nobody else fills the same, and a new title comes before or after.
_BEGIN = """
insert into thread_search_progress (session_no, seq, titled)
select session_no, 0, false from sessions where session_no = any(:numbers::bigint[]) on conflict do nothing"""
_HELD = """
select p.session_no, p.seq from thread_search_progress p join sessions s on s.session_no = p.session_no
 where p.session_no = any(:numbers::bigint[]) and s.workspace_id = :workspace_id and s.user_id = :user_id
 order by p.session_no /*postgres for update of p*/"""
_REACHED = f"""
update thread_search_progress as p set seq = given.seq, titled = p.titled or p.session_no = any(:titled::bigint[])
  from {GIVEN} where p.session_no = given.session_no"""
_SUMMARIES = Query(SessionSummary, f"{SUMMARY} where s.session_no = any(:numbers::bigint[])")
_ITEMS = f"""
select t.session_no, {ITEMS.of("t")} from {GIVEN}
  join transcript t on t.session_no = given.session_no and t.seq = given.seq {PRESENT}"""

Told = TranscriptRow | SessionDetailsRow | ItemErased | SessionSettled
_TOLD = frozenset(get_args(Told))

Settle = Callable[[Sequence[str]], Awaitable[None]]
"""Wait until what was handed in for these conversations is committed."""


class Behind(Value, frozen=True):
    """A conversation of which something may not be in the index."""

    session_no: int
    session_id: str
    head: int
    seq: int
    titled: bool


class ThreadSearch:
    """Finds conversations, and fills the index for it.

    Where every write of the database passes here, `settle` is given. Then an append remembers which conversation it was
    for: the first search of a user since the start looks for everything of theirs that is missing, later ones for what
    was remembered. Where others write too, every search looks for everything.
    """

    def __init__(self, engine: Engine, index: Index, settle: Settle | None = None) -> None:
        self._engine = engine
        self._index = index
        self._settle = settle
        self._filling: dict[Whose, asyncio.Task[bool]] = {}
        self._places = Places(AT_ONCE, each=EACH, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._fresh: dict[str, None] = {}
        self._known: dict[Whose, None] = {}
        """Users of whom nothing can be missing but what is remembered."""
        self._forgotten = 0
        self._taking = asyncio.Lock()

    def hear(self, rows: Iterable[object]) -> None:
        """Hear of rows that are written. Cheap, because every message passes here."""
        for row in rows:
            if type(row) in _TOLD:
                self._fresh[cast("Told", row).session_id] = None
        if len(self._fresh) > MAX_FRESH:
            self._fresh.clear()
            self._known.clear()
            self._forgotten += 1

    async def find(self, query: ThreadQuery) -> FoundThreads:
        complete = await self._catch_up((query.workspace_id, query.user_id))
        return FoundThreads(await self._engine.ask(partial(_find, self._index, query)), complete=complete)

    async def stop(self) -> None:
        for task in list(self._filling.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _catch_up(self, whose: Whose) -> bool:
        """Index what is missing; return True when everything committed before is in the index."""
        with anyio.move_on_after(PATIENCE_SECONDS):
            if (earlier := self._filling.get(whose)) is not None:  # begun before what was written last, perhaps
                await asyncio.wait({earlier})
            task = self._filling.get(whose) or self._begin(whose)
            await asyncio.wait({task})
            return not task.cancelled() and task.result()
        return False

    def _begin(self, whose: Whose) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._fill(whose), name="paddock-thread-indexing")
        self._filling[whose] = task
        task.add_done_callback(lambda _: self._filling.pop(whose, None))
        return task

    async def _fill(self, whose: Whose) -> bool:
        try:
            await self._add_missing(whose)
        except (StorageUnavailableError, HostError) as error:  # what is there is found, and the next search tries again
            about = {"action": "storage.index_failed", "error": str(error)}
            _log.warning("conversations could not be indexed for search", extra=about)
            return False
        return True

    async def _add_missing(self, whose: Whose) -> None:
        try:
            if self._settle is not None and whose in self._known:
                await self._add_fresh(whose, self._settle)
            else:
                await self._add_all(whose)
        except (StorageUnavailableError, HostError):
            # Something remembered may be lost: the next search looks by itself.
            self._known.pop(whose, None)
            raise

    async def _add_all(self, whose: Whose) -> None:
        if self._settle is not None:
            await self._settle(list(self._fresh))
        before, forgotten = NO_END, self._forgotten
        while behind := await self._engine.ask(partial(self._behind, whose, before)):
            await self._add(whose, behind)
            before = behind[-1].session_no
        if forgotten == self._forgotten:
            self._known[whose] = None
            if len(self._known) > MAX_USERS:
                del self._known[next(iter(self._known))]

    async def _add_fresh(self, whose: Whose, settle: Settle) -> None:
        async with self._taking:
            fresh = list(self._fresh)
            await settle(fresh)
            self._fresh.clear()  # what is written from now on is remembered anew
            theirs = dict.fromkeys(fresh)
            try:
                behind = await self._engine.ask(partial(_among, whose, fresh))
                mine = {one.session_id for one in behind}
                theirs = {session_id: None for session_id in fresh if session_id not in mine}
            finally:
                self._fresh |= theirs
        for at in range(0, len(behind), self._index.CONVERSATIONS):
            await self._add(whose, behind[at : at + self._index.CONVERSATIONS])

    async def _add(self, whose: Whose, behind: Sequence[Behind]) -> None:
        while behind:
            async with self._places.taken(whose[0]):
                texts = await self._engine.ask(partial(self._next, behind))
                words = await anyio.to_thread.run_sync(self._cut, owner_mark(*whose), texts)
                await self._engine.do(partial(self._put_in, whose, behind, words), durably=False)
            behind = [replace(one, seq=last, titled=True) for one, last in self._more(behind, texts)]

    def _behind(self, whose: Whose, before: int) -> Work[Sequence[Behind]]:
        asked = {"workspace_id": whose[0], "user_id": whose[1], "before": before, "limit": self._index.CONVERSATIONS}
        return [Behind(*row) for row in (yield ask(_BEHIND, **asked))]

    def _next(self, behind: Sequence[Behind]) -> Work[Sequence[Text]]:
        places = packed([(one.session_no, one.seq) for one in behind])
        texts = yield ask(_NEXT, places=places, each=self._index.MESSAGES)
        titles = yield ask(_TITLES, numbers=[one.session_no for one in behind if not one.titled])
        return [Text(*row) for row in (*texts, *titles)]

    def _cut(self, mark: str, texts: Sequence[Text]) -> Mapping[Text, str]:
        return {text: self._index.words_of_text(mark, text.session_no, text.content) for text in texts}

    def _put_in(self, whose: Whose, behind: Sequence[Behind], words: Mapping[Text, str]) -> Work[None]:
        """Index those conversations that are still as they were read. The next search looks at the others again."""
        asked = {"numbers": [one.session_no for one in behind], "workspace_id": whose[0], "user_id": whose[1]}
        yield ask(_BEGIN, **asked)
        held: dict[int, int] = dict((yield ask(_HELD, **asked)))
        titles = {Text(*row) for row in (yield ask(_TITLES, numbers=list(held)))}
        same = titles | (yield from unchanged([text for text in words if text.seq]))
        changed = {text.session_no for text in words if text not in same}
        renamed = {text.session_no for text in titles if text not in words}
        sound = {
            one.session_no: one
            for one in behind
            if held.get(one.session_no) == one.seq and one.session_no not in changed
        }
        texts = [text for text in words if text.session_no in sound]
        yield from self._index.add("thread_search", [(*text.place, words[text]) for text in texts])
        ends = {one.session_no: max(one.head, one.seq) for one in sound.values()}
        ends |= {one.session_no: last for one, last in self._more(behind, texts)}
        yield ask(_REACHED, places=packed(list(ends.items())), titled=list(ends.keys() - renamed))

    def _more(self, behind: Sequence[Behind], texts: Iterable[Text]) -> Sequence[tuple[Behind, int]]:
        seqs: dict[int, list[int]] = {}
        for text in texts:
            if text.seq:
                seqs.setdefault(text.session_no, []).append(text.seq)
        whole = self._index.MESSAGES
        return [(one, max(found)) for one in behind if len(found := seqs.get(one.session_no, ())) == whole]


def _among(whose: Whose, session_ids: Sequence[str]) -> Work[Sequence[Behind]]:
    asked = {"workspace_id": whose[0], "user_id": whose[1], "session_ids": session_ids}
    return [Behind(*row) for row in (yield ask(_AMONG, **asked))]


def _find(index: Index, query: ThreadQuery) -> Work[Sequence[FoundThread]]:
    found: list[FoundThread] = []
    before, done = (NO_END >> 32 if query.before is None else query.before, 0), -1
    while query.phrases and len(found) < query.limit:
        places = yield from index.find_texts(query, before, 2 * query.limit)
        if not places:
            break
        summaries, items = yield from _shown(places)
        for number, seq in places:
            if number == done:
                continue
            summary, item = summaries.get(number), items.get((number, seq))
            if summary is None or not query.takes(summary):
                done = number
            elif contains_all(item.content if item else summary.title or "", query.phrases) and bool(item) == bool(seq):
                found.append(FoundThread(summary, item))
                done = number
                if len(found) == query.limit:
                    break
        number, seq = places[-1]
        before = number, 0 if number == done else seq
    return found


def _shown(places: Sequence[TextPlace]) -> Work[tuple[Mapping[int, SessionSummary], Mapping[TextPlace, TranscriptRow]]]:
    numbers = list(dict.fromkeys(number for number, _ in places))
    summaries = {row.number: row for row in map(_SUMMARIES.read, (yield _SUMMARIES(numbers=numbers)))}
    items: dict[TextPlace, TranscriptRow] = {}
    for number, *row in (yield ask(_ITEMS, places=packed([place for place in places if place[1]]))):
        if number in summaries:
            items[number, row[0]] = TranscriptRow(summaries[number].session_id, *row)
    return summaries, items
