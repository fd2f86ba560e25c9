"""Search in one conversation: an index for what is old, a look at each item for what is new, one answer.

The index says which items hold all the words asked for; whether they stand together, as in a phrase, is looked up in
the item. Every item also carries two marks: its conversation, and the stretch of the conversation it is in. The newest
stretches are asked first, so a word that everybody uses costs no more than a rare one.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import anyio.to_thread

from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.history_search import TranscriptQuery
from paddock.rules.search.tokens import Phrase, tokens_of
from paddock.rules.values import Value
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import Reader
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.search.in_parts import InParts
from paddock.storage.tables.conversations import ITEMS, PRESENT

# ruff: noqa: S608 - the column lists are our own, values are always bound
STRETCH = 2048
"""Numbers of a conversation's log that share a mark."""
PAGE = 64
"""Items that are not indexed yet and are read at once."""
_NO_END = 1 << 62

_PLACE = """
select s.session_no, reached.seq,
       (select count(*) from (select 1 from transcript t where t.session_no = s.session_no and t.seq > reached.seq
         limit $2) as missing)
  from sessions s left join search_progress p on p.session_no = s.session_no, lateral (select coalesce(p.seq, 0) as seq)
       as reached
 where s.session_id = $1"""
_NUMBER = "select session_no from sessions where session_id = $1"
_FILTERS = f"""
   {PRESENT}
   and ($4::text[] is null or t.role = any($4)) and ($5::text[] is null or t.role || ' ' || t.item_type = any($5))
   and ($6::float8 is null or t.created_at > $6) and ($7::float8 is null or t.created_at < $7)
   and ($8::bool or t.subthread_id is not distinct from $9::text)"""
_COLUMNS = ITEMS.of("t")
_TAIL = f"""
select {_COLUMNS} from transcript t where t.session_no = $1 and t.seq > $2 and t.seq < $3 {_FILTERS}
 order by t.seq desc limit $10"""
# Materialized: else the newest items are walked one by one in the hope to meet a hit. The hits are looked at from the
# newest on, one by one (`offset 0` keeps it so), and no further than is needed: a word may be in thousands of items.
_INDEXED = f"""
with hit as materialized (
  select seq from search where tokens @> $10::text[] and tokens && $11::text[] and seq > $2 and seq < $3)
select item.* from (select seq from hit order by seq desc) as newest cross join lateral (
  select {_COLUMNS} from transcript t where t.session_no = $1 and t.seq = newest.seq {_FILTERS} offset 0) as item
 order by newest.seq desc limit $12"""

_BEGIN = "insert into search_progress (session_no, seq) values ($1, 0) on conflict do nothing"
_REACHED = "select seq from search_progress where session_no = $1 for update"
_NEXT = "select seq, content from transcript where session_no = $1 and seq > $2 order by seq limit $3 for share"
_ADD = """
insert into search (session_no, seq, tokens)
select $1, seq, string_to_array(words, ' ') from unnest($2::bigint[], $3::text[]) as given (seq, words)
on conflict (session_no, seq) do update set tokens = excluded.tokens"""
_REACH = "update search_progress set seq = $2 where session_no = $1"

Filters = tuple[Any, Any, Any, Any, Any, Any]


class Place(Value, frozen=True):
    """Position of a session in the index."""

    session_no: int
    seq: int
    missing: int
    """How many items are not in it yet; counted up to as many as was asked."""


async def place_of(connection: Connection, session_id: str, enough: int) -> Place | None:
    found = await connection.fetchrow(_PLACE, session_id, enough)
    return Place(*found) if found else None


async def workspace_of(connection: Connection, session_id: str) -> str | None:
    return await connection.fetchval("select workspace_id from sessions where session_id = $1", session_id)


# --- into the index --------------------------------------------------------------------------------------------------


async def add_part(connection: Connection, session_id: str, size: int) -> bool:
    """Index the next items of a conversation, inside a transaction; whether there may be more.

    The items are held meanwhile, so that nobody erases one whose words are just on their way into the index.
    """
    session_no = await connection.fetchval(_NUMBER, session_id)
    if session_no is None:
        return False
    await connection.fetch(_BEGIN, session_no)
    reached = await connection.fetchval(_REACHED, session_no)
    found = await connection.fetch(_NEXT, session_no, reached, size)
    if found:
        seqs = [row[0] for row in found]
        words = await anyio.to_thread.run_sync(_words, session_no, [(row[0], row[1]) for row in found])
        await connection.fetch(_ADD, session_no, seqs, words)
        await connection.fetch(_REACH, session_no, seqs[-1])
    return len(found) == size


def _words(session_no: int, items: Sequence[tuple[int, str]]) -> list[str]:
    return [" ".join(dict.fromkeys(_entries(session_no, seq, text))) for seq, text in items]


