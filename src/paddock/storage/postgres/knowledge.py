"""The words of knowledge: how chunks get into the index, and which of them answer a question best.

PostgreSQL has no BM25 of its own. What it has counts how often a word stands in a chunk, with less and less weight for
each time; weighed by how rare the word is in what was found, and by the chunk's length, that is as good as BM25.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from paddock.ports.knowledge import ChunkFilter, DocumentRow, StoredChunk
from paddock.rules.search.ranking import B
from paddock.rules.search.tokens import Phrase
from paddock.storage.postgres.search import asked_for, entries_of
from paddock.storage.tables.knowledge import DOCUMENT
from paddock.storage.tables.statements import Work, ask

# ruff: noqa: S608 - the column lists are our own, values are always bound
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
    """The index of words."""

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
        """The best chunks of documents that count."""
        passing = None if only == ChunkFilter() else (yield from _passing(kb_no, only))
        [(chunks, tokens)] = yield ask(_SIZE, kb_no=kb_no)
        queries = [_quoted(entry) for term in terms for entry in asked_for(term)]
        asked = {"query": f"{_mark(kb_no)} & ({' | '.join(queries)})", "queries": queries, "passing": passing}
        length = max(tokens / max(chunks, 1), 1.0)
        found = yield ask(_BEST, **asked, chunks=chunks, length=length, limit=limit)
        return [(number, score) for number, score in found]


def _passing(kb_no: int, only: ChunkFilter) -> Work[Sequence[int]]:
    names = {
        name: None if some is None else sorted(some)
        for name, some in (
            ("document_ids", only.document_ids),
            ("names", only.names),
            ("media_types", only.media_types),
        )
    }
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
    entries = (f"{_quoted(entry)}:{_places(count)}" for entry, count in Counter(entries_of(words)).items())
    return " ".join((_mark(kb_no), *entries))


def _mark(kb_no: int) -> str:
    return f"'/{kb_no}'"  # no token has such a sign


def _places(count: int) -> str:
    return ",".join(map(str, range(1, min(count, MOST_POSITIONS) + 1)))


def _quoted(entry: str) -> str:
    return "'" + entry.replace("\\", "\\\\").replace("'", "''") + "'"
