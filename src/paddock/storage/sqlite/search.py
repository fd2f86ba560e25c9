"""Full-text search in SQLite: FTS5 over words that the program cuts, ranked by its BM25.

Every row carries the mark of its conversation or of its user, and every search asks for it: the index looks for the
next row that has all the words, however far away that is, and without the mark it would walk through what others wrote
when words are frequent and never meet. Rows are in order of conversation and item, so the newest hits are at the end.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.ports.knowledge import ChunkFilter, DocumentRow, StoredChunk
from paddock.rules.search.queries import ThreadQuery, TranscriptQuery, owner_mark
from paddock.rules.search.tokens import Phrase, tokens_of
from paddock.storage.search import IndexedTo, TextPlace
from paddock.storage.search.history import FILTERED
from paddock.storage.tables.conversations import ITEMS
from paddock.storage.tables.statements import Values, Work, ask, columns_of

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SEQ = (1 << 32) - 1
_ADD = """
insert or replace into {table} (rowid, tokens) select value ->> 0, value ->> 1 from json_each(:rows)"""
_INDEXED = f"""
select {ITEMS.of("t")} from search s
 cross join transcript t on t.session_no = :number and t.seq = s.rowid - :first
 where s.search match :words and s.rowid > :first and s.rowid < :first + :before {FILTERED}
 order by s.rowid desc limit :limit"""
_TEXTS = """
select rowid from thread_search where thread_search match :words and rowid < :before order by rowid desc limit :limit"""


class SqliteIndex:
    """The `Index` of items and titles."""

    ENOUGH: int = 256
    MAX_TAIL: int = 512
    CONVERSATIONS: int = 8
    MESSAGES: int = 32

    def words_of_item(self, session_no: int, seq: int, content: str) -> str:  # noqa: ARG002 - the index's
        return " ".join((mark_of(session_no), *tokens_of(content)))

    def words_of_text(self, mark: str, session_no: int, content: str) -> str:  # noqa: ARG002 - the index's
        return " ".join((mark, *tokens_of(content)))

    def add(self, table: str, words: Sequence[tuple[int, int, str]]) -> Work[None]:
        rows = [((session_no << 32) + seq, text) for session_no, seq, text in words]
        yield ask(_ADD.format(table=table), rows=json.dumps(rows))

    def find_items(
        self, place: IndexedTo, query: TranscriptQuery, filters: Mapping[str, Any], before: int, limit: int
    ) -> Work[Sequence[Values]]:
        words = f'"{mark_of(place.session_no)}" AND {expression(query.phrases)}'
        asked = {"number": place.session_no, "first": place.session_no << 32, "words": words, "before": before}
        return (yield ask(_INDEXED, **asked, **filters, limit=limit))

    def find_texts(self, query: ThreadQuery, before: TextPlace, limit: int) -> Work[Sequence[TextPlace]]:
        words = f'"{owner_mark(query.workspace_id, query.user_id)}" AND {expression(query.phrases)}'
        end = (min(before[0], _SEQ >> 2) << 32) + before[1]
        return [(row >> 32, row & _SEQ) for (row,) in (yield ask(_TEXTS, words=words, before=end, limit=limit))]


def mark_of(session_no: int) -> str:
    """The mark of a conversation. In a text the sign and the number are two tokens, so no text can have it."""
    return f"#{session_no}"


def expression(phrases: Sequence[Phrase], *, joined: str = " AND ") -> str:
    """Phrases as a full-text expression. Tokens hold no quotes, so nothing in them can be an operator."""
    return joined.join(f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}' for phrase in phrases)


MAX_CANDIDATES = 65_536
EVERYTHING = ChunkFilter()
_ADD_CHUNK = """
insert into knowledge_chunks (kb_no, document_no, position, text, start, "end", page, heading, vector)
values (:kb_no, :document_no, :position, :text, :start, :end, :page, :heading, :vector)
returning (kb_no << 32) + chunk_no"""
_ADD_TOKENS = "insert into knowledge_search (rowid, tokens) values (:number, :tokens)"
# The best of the index first, and only then whether their documents count: joining every hit would cost the most.
_BEST = """
select rowid - :first, -bm25(knowledge_search) as score from knowledge_search
 where knowledge_search match :words and rowid > :first and rowid < :last order by score desc limit :limit"""
_DOCUMENTS = f"""
select c.chunk_no, {columns_of(DocumentRow, "d.")}
  from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = :kb_no and c.chunk_no = any(:numbers::bigint[])"""


class SqliteWords:
    """The index of words. Parts are small, because everybody waits for the one writer."""

    SOURCE_PART_BYTES: int = 262_144
    CHUNKS_PER_COMMIT: int = 16
    DROPPED_PER_COMMIT: int = 64

    def add(self, kb_no: int, document_no: int, chunks: Sequence[StoredChunk]) -> Work[None]:
        for stored in chunks:
            place = {"kb_no": kb_no, "document_no": document_no, "vector": stored.vector}
            [(number,)] = yield ask(_ADD_CHUNK, **place, **msgspec.structs.asdict(stored.chunk))
            yield ask(_ADD_TOKENS, number=number, tokens=stored.tokens)

    def find(
        self, kb_no: int, terms: Sequence[Phrase], limit: int, only: ChunkFilter
    ) -> Work[Sequence[tuple[int, float]]]:
        """Asks for more and more of the best until enough of them count."""
        first, wanted = kb_no << 32, (limit if only == EVERYTHING else 4 * limit) + 16
        where = {"words": expression(terms, joined=" OR "), "first": first, "last": first + (1 << 32)}
        while True:
            best: list[tuple[int, float]] = [*(yield ask(_BEST, **where, limit=wanted))]
            found = (yield from _counting(kb_no, best, only))[:limit]
            if len(found) == limit or len(best) < wanted or wanted >= MAX_CANDIDATES:
                return found
            wanted *= 8


def _counting(kb_no: int, best: Sequence[tuple[int, float]], only: ChunkFilter) -> Work[list[tuple[int, float]]]:
    counting: set[int] = set()
    for at in range(0, len(best), 512):
        numbers = [number for number, _ in best[at : at + 512]]
        for number, *document in (yield ask(_DOCUMENTS, kb_no=kb_no, numbers=numbers)):
            row = DocumentRow(*document)
            if only == EVERYTHING or only.passes(row, msgspec.json.decode(row.metadata or b"{}")):
                counting.add(number)
    return [(number, score) for number, score in best if number in counting]
