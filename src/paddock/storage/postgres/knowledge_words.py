"""The words of knowledge: how chunks get into the index, and which of them answer a question best.

PostgreSQL has no BM25 of its own. What it has counts how often a word stands in a chunk, with less and less weight for
each time; weighed by how rare the word is in what was found, and by the chunk's length, that is as good as BM25.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from paddock.ports.knowledge import ChunkFilter, DocumentRow
from paddock.rules.search.ranking import B
from paddock.rules.search.tokens import Phrase
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.knowledge_queries import DOCUMENT
from paddock.storage.postgres.search import asked_for, entries_of
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
MOST_POSITIONS = 255
"""As many places of one word as the database keeps."""

_PASSING = f"""
select document_no, {DOCUMENT} from knowledge_documents where kb_no = $1 and ready
   and ($2::text[] is null or document_id = any($2)) and ($3::text[] is null or name = any($3))
   and ($4::text[] is null or media_type = any($4))"""
_SIZE = """
select coalesce(sum(chunk_count), 0)::float8, coalesce(sum(token_count), 0)::float8 from knowledge_documents
 where kb_no = $1 and ready"""
# The words are unpacked once (`||`), and not again for each term. Without a list of documents all that are ready count.
_BEST = f"""
with hit as materialized (
  select w.chunk_no, w.length, w.tokens || ''::tsvector as tokens from knowledge_words w
    join knowledge_documents d on d.document_no = w.document_no and d.ready
   where w.tokens @@ $1::tsquery and ($2::bigint[] is null or w.document_no = any($2))),
term as materialized (
  select given.query::tsquery as query,
         ln(1 + (greatest($4::float8, found.count) - found.count + 0.5) / (found.count + 0.5)) as weight
    from unnest($3::text[]) as given (query),
         lateral (select count(*) from hit where hit.tokens @@ given.query::tsquery) as found)
select chunk_no, sum(term.weight * ts_rank(tokens, term.query)) / ({1 - B} + {B} * length / $5::float8) as score
  from hit join term on hit.tokens @@ term.query
 group by chunk_no, length order by score desc, chunk_no limit $6"""


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


async def find(
    connection: Connection, kb_no: int, terms: Sequence[Phrase], limit: int, only: ChunkFilter
) -> Sequence[tuple[int, float]]:
    """The best chunks of documents that count."""
    passing = None if only == ChunkFilter() else await _passing(connection, kb_no, only)
    chunks, tokens = await connection.fetchrow(_SIZE, kb_no)
    queries = [_quoted(entry) for term in terms for entry in asked_for(term)]
    query = f"{_mark(kb_no)} & ({' | '.join(queries)})"
    values = (query, passing, queries, chunks, max(tokens / max(chunks, 1), 1.0), limit)
    return [(number, score) for number, score in await connection.fetch(_BEST, *values)]


async def _passing(connection: Connection, kb_no: int, only: ChunkFilter) -> Sequence[int]:
    names = [
        None if some is None else escaped_column(sorted(some))
        for some in (only.document_ids, only.names, only.media_types)
    ]
    documents = [(number, DocumentRow(*row)) for number, *row in await connection.fetch(_PASSING, kb_no, *names)]
    return [
        number
        for number, document in documents
        if only.passes(document, msgspec.json.decode(document.metadata or b"{}"))
    ]