def _entries(session_no: int, seq: int, text: str) -> Iterator[str]:
    yield _conversation(session_no)
    yield _stretch(session_no, seq // STRETCH)
    yield from entries_of(tokens_of(text))


def entries_of(tokens: Iterable[str]) -> Iterator[str]:
    """Tokens, and for each the mark of how it begins: a single character is asked for by that."""
    for token in tokens:
        yield token
        if not token.isascii():
            yield _beginning(token[0])


def asked_for(phrase: Phrase) -> Sequence[str]:
    """Tokens a text must have in the index to hold this phrase."""
    *first, last = phrase.tokens
    return [*first, _beginning(last) if phrase.prefix else last]


def _beginning(character: str) -> str:
    return f"^{character}"  # no token has such a sign


def _conversation(session_no: int) -> str:
    return f"/{session_no}"


def _stretch(session_no: int, number: int) -> str:
    return f"/{session_no}/{number}"


# --- out of it -------------------------------------------------------------------------------------------------------


async def find(
    connection: Connection, session_id: str, query: TranscriptQuery, most: int | None = None
) -> Sequence[TranscriptRow] | None:
    """The newest items that answer the query. What the index does not have is read item by item; None when that would
    be more than `most`.
    """
    place = await place_of(connection, session_id, 1 if most is None else most + 1)
    if place is None or not query.phrases:
        return []
    if most is not None and place.missing > most:
        return None
    search = _Search(connection, session_id, place, query)
    if place.missing:
        await search.read_tail()
    if place.seq:
        newest = place.seq // STRETCH
        start = max(newest - 1, 0) * STRETCH
        near = [_stretch(place.session_no, number) for number in range(max(newest - 1, 0), newest + 1)]
        upper = min(place.seq + 1, _NO_END if query.before_seq is None else query.before_seq)
        await search.look_up(near, start - 1, upper)
        await search.look_up([_conversation(place.session_no)], -1, min(start, upper))
    return search.found


class _Search:
    def __init__(self, connection: Connection, session_id: str, place: Place, query: TranscriptQuery) -> None:
        self.found: list[TranscriptRow] = []
        self._connection = connection
        self._session_id = session_id
        self._place = place
        self._query = query
        self._filters = _filters(query)

    async def read_tail(self) -> None:
        before = _NO_END if self._query.before_seq is None else self._query.before_seq
        rows = [None] * PAGE
        while len(self.found) < self._query.limit and len(rows) == PAGE:
            where = (self._place.session_no, self._place.seq, before, *self._filters)
            rows = await self._connection.fetch(_TAIL, *where, PAGE)
            before = self._take(rows)

    async def look_up(self, marks: Sequence[str], after: int, before: int) -> None:
        """Items between two places that have all the words, the newest first, until there are enough."""
        entries = list(dict.fromkeys(entry for phrase in self._query.phrases for entry in asked_for(phrase)))
        wanted = 0
        while (missing := self._query.limit - len(self.found)) > 0 and before > after + 1:
            wanted = max(missing, wanted * 4)
            where = (self._place.session_no, after, before, *self._filters)
            rows = await self._connection.fetch(_INDEXED, *where, entries, list(marks), wanted)
            before = self._take(rows)
            if len(rows) < wanted:
                return

    def _take(self, rows: Sequence[Any]) -> int:
        """Keep those that answer the query; the place of the last one looked at."""
        items = [TranscriptRow(self._session_id, *row) for row in rows]
        self.found += self._query.scan(items)[: self._query.limit - len(self.found)]
        return items[-1].seq if items else 0


def _filters(query: TranscriptQuery) -> Filters:
    roles = None if query.roles is None else escaped_column(sorted(query.roles))
    pairs = None if query.kinds is None else sorted(f"{role} {kind}" for role, kind in query.kinds)
    view = query.view
    return (
        roles,
        None if pairs is None else escaped_column(pairs),
        query.after,
        query.before,
        view.all_subthreads,
        view.subthread_id,
    )


# --- when a conversation gets into the index -------------------------------------------------------------------------

ENOUGH = 128
MAX_TAIL = 256
PART = 64
"""Items per commit."""


class Indexing(InParts):
    """Puts conversations into the index in small parts.

    A search reads up to `MAX_TAIL` items one by one, and when more are missing (after an upgrade, or a restart that
    forgot the counts) it has them indexed first.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__(ENOUGH)
        self._reader = reader

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        look = partial(find, session_id=session_id, query=query)
        found = await self._reader.ask(partial(look, most=MAX_TAIL))
        if found is None:
            await self.catch_up(session_id)
            found = await self._reader.ask(look)
        return found or []

    async def workspace_of(self, session_id: str) -> str | None:
        return await self._reader.ask(partial(workspace_of, session_id=session_id))

    async def add_part(self, session_id: str) -> bool:
        """A part that a crash forgets is made again."""
        add = partial(add_part, session_id=session_id, size=PART)
        return await self._reader.perform(add, durably=False)
