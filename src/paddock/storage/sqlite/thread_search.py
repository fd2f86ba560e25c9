"""Conversations found by their titles and messages: an index of its own, because the one of `search.py` has only long
conversations in it.

Every row carries the mark of its user, and every search asks for it. Rows are in order of conversation, so the newest
hits are at the end, and a page of them ends the search.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import cast, get_args

from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.forgetting import ItemErased
from paddock.rules.rows.rows import SessionDetailsRow, SessionSummary, TranscriptRow
from paddock.rules.rows.taking_over import SessionSettled
from paddock.rules.search.thread_search import FoundThread, ThreadQuery, owner_mark
from paddock.rules.search.tokens import tokens_of
from paddock.rules.values import Value
from paddock.storage.search.thread_filling import ThreadFilling, Whose
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.engine import bound
from paddock.storage.sqlite.pool import ReaderPool
from paddock.storage.sqlite.search import Perform, expression
from paddock.storage.tables.conversations import ITEMS, PRESENT
from paddock.storage.tables.sessions import SUMMARY
from paddock.storage.tables.statements import Query, Values

# ruff: noqa: S608 - the column lists are our own, values are always bound
MANY = 32
"""Hits of one conversation that are passed over one by one before the index is asked for the next conversation."""
_NO_END = 1 << 62
_SEQ = (1 << 32) - 1

_PLACES = """
select s.session_no, s.session_id, s.head_seq, coalesce(p.seq, 0), coalesce(p.titled, 0)
  from sessions s left join thread_search_progress p on p.session_no = s.session_no
 where s.workspace_id = ? and s.user_id = ?"""
_OF_USER = f"""
{_PLACES} and s.session_no < ? and (p.seq is null or p.seq < s.head_seq or not p.titled)
 order by s.session_no desc limit ?"""
_ONE = f"{_PLACES} and s.session_id = ?"
_NEXT = """
select seq, content from transcript
 where session_no = ? and seq > ? and item_type = 'message' and role in ('user', 'assistant') order by seq limit ?"""
_TITLE = "select title from session_details where session_id = ?"
# What was erased, renamed or deleted since it was read must not come back into the index.
_ADD = """
insert or replace into thread_search (rowid, tokens)
select (t.session_no << 32) + t.seq, ?1 from transcript t join sessions s on s.session_no = t.session_no
 where t.session_no = ?2 and s.session_id = ?3 and t.seq = ?4 and octet_length(t.content) = ?5"""
_CALL = """
insert or replace into thread_search (rowid, tokens)
select s.session_no << 32, ?1 from sessions s join session_details d on d.session_id = s.session_id
 where s.session_no = ?2 and s.session_id = ?3 and d.title = ?4"""
_REACHED = """
insert into thread_search_progress (session_no, seq, titled)
select session_no, ?3, (select title from session_details where session_id = ?2) is ?4 from sessions
 where session_no = ?1 and session_id = ?2
on conflict (session_no) do update set seq = excluded.seq, titled = excluded.titled"""
_HITS = "select rowid from thread_search where thread_search match ? and rowid < ? order by rowid desc"
_FOUND = Query(SessionSummary, f"{SUMMARY} where s.session_no = :number")
_ITEM = f"select {ITEMS.columns} from transcript t where session_no = ? and seq = ? {PRESENT}"


class Behind(Value, frozen=True):
    """A conversation of which something may not be in the index."""

    session_no: int
    session_id: str
    head: int
    seq: int
    titled: int


class Part(Value, frozen=True):
    """Next part for the index, cut into tokens: of several conversations of one user."""

    items: tuple[Values, ...]
    titles: tuple[Values, ...]
    reached: tuple[Values, ...]
    rest: tuple[Behind, ...] = ()
    """What is still missing after this part."""

    def write(self, cursor: Cursor) -> None:
        cursor.executemany(_ADD, self.items)
        cursor.executemany(_CALL, self.titles)
        cursor.executemany(_REACHED, self.reached)


def behind_of(connection: Connection, whose: Whose, before: int, limit: int) -> list[Behind]:
    """Conversations of a user that are not wholly in the index, the newest first."""
    return [Behind(*row) for row in connection.execute(_OF_USER, (*whose, before, limit))]


def among(connection: Connection, whose: Whose, session_ids: Iterable[str]) -> tuple[set[str], list[Behind]]:
    """Those of these conversations that are the user's, and how far each is in the index."""
    found = (connection.execute(_ONE, (*whose, session_id)).fetchone() for session_id in session_ids)
    behind = [Behind(*row) for row in found if row is not None]
    return {one.session_id for one in behind}, behind


def part_of(connection: Connection, whose: Whose, behind: Sequence[Behind], size: int) -> Part:
    """The next messages of these conversations: of as many as `size` of them are needed for."""
    mark, parts, room = owner_mark(*whose), [Part((), (), ())], size
    for done, one in enumerate(behind):
        parts.append(_part(connection, mark, one, room))
        room -= len(parts[-1].items)
        if room <= 0:
            return _together(parts, (*parts[-1].rest, *behind[done + 1 :]))
    return _together(parts, ())


def _together(parts: Sequence[Part], rest: tuple[Behind, ...]) -> Part:
    return Part(
        tuple(item for part in parts for item in part.items),
        tuple(title for part in parts for title in part.titles),
        tuple(place for part in parts for place in part.reached),
        rest,
    )


