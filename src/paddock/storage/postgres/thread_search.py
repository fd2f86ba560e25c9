"""Conversations found by their titles and messages: an index of its own, because the one of `search.py` has only long
conversations in it.

The index says which texts hold all the words asked for; whether they stand together, and how a word begins, is looked
up in the text. Every text carries two marks: its user, and the stretch of conversations it is in. The newest stretches
are asked first, so a word that somebody uses in every message costs no more than a rare one.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from paddock.rules.rows.rows import SessionSummary, TranscriptRow
from paddock.rules.search.thread_search import MIN_BEGINNING, FoundThread, ThreadQuery, owner_mark
from paddock.rules.search.tokens import Phrase, matches, tokens_of
from paddock.rules.values import Value
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import Reader
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.search.thread_filling import ThreadFilling, Whose
from paddock.storage.tables.conversations import ITEMS, PRESENT
from paddock.storage.tables.sessions import SUMMARIZED

# ruff: noqa: S608 - the column lists are our own, values are always bound
STRETCH = 128
"""Conversations, of whomever, that share a mark."""
WIDTHS = (2, 16)
MESSAGES = 64
"""Messages of one conversation that are indexed in one commit."""
MOST = 512
_NO_END = 1 << 62
_SAID = "item_type = 'message' and role in ('user', 'assistant')"

_BEHIND = """
select s.session_no, s.head_seq from sessions s
  left join thread_search_progress p on p.session_no = s.session_no
 where s.workspace_id = $1 and s.user_id = $2 and s.session_no < $3
   and (p.seq is null or p.seq < s.head_seq or not p.titled)
 order by s.session_no desc limit $4"""
_BEGIN = """
insert into thread_search_progress (session_no, seq, titled)
select session_no, 0, false from sessions where session_no = any($1::bigint[]) on conflict do nothing"""
# Held until the commit: nobody else fills the same, and nobody renames or erases what is just on its way in.
_PLACES = """
select session_no, seq, titled from thread_search_progress where session_no = any($1::bigint[])
 order by session_no for update"""
_NEXT = f"""
select item.* from unnest($1::bigint[], $2::bigint[]) as place (session_no, seq) cross join lateral (
  select t.session_no, t.seq, t.content from transcript t
   where t.session_no = place.session_no and t.seq > place.seq and {_SAID} order by t.seq limit {MESSAGES} for share
) as item"""
_TITLES = """
select s.session_no, 0, d.title from sessions s join session_details d on d.session_id = s.session_id
 where s.session_no = any($1::bigint[]) and d.title <> ''"""
_ADD = """
insert into thread_search (session_no, seq, tokens)
select session_no, seq, string_to_array(words, ' ')
  from unnest($1::bigint[], $2::bigint[], $3::text[]) as given (session_no, seq, words)
on conflict (session_no, seq) do update set tokens = excluded.tokens"""
_REACHED = """
update thread_search_progress p set seq = given.seq, titled = true
  from unnest($1::bigint[], $2::bigint[]) as given (session_no, seq) where p.session_no = given.session_no"""
_NEWEST = "select max(session_no) from sessions where workspace_id = $1 and user_id = $2 and session_no < $3"
_COLUMNS = ITEMS.of("t")
# Materialized: else the newest texts are walked one by one in the hope to meet a hit, or all hits are looked at.
_HITS = f"""
with hit as materialized (
  select session_no, seq from thread_search
   where tokens @> $1::text[] and tokens && $2::text[] and (session_no, seq) < ($3, $4) and session_no >= $5),
