"""Search in one conversation: an index for what is old, a look at each item for what is new, one answer.

Every item also carries a mark of its conversation, and every search asks for it: the index looks for the next item that
has all the words, however far away that is, and without the mark it would walk through the conversations before this
one when words are frequent and never meet.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.history_search import TranscriptQuery
from paddock.rules.search.tokens import Phrase, tokens_of
from paddock.rules.values import Value
from paddock.storage.search.in_parts import InParts
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.pool import ReaderPool
from paddock.storage.tables.conversations import ITEMS, PRESENT
from paddock.storage.tables.statements import Values

# ruff: noqa: S608 - the column lists are our own, values are always bound
_PLACE = """
select s.session_no, coalesce(p.seq, 0) from sessions s left join search_progress p on p.session_no = s.session_no
 where s.session_id = ?"""
_MISSING = "select count(*) from (select 1 from transcript where session_no = ? and seq > ? limit ?)"
_NEXT = "select seq, content from transcript where session_no = ? and seq > ? order by seq limit ?"
_TAIL = (
    f"select {ITEMS.columns} from transcript t where session_no = ? and seq > ? {{filters}} {PRESENT} order by seq desc"
)
_INDEXED = f"""
select {ITEMS.of("t")} from search s
 cross join transcript t on t.session_no = ? and t.seq = s.rowid - ?
 where s.search match ? and s.rowid > ? and s.rowid <= ? {{filters}} {PRESENT} order by s.rowid desc limit ?"""
# An item that was erased or deleted since it was read must not come back into the index.
_ADD = """
insert or replace into search (rowid, tokens)
select (session_no << 32) + seq, ?1 from transcript
 where session_no = ?2 and seq = ?3 and octet_length(content) = ?4"""
_REACHED = """
insert into search_progress (session_no, seq) select session_no, ? from sessions where session_no = ? and session_id = ?
on conflict (session_no) do update set seq = excluded.seq where search_progress.seq = ?"""


class Place(Value, frozen=True):
    """Position of a session in the index."""

    session_no: int
    seq: int


class Part(Value, frozen=True):
    """The next items of one conversation, cut into tokens, on their way into the index."""

    session_id: str
    place: Place
    last_seq: int
    items: tuple[Values, ...]
    """tokens, session_no, seq, bytes of the text"""

    def write(self, cursor: Cursor) -> None:
        cursor.executemany(_ADD, self.items)
        cursor.execute(_REACHED, (self.last_seq, self.place.session_no, self.session_id, self.place.seq))


def place_of(connection: Connection, session_id: str) -> Place | None:
    found = connection.execute(_PLACE, (session_id,)).fetchone()
    return Place(*found) if found else None


def workspace_of(connection: Connection, session_id: str) -> str | None:
    found = connection.execute("select workspace_id from sessions where session_id = ?", (session_id,)).fetchone()
    return found[0] if found else None


def missing(connection: Connection, place: Place, enough: int) -> int:
    """How many items are not in the index yet; counted up to `enough`."""
    return connection.execute(_MISSING, (place.session_no, place.seq, enough)).fetchone()[0]


def next_part(connection: Connection, session_id: str, size: int) -> Part | None:
    place = place_of(connection, session_id)
    if place is None:
        return None
    found = connection.execute(_NEXT, (place.session_no, place.seq, size)).fetchall()
    if not found:
        return None
    mark, number = mark_of(place.session_no), place.session_no
    items = tuple((" ".join((mark, *tokens_of(text))), number, seq, len(text.encode())) for seq, text in found)
    return Part(session_id, place, found[-1][0], items)


def mark_of(session_no: int) -> str:
    """The mark of a conversation. In a text the sign and the number are two tokens, so no text can have it."""
    return f"#{session_no}"


def find(connection: Connection, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
    """The newest items that answer the query. What the index does not have is read item by item."""
    place = place_of(connection, session_id)
    if place is None or not query.phrases:
        return []
    filters, values = _filters(query)
    tail = connection.execute(_TAIL.format(filters=filters), (place.session_no, place.seq, *values))
    found = query.scan(TranscriptRow(session_id, *row) for row in tail)
    if len(found) < query.limit and place.seq:
        found += _indexed(connection, session_id, place, query, filters, values, query.limit - len(found))
    return found


def _indexed(
    connection: Connection,
    session_id: str,
    place: Place,
    query: TranscriptQuery,
    filters: str,
    values: Values,
    limit: int,
) -> list[TranscriptRow]:
    first = place.session_no << 32
    words = f'"{mark_of(place.session_no)}" AND {expression(query.phrases)}'
    where = (place.session_no, first, words, first, first + place.seq)
    rows = connection.execute(_INDEXED.format(filters=filters), (*where, *values, limit))
    return [TranscriptRow(session_id, *row) for row in rows]


def _filters(query: TranscriptQuery) -> tuple[str, Values]:
    clauses: list[str] = []
    values: list[object] = []
    if query.roles is not None:
        clauses.append(f"and t.role in ({_marks(len(query.roles))})")
        values += sorted(query.roles)
    if query.kinds is not None:
        pairs = ", ".join("(?, ?)" for _ in query.kinds)
        clauses.append(f"and (t.role, t.item_type) in (values {pairs})" if pairs else "and 0")
        values += [word for pair in sorted(query.kinds) for word in pair]
    if not query.view.all_subthreads:
        clauses.append("and t.subthread_id is ?")
        values.append(query.view.subthread_id)
    if query.before_seq is not None:
        clauses.append("and t.seq < ?")
        values.append(query.before_seq)
    for column, bound in (("t.created_at >", query.after), ("t.created_at <", query.before)):
        if bound is not None:
            clauses.append(f"and {column} ?")
            values.append(bound)
    return " ".join(clauses), tuple(values)


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def expression(phrases: Sequence[Phrase], *, joined: str = " AND ") -> str:
    """Phrases as a full-text expression. Tokens hold no quotes, so nothing in them can be an operator."""
    return joined.join(f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}' for phrase in phrases)


# --- when a conversation gets into the index -------------------------------------------------------------------------

ENOUGH = 256
MAX_TAIL = 512
PART = 64
"""Items per commit: bounds how long the event loop is kept from its other business."""

Perform = Callable[[Callable[[Cursor], None]], Awaitable[None]]
"""Do something inside the next commit, and wait for it."""


class Indexing(InParts):
    """Puts conversations into the index in small parts.

    A search reads up to `MAX_TAIL` items one by one, and when more are missing (after an upgrade, or a restart that
    forgot the counts) it has them indexed first.
    """

    def __init__(self, pool: ReaderPool, perform: Perform) -> None:
        super().__init__(ENOUGH)
        self._pool = pool
        self._perform = perform

    async def find(self, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow]:
        found = await self._pool.ask(partial(_find_when_ready, session_id=session_id, query=query))
        if found is None:
            await self.catch_up(session_id)
            found = await self._pool.ask(partial(find, session_id=session_id, query=query))
        return found

    async def workspace_of(self, session_id: str) -> str | None:
        return await self._pool.ask(partial(workspace_of, session_id=session_id))

    async def add_part(self, session_id: str) -> bool:
        part = await self._pool.ask(partial(next_part, session_id=session_id, size=PART))
        if part is None:
            return False
        await self._perform(part.write)
        return len(part.items) == PART


def _find_when_ready(connection: Connection, session_id: str, query: TranscriptQuery) -> Sequence[TranscriptRow] | None:
    """The answer, or None when too much is missing from the index to be read item by item."""
    place = place_of(connection, session_id)
    if place is not None and missing(connection, place, MAX_TAIL + 1) > MAX_TAIL:
        return None
    return find(connection, session_id, query)