def _part(connection: Connection, mark: str, one: Behind, room: int) -> Part:
    found = connection.execute(_NEXT, (one.session_no, one.seq, room)).fetchall()
    items = tuple((_words(mark, text), one.session_no, one.session_id, seq, len(text.encode())) for seq, text in found)
    called = connection.execute(_TITLE, (one.session_id,)).fetchone()
    title = called[0] if called else None
    titles = ((_words(mark, title), one.session_no, one.session_id, title),) if title and not one.titled else ()
    last = found[-1][0] if found else one.seq
    more = len(found) == room
    reached = last if more else max(one.head, last)
    rest = (Behind(one.session_no, one.session_id, one.head, last, 1),) if more else ()
    return Part(items, titles, ((one.session_no, one.session_id, reached, title),), rest)


def _words(mark: str, text: str) -> str:
    return " ".join((mark, *tokens_of(text)))


def find(connection: Connection, query: ThreadQuery) -> Sequence[FoundThread]:
    """A page of conversations, the newest first, each with the newest message that answers."""
    found: list[FoundThread] = []
    if not query.phrases:
        return found
    words = f'"{owner_mark(query.workspace_id, query.user_id)}" AND {expression(query.phrases)}'
    before = _NO_END if query.before is None else min(query.before, _NO_END >> 32) << 32
    for one in _threads(connection, query, words, before):
        found.append(one)
        if len(found) == query.limit:
            break
    return found


def _threads(connection: Connection, query: ThreadQuery, words: str, before: int) -> Iterator[FoundThread]:
    while True:
        passed, done, summary = 0, -1, None
        for (rowid,) in connection.execute(_HITS, (words, before)):
            number = rowid >> 32
            if number == done:
                passed += 1
                if passed > MANY:
                    break
                continue
            if summary is None or summary.number != number:
                summary = _summary(connection, number)
            if summary is None or not query.takes(summary):
                passed, done = 0, number
            elif (one := _answer(connection, summary, rowid & _SEQ)) is not None:
                yield one
                passed, done = 0, number
        else:
            return
        before = done << 32


def _answer(connection: Connection, summary: SessionSummary, seq: int) -> FoundThread | None:
    if not seq:
        return FoundThread(summary, None)
    found = connection.execute(_ITEM, (summary.number, seq)).fetchone()
    return FoundThread(summary, TranscriptRow(summary.session_id, *found)) if found else None


def _summary(connection: Connection, number: int) -> SessionSummary | None:
    found = connection.execute(bound(_FOUND.sql).sql, (number,)).fetchone()
    return _FOUND.read(found) if found else None


# --- when the index is filled ----------------------------------------------------------------------------------------

PART = 256
"""Messages per commit: bounds how long others wait for theirs."""
MAX_FRESH = 1024
"""Conversations remembered. When there are more, all is forgotten, and the next search of a user looks by itself."""
MAX_USERS = 4096
Told = TranscriptRow | SessionDetailsRow | ItemErased | SessionSettled
_TOLD = frozenset(get_args(Told))

Settle = Callable[[Sequence[str]], Awaitable[None]]
"""Wait until what was handed in for these conversations is committed."""


class ThreadIndexing(ThreadFilling):
    """Fills the index when a user looks for something, and never before.

    An append only remembers which conversation it was for. The first search of a user since the start looks for
    everything of theirs that is missing, later ones for what was remembered. What is missing is put in, the newest
    first; a search waits a moment for that and then answers from what is there, saying that it is not complete.
    """

    def __init__(self, pool: ReaderPool, perform: Perform, settle: Settle) -> None:
        super().__init__()
        self._pool = pool
        self._perform = perform
        self._settle = settle
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

    async def look_up(self, query: ThreadQuery) -> Sequence[FoundThread]:
        return await self._pool.ask(partial(find, query=query))

    async def add_missing(self, whose: Whose) -> None:
        try:
            await (self._add_fresh(whose) if whose in self._known else self._add_all(whose))
        except (StorageUnavailableError, HostError):
            # Something remembered may be lost: the next search looks by itself.
            self._known.pop(whose, None)
            raise

    async def _add_all(self, whose: Whose) -> None:
        await self._settle(list(self._fresh))
        before, forgotten = _NO_END, self._forgotten
        look = partial(behind_of, whose=whose, limit=PART)
        while behind := await self._pool.ask(partial(look, before=before)):
            await self._add(whose, behind)
            before = behind[-1].session_no
        if forgotten == self._forgotten:
            self._known[whose] = None
            if len(self._known) > MAX_USERS:
                del self._known[next(iter(self._known))]

    async def _add_fresh(self, whose: Whose) -> None:
        async with self._taking:
            fresh = list(self._fresh)
            await self._settle(fresh)
            self._fresh.clear()  # what is written from now on is remembered anew
            theirs = dict.fromkeys(fresh)
            try:
                mine, behind = await self._pool.ask(partial(among, whose=whose, session_ids=fresh))
                theirs = {session_id: None for session_id in fresh if session_id not in mine}
            finally:
                self._fresh |= theirs
        await self._add(whose, behind)

    async def _add(self, whose: Whose, behind: Sequence[Behind]) -> None:
        while behind:
            async with self.turn_of(whose):
                part = await self._pool.ask(partial(part_of, whose=whose, behind=behind, size=PART))
                await self._perform(part.write)
            behind = part.rest