newest as materialized (select session_no, seq from hit order by session_no desc, seq desc limit $6)
select newest.session_no, newest.seq, {SUMMARIZED}, {_COLUMNS}
  from newest join sessions s on s.session_no = newest.session_no
  left join session_details d on d.session_id = s.session_id
  left join lateral (
    select * from transcript t where t.session_no = newest.session_no and t.seq = newest.seq {PRESENT} offset 0
  ) as t on true
 order by newest.session_no desc, newest.seq desc"""
_SUMMARY, _FOUND = slice(2, 14), slice(14, None)


class Behind(Value, frozen=True):
    """A conversation of which something is not in the index."""

    session_no: int
    head: int


# --- into the index --------------------------------------------------------------------------------------------------


async def behind_of(connection: Connection, whose: Whose, before: int, limit: int) -> list[Behind]:
    """Conversations of a user that are not wholly in the index, the newest first."""
    return [Behind(*row) for row in await connection.fetch(_BEHIND, *whose, before, limit)]


async def add_part(connection: Connection, whose: Whose, behind: Sequence[Behind]) -> list[Behind]:
    """Index what comes next of these conversations, inside a transaction; those of which more may be missing."""
    numbers = [one.session_no for one in behind]
    await connection.fetch(_BEGIN, numbers)
    places = {row[0]: (row[1], row[2]) for row in await connection.fetch(_PLACES, numbers)}
    behind = [one for one in behind if one.session_no in places]  # others are deleted by now
    numbers = [one.session_no for one in behind]
    items = await connection.fetch(_NEXT, numbers, [places[number][0] for number in numbers])
    titles = await connection.fetch(_TITLES, [number for number in numbers if not places[number][1]])
    texts = [(row[0], row[1], row[2]) for row in (*items, *titles)]
    words = await anyio.to_thread.run_sync(_words, owner_mark(*whose), texts)
    await connection.fetch(_ADD, [text[0] for text in texts], [text[1] for text in texts], words)
    found = {one.session_no: [row[1] for row in items if row[0] == one.session_no] for one in behind}
    reached = [_reached(one, found[one.session_no], places[one.session_no][0]) for one in behind]
    await connection.fetch(_REACHED, numbers, reached)
    return [one for one in behind if len(found[one.session_no]) == MESSAGES]


def _reached(one: Behind, found: Sequence[int], before: int) -> int:
    if len(found) == MESSAGES:
        return max(found)
    return max(one.head, before, *found)


def _words(mark: str, texts: Sequence[tuple[int, int, str]]) -> list[str]:
    return [" ".join(dict.fromkeys(_entries(mark, number, text))) for number, _, text in texts]


def _entries(mark: str, session_no: int, text: str) -> Iterator[str]:
    yield mark
    yield _stretch(mark, session_no // STRETCH)
    for token in tokens_of(text):
        yield token
        if (beginning := _beginning(token)) is not None:
            yield beginning


def _beginning(token: str) -> str | None:
    """How a token begins: a single character of a script without spaces, the first letters of a word."""
    if len(token) >= MIN_BEGINNING:
        return f"^{token[:MIN_BEGINNING]}"  # no token has such a sign
    return None if token.isascii() else f"^{token[0]}"


def _stretch(mark: str, number: int) -> str:
    return f"{mark}/{number}"


# --- out of it -------------------------------------------------------------------------------------------------------


async def find(connection: Connection, query: ThreadQuery) -> Sequence[FoundThread]:
    """A page of conversations, the newest first, each with the newest message that answers."""
    before = _NO_END if query.before is None else query.before
    newest = await connection.fetchval(_NEWEST, query.workspace_id, query.user_id, before)
    if newest is None or not query.phrases:
        return []
    search = _Search(connection, query)
    mark, before = owner_mark(query.workspace_id, query.user_id), newest + 1
    for marks, first in _spans(mark, newest // STRETCH):
        await search.look_up(marks, first, before)
        before = first
    return search.found


def _spans(mark: str, last: int) -> Iterator[tuple[list[str], int]]:
    """Which marks to ask for, and the first conversation that may have them: few, then more, then all that is left."""
    for width in WIDTHS:
        first = max(last - width + 1, 0)
        yield [_stretch(mark, number) for number in range(first, last + 1)], first * STRETCH
        last = first - 1
        if last < 0:
            return
    yield [mark], 0


def asked_for(phrase: Phrase) -> Sequence[str]:
    """Tokens a text must have in the index to hold this phrase."""
    *first, last = phrase.tokens
    return [*first, (_beginning(last) or last) if phrase.prefix else last]


class _Search:
    def __init__(self, connection: Connection, query: ThreadQuery) -> None:
        self.found: list[FoundThread] = []
        self._connection = connection
        self._query = query
        entries = dict.fromkeys(entry for phrase in query.phrases for entry in asked_for(phrase))
        self._entries = escaped_column(list(entries))

    async def look_up(self, marks: Sequence[str], first: int, before: int) -> None:
        """Conversations between two numbers, the newest first, until there are enough."""
        place, wanted = (before, 0), 2 * self._query.limit
        while place > (first, 0) and len(self.found) < self._query.limit:
            bounds = (self._entries, list(marks), *place, first, wanted)
            rows = await self._connection.fetch(_HITS, *bounds)
            for row in rows:
                place = (row[0], 0 if self._take(row) else row[1])
            if len(rows) < wanted:
                return
            wanted = min(2 * wanted, MOST)

    def _take(self, row: Any) -> bool:
        """Keep it if it answers; whether no more need be seen of this conversation."""
        summary = SessionSummary(*row[_SUMMARY])
        if not self._query.takes(summary) or (self.found and self.found[-1].summary.number == summary.number):
            return True
        item = TranscriptRow(summary.session_id, *row[_FOUND]) if row[_FOUND][0] is not None else None
        text = item.content if item else summary.title or ""
        if len(self.found) < self._query.limit and bool(item) == bool(row[1]) and matches(text, self._query.phrases):
            self.found.append(FoundThread(summary, item))
            return True
        return False


# --- when the index is filled ----------------------------------------------------------------------------------------

PART = 32
"""Conversations per commit."""


class ThreadIndexing(ThreadFilling):
    """Fills the index when a user looks for something, and never before.

    Other hosts write too, so every search looks for what is missing of its user's conversations and has it put in, the
    newest first.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader

    async def look_up(self, query: ThreadQuery) -> Sequence[FoundThread]:
        return await self._reader.ask(partial(find, query=query))

    async def add_missing(self, whose: Whose) -> None:
        before = _NO_END
        look = partial(behind_of, whose=whose, limit=PART)
        while behind := await self._reader.ask(partial(look, before=before)):
            before = behind[-1].session_no
            while behind:
                add = partial(add_part, whose=whose, behind=behind)
                async with self.turn_of(whose):
                    behind = await self._reader.perform(add, durably=False)
