"""Full-text search in PostgreSQL: arrays of words that the program cuts, `tsvector` for knowledge.

An index says which texts hold all the words asked for; whether they stand together, as in a phrase, and how a word
begins, is looked up in the text. Every row also carries two marks: its conversation or its user, and the stretch it is
in. The newest stretches are asked first, so a word that everybody uses costs no more than a rare one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from paddock.ports.knowledge import ChunkFilter, DocumentRow, StoredChunk
from paddock.rules.rows.rows import TranscriptRow
from paddock.rules.search.passages import B
from paddock.rules.search.queries import MIN_BEGINNING, ThreadQuery, TranscriptQuery, owner_mark
from paddock.rules.search.tokens import Phrase, tokens_of
from paddock.storage.search import IndexedTo, TextPlace
from paddock.storage.search.history import FILTERED
from paddock.storage.tables.conversations import ITEMS
from paddock.storage.tables.knowledge import DOCUMENT
from paddock.storage.tables.statements import Values, Work, ask

# ruff: noqa: S608 - the column lists are our own, values are always bound
STRETCH = 2048
"""Numbers of a conversation's log that share a mark."""
THREADS = 128
"""Conversations, of whomever, that share a mark."""
WIDTHS = (2, 16)
"""So many stretches of conversations are asked first, and so many then."""
_ADD = """
insert into {table} (session_no, seq, tokens)
select session_no, seq, string_to_array(words, ' ')
  from unnest(:sessions::bigint[], :seqs::bigint[], :words::text[]) as given (session_no, seq, words)
on conflict (session_no, seq) do update set tokens = excluded.tokens"""
# Materialized: else the newest items are walked one by one in the hope to meet a hit. The hits are looked at from the
# newest on, one by one (`offset 0` keeps it so), and no further than is needed: a word may be in thousands of items.
_INDEXED = f"""
with hit as materialized (
  select seq from search
   where tokens @> :entries::text[] and tokens && :marks::text[]
     and seq > :after and seq < :before)
select item.* from (select seq from hit order by seq desc) as newest cross join lateral (
  select {ITEMS.of("t")} from transcript t where t.session_no = :number and t.seq = newest.seq {FILTERED} offset 0
) as item
 order by newest.seq desc limit :limit"""
_NEWEST = """
select max(session_no) from sessions
 where workspace_id = :workspace_id and user_id = :user_id and session_no <= :number"""
_TEXTS = """
with hit as materialized (
  select session_no, seq from thread_search
   where tokens @> :entries::text[] and tokens && :marks::text[] and (session_no, seq) < (:number, :seq)
     and session_no >= :first)
select session_no, seq from hit order by session_no desc, seq desc limit :limit"""


