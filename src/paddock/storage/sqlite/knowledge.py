"""The words of knowledge in SQLite's full-text index: how chunks get into it, and which of them answer best."""

from collections.abc import Sequence

import msgspec

from paddock.ports.knowledge import ChunkFilter, DocumentRow, StoredChunk
from paddock.rules.search.tokens import Phrase
from paddock.storage.sqlite.search import expression
from paddock.storage.tables.statements import Work, ask, columns_of

# ruff: noqa: S608 - the column lists are our own, values are always bound
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