class PostgresIndex:
    """The `Index` of items and titles."""

    ENOUGH: int = 128
    MAX_TAIL: int = 256
    CONVERSATIONS: int = 32
    MESSAGES: int = 64

    def words_of_item(self, session_no: int, seq: int, content: str) -> str:
        marks = _conversation(session_no), _stretch(session_no, seq // STRETCH)
        return " ".join(dict.fromkeys((*marks, *entries_of(tokens_of(content)))))

    def words_of_text(self, mark: str, session_no: int, content: str) -> str:
        marks = mark, f"{mark}/{session_no // THREADS}"
        return " ".join(dict.fromkeys((*marks, *entries_of(tokens_of(content), _beginning_of_title))))

    def add(self, table: str, words: Sequence[tuple[int, int, str]]) -> Work[None]:
        if words:
            sessions, seqs, texts = zip(*words, strict=True)
            yield ask(_ADD.format(table=table), sessions=sessions, seqs=seqs, words=texts)

    def find_items(
        self, place: IndexedTo, query: TranscriptQuery, filters: Mapping[str, Any], before: int, limit: int
    ) -> Work[Sequence[Values]]:
        newest = place.seq // STRETCH
        first = max(newest - 1, 0)
        near = [_stretch(place.session_no, number) for number in range(first, newest + 1)]
        start = first * STRETCH
        found = yield from _look_up(place, query, filters, near, (start - 1, before), limit)
        everywhere, rest = [_conversation(place.session_no)], (-1, min(start, before))
        more = yield from _look_up(place, query, filters, everywhere, rest, limit - len(found))
        return [*found, *more]

    def find_texts(self, query: ThreadQuery, before: TextPlace, limit: int) -> Work[Sequence[TextPlace]]:
        """Few stretches first, then more, then all that is left, until there is something."""
        whose = {"workspace_id": query.workspace_id, "user_id": query.user_id}
        [(newest,)] = yield ask(_NEWEST, **whose, number=before[0] if before[1] else before[0] - 1)
        if newest is None:
            return []
        mark = owner_mark(query.workspace_id, query.user_id)
        number, seq = min(before, (newest + 1, 0))
        found: Sequence[Any] = ()
        for marks, first in _spans(mark, newest // THREADS):
            asked = {"entries": _entries_for(query.phrases, _beginning_of_title), "marks": marks, "limit": limit}
            found = yield ask(_TEXTS, **asked, number=number, seq=seq, first=first)
            if found:
                break
        return [(session_no, at) for session_no, at in found]


def _look_up(
    place: IndexedTo,
    query: TranscriptQuery,
    filters: Mapping[str, Any],
    marks: Sequence[str],
    between: tuple[int, int],
    limit: int,
) -> Work[Sequence[Values]]:
    asked = {**filters, "number": place.session_no, "entries": _entries_for(query.phrases), "marks": marks}
    (after, before), wanted, found = between, 0, list[Values]()
    while len(found) < limit and before > after + 1:
        wanted = max(limit - len(found), wanted * 4)
        rows = yield ask(_INDEXED, **asked, after=after, before=before, limit=wanted)
        found += [row for row in rows if query.answered_by(TranscriptRow("", *row))]
        if len(rows) < wanted:
            break
        before = rows[-1][0]
    return found[: max(limit, 0)]


def _spans(mark: str, last: int) -> Iterator[tuple[list[str], int]]:
    for width in WIDTHS:
        first = max(last - width + 1, 0)
        yield [f"{mark}/{number}" for number in range(first, last + 1)], first * THREADS
        if not first:
            return
    yield [mark], 0


def _conversation(session_no: int) -> str:
    return f"/{session_no}"


def _stretch(session_no: int, number: int) -> str:
    return f"/{session_no}/{number}"


def _beginning(token: str) -> str | None:
    """The mark of how a token begins: a single character of a script without spaces is asked for by it."""
    return None if token.isascii() else f"^{token[0]}"  # no token has such a sign


def _beginning_of_title(token: str) -> str | None:
    """The mark of the first letters of a word: people search for conversations while they type."""
    return f"^{token[:MIN_BEGINNING]}" if len(token) >= MIN_BEGINNING else _beginning(token)


Beginning = Callable[[str], str | None]


def entries_of(tokens: Iterable[str], beginning: Beginning = _beginning) -> Iterator[str]:
    """Tokens, and the mark of how each of them begins."""
    for token in tokens:
        yield token
        if (mark := beginning(token)) is not None:
            yield mark


def entries_for(phrase: Phrase, beginning: Beginning = _beginning) -> Sequence[str]:
    """Entries that a text must have in the index to hold this phrase."""
    *first, last = phrase.tokens
    return [*first, (beginning(last) or last) if phrase.prefix else last]


def _entries_for(phrases: Sequence[Phrase], beginning: Beginning = _beginning) -> list[str]:
    return list(dict.fromkeys(entry for phrase in phrases for entry in entries_for(phrase, beginning)))


MOST_POSITIONS = 255
"""As many places of one word as the database keeps."""

_ADD_CHUNKS = """
with added as (
  insert into knowledge_chunks (kb_no, document_no, position, text, start, "end", page, heading, vector)
  select :kb_no, :document_no, * from unnest(:position::bigint[], :text::text[], :start::bigint[], :end::bigint[],
                                             :page::bigint[], :heading::text[], :vector::bytea[])
  returning chunk_no, position)
insert into knowledge_words (chunk_no, document_no, length, tokens)
select chunk_no, :document_no, length, tokens::tsvector from added
  join unnest(:position::bigint[], :length::bigint[], :tokens::text[]) as given (position, length, tokens)
    using (position)"""
_PASSING = f"""
select document_no, {DOCUMENT} from knowledge_documents where kb_no = :kb_no and ready
   and (:document_ids::text[] is null or document_id = any(:document_ids))
   and (:names::text[] is null or name = any(:names))
   and (:media_types::text[] is null or media_type = any(:media_types))"""
_SIZE = """
select coalesce(sum(chunk_count), 0)::float8, coalesce(sum(token_count), 0)::float8 from knowledge_documents
 where kb_no = :kb_no and ready"""
# The words are unpacked once (`||`), and not again for each term. Without a list of documents all that are ready count.
_BEST = f"""
with hit as materialized (
  select w.chunk_no, w.length, w.tokens || ''::tsvector as tokens from knowledge_words w
    join knowledge_documents d on d.document_no = w.document_no and d.ready
   where w.tokens @@ :query::tsquery and (:passing::bigint[] is null or w.document_no = any(:passing))),
term as materialized (
  select given.query::tsquery as query,
         ln(1 + (greatest(:chunks::float8, found.count) - found.count + 0.5) / (found.count + 0.5)) as weight
    from unnest(:queries::text[]) as given (query),
         lateral (select count(*) from hit where hit.tokens @@ given.query::tsquery) as found)
select chunk_no, sum(term.weight * ts_rank(tokens, term.query)) / ({1 - B} + {B} * length / :length::float8) as score
  from hit join term on hit.tokens @@ term.query
 group by chunk_no, length order by score desc, chunk_no limit :limit"""


class PostgresWords:
    """The index of words.

    PostgreSQL has no BM25 of its own. What it has counts how often a word stands in a chunk, with less and less weight
    for each time; weighed by how rare the word is in what was found, and by the chunk's length, that is as good.
    """

    SOURCE_PART_BYTES: int = 1_048_576
    CHUNKS_PER_COMMIT: int = 64
    DROPPED_PER_COMMIT: int = 256

    def add(self, kb_no: int, document_no: int, chunks: Sequence[StoredChunk]) -> Work[None]:
        rows = [(*msgspec.structs.astuple(one.chunk), one.vector) for one in chunks]
        names = (*chunks[0].chunk.__struct_fields__, "vector")
        length, tokens = columns(kb_no, [one.tokens for one in chunks])
        given = dict(zip(names, zip(*rows, strict=True), strict=True))
        yield ask(_ADD_CHUNKS, kb_no=kb_no, document_no=document_no, **given, length=length, tokens=tokens)

    def find(
        self, kb_no: int, terms: Sequence[Phrase], limit: int, only: ChunkFilter
    ) -> Work[Sequence[tuple[int, float]]]:
        passing = None if only == ChunkFilter() else (yield from _passing(kb_no, only))
        [(chunks, tokens)] = yield ask(_SIZE, kb_no=kb_no)
        queries = [_lexeme(entry) for term in terms for entry in entries_for(term)]
        asked = {"query": f"{_base(kb_no)} & ({' | '.join(queries)})", "queries": queries, "passing": passing}
        length = max(tokens / max(chunks, 1), 1.0)
        found = yield ask(_BEST, **asked, chunks=chunks, length=length, limit=limit)
        return [(number, score) for number, score in found]


def _passing(kb_no: int, only: ChunkFilter) -> Work[Sequence[int]]:
    asked = {name: getattr(only, name) for name in ("document_ids", "names", "media_types")}
    names = {name: None if some is None else sorted(some) for name, some in asked.items()}
    documents = [(number, DocumentRow(*row)) for number, *row in (yield ask(_PASSING, kb_no=kb_no, **names))]
    return [
        number
        for number, document in documents
        if only.passes(document, msgspec.json.decode(document.metadata or b"{}"))
    ]


def columns(kb_no: int, tokens: Sequence[str]) -> tuple[Sequence[int], Sequence[str]]:
    """How many tokens each chunk has, and its tokens as the database's own type."""
    cut = [text.split() for text in tokens]
    return [len(words) for words in cut], [_vector(kb_no, words) for words in cut]


def _vector(kb_no: int, words: Sequence[str]) -> str:
    entries = (f"{_lexeme(entry)}:{_positions(count)}" for entry, count in Counter(entries_of(words)).items())
    return " ".join((_base(kb_no), *entries))


def _base(kb_no: int) -> str:
    return f"'/{kb_no}'"  # no token has such a sign


def _positions(count: int) -> str:
    return ",".join(map(str, range(1, min(count, MOST_POSITIONS) + 1)))


def _lexeme(entry: str) -> str:
    return "'" + entry.replace("\\", "\\\\").replace("'", "''") + "'"
