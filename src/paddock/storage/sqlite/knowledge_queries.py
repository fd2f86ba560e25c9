"""What is looked up of knowledge: every question over committed data, asked on a reading connection."""

from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.ports.knowledge import BaseRow, ChunkFilter, DocumentRow, FoundChunk, JobRow, KnowledgeFile
from paddock.rules.search.chunking import Chunk
from paddock.rules.search.tokens import Phrase
from paddock.storage.sqlite.connection import Connection
from paddock.storage.sqlite.search import expression

# ruff: noqa: S608 - the column lists are our own, values are always bound
Values = tuple[Any, ...]

BASE = "workspace_id, kb_id, name, description, embedding_model, created_at"
DOCUMENT = "document_id, name, media_type, content_hash, size_bytes, created_at, metadata, chunk_count"
JOB = (
    "job_id, workspace_id, kb_id, document_id, name, content_hash, size_bytes, created_at, metadata, status, done, "
    "total, message, user_id"
)
MAX_CANDIDATES = 65_536
EVERYTHING = ChunkFilter()

_OF_DOCUMENT = ", ".join(f"d.{name}" for name in DOCUMENT.split(", "))
_CHUNK = f'c.chunk_no, c.position, c.text, c.start, c."end", c.page, c.heading, {_OF_DOCUMENT}'
_CHUNKS = f"""
select {_CHUNK} from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = ? and c.chunk_no in ({{marks}})"""
_DOCUMENTS = _CHUNKS.replace(_CHUNK, f"c.chunk_no, {_OF_DOCUMENT}")
# The best of the index first, and only then whether their documents count: joining every hit would cost the most.
_BEST = """
select rowid - ?, -bm25(knowledge_search) as score from knowledge_search
 where knowledge_search match ? and rowid > ? and rowid < ? order by score desc limit ?"""
_VECTORS = """
select c.chunk_no, c.vector from knowledge_chunks c indexed by knowledge_vectors
  join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = ? and c.chunk_no > ? and c.vector <> x'' order by c.chunk_no limit ?"""
_FILES = """
select a.artifact_id, d.name, d.media_type, b.kb_id
  from knowledge_bases b join knowledge_documents d on d.kb_no = b.kb_no and d.ready
  join artifacts a on a.artifact_id = 'doc_' || d.document_id
 where b.workspace_id = ? order by d.created_at desc, d.document_id limit ?"""


def bases(connection: Connection, workspace: str) -> list[BaseRow]:
    found = connection.execute(
        f"select {BASE} from knowledge_bases where workspace_id = ? order by kb_id", (workspace,)
    )
    return [BaseRow(*row) for row in found]


def base(connection: Connection, workspace: str, kb_id: str) -> BaseRow | None:
    sql = f"select {BASE} from knowledge_bases where workspace_id = ? and kb_id = ?"
    found = connection.execute(sql, (workspace, kb_id)).fetchone()
    return BaseRow(*found) if found else None


def kb_no(connection: Connection, workspace: str, kb_id: str) -> int | None:
    return _value(
        connection, "select kb_no from knowledge_bases where workspace_id = ? and kb_id = ?", workspace, kb_id
    )


def version(connection: Connection, workspace: str, kb_id: str) -> int:
    sql = "select version from knowledge_bases where workspace_id = ? and kb_id = ?"
    return _value(connection, sql, workspace, kb_id) or 0


def documents(connection: Connection, kb_no: int | None, after: str, limit: int) -> list[DocumentRow]:
    sql = (
        f"select {DOCUMENT} from knowledge_documents where kb_no = ? and ready and document_id > ? order by document_id"
    )
    return [DocumentRow(*row) for row in connection.execute(f"{sql} limit ?", (kb_no, after, limit))]


def files(connection: Connection, workspace: str, limit: int) -> list[KnowledgeFile]:
    return [KnowledgeFile(*row) for row in connection.execute(_FILES, (workspace, limit))]


def document_by_hash(connection: Connection, kb_no: int | None, content_hash: str) -> DocumentRow | None:
    sql = f"select {DOCUMENT} from knowledge_documents where kb_no = ? and content_hash = ? and ready"
    found = connection.execute(sql, (kb_no, content_hash)).fetchone()
    return DocumentRow(*found) if found else None


def document_no(connection: Connection, kb_no: int | None, document_id: str) -> int | None:
    sql = "select document_no from knowledge_documents where kb_no = ? and document_id = ? and ready"
    return _value(connection, sql, kb_no, document_id)


def document_numbers(connection: Connection, kb_no: int) -> list[int]:
    return _values(connection, "select document_no from knowledge_documents where kb_no = ?", kb_no)


def named(connection: Connection, kb_no: int | None, name: str, but: str) -> list[int]:
    sql = "select document_no from knowledge_documents where kb_no = ? and name = ? and document_id <> ? and ready"
    return _values(connection, sql, kb_no, name, but)


def unready(connection: Connection, document_id: str) -> list[int]:
    sql = "select document_no from knowledge_documents where document_id = ? and not ready"
    return _values(connection, sql, document_id)


def orphans(connection: Connection) -> list[int]:
    """Documents that are gone and whose chunks are not; and documents of a base that is gone."""
    sql = """
    select distinct document_no from knowledge_chunks
     where document_no not in (select document_no from knowledge_documents)
    union select document_no from knowledge_documents where kb_no not in (select kb_no from knowledge_bases)"""
    return _values(connection, sql)


def stored_chunks(connection: Connection, document_id: str) -> int:
    sql = """
    select count(*) from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no
     where d.document_id = ?"""
    return _value(connection, sql, document_id) or 0


def job(connection: Connection, workspace: str, kb_id: str, job_id: str) -> JobRow | None:
    sql = f"select {JOB} from knowledge_jobs where job_id = ? and workspace_id = ? and kb_id = ?"
    found = connection.execute(sql, (job_id, workspace, kb_id)).fetchone()
    return JobRow(*found) if found else None


def unfinished_jobs(connection: Connection, limit: int, workspace: str | None) -> list[JobRow]:
    sql = f"""
    select {JOB} from knowledge_jobs
     where status in ('queued', 'running') and (?2 is null or workspace_id = ?2)
     order by created_at, job_id limit ?1"""
    return [JobRow(*row) for row in connection.execute(sql, (limit, workspace))]


def workspaces_with_jobs(connection: Connection) -> list[str]:
    sql = "select distinct workspace_id from knowledge_jobs where status in ('queued', 'running') order by workspace_id"
    return [row[0] for row in connection.execute(sql)]


def source(connection: Connection, job_id: str) -> bytes:
    return b"".join(_values(connection, "select bytes from knowledge_sources where job_id = ? order by part", job_id))


def find(
    connection: Connection, kb_no: int | None, terms: Sequence[Phrase], limit: int, only: ChunkFilter
) -> list[tuple[int, float]]:
    """Asks for more and more of the best until enough of them count."""
    if kb_no is None or not terms:
        return []
    first = kb_no << 32
    wanted = (limit if only == EVERYTHING else 4 * limit) + 16
    while True:
        where = (first, expression(terms, joined=" OR "), first, first + (1 << 32), wanted)
        best: list[tuple[int, float]] = connection.execute(_BEST, where).fetchall()
        found = _counting(connection, kb_no, best, only)[:limit]
        if len(found) == limit or len(best) < wanted or wanted >= MAX_CANDIDATES:
            return found
        wanted *= 8


def _counting(
    connection: Connection, kb_no: int, best: Sequence[tuple[int, float]], only: ChunkFilter
) -> list[tuple[int, float]]:
    counting: set[int] = set()
    for at in range(0, len(best), 512):
        numbers = [number for number, _ in best[at : at + 512]]
        for number, *document in connection.execute(_DOCUMENTS.format(marks=_marks(numbers)), (kb_no, *numbers)):
            row = DocumentRow(*document)
            if only == EVERYTHING or only.passes(row, msgspec.json.decode(row.metadata or b"{}")):
                counting.add(number)
    return [(number, score) for number, score in best if number in counting]


def vectors(connection: Connection, kb_no: int | None, after: int, limit: int) -> list[tuple[int, bytes]]:
    return connection.execute(_VECTORS, (kb_no, after, limit)).fetchall()


def chunks(connection: Connection, kb_no: int | None, numbers: Sequence[int]) -> list[FoundChunk]:
    return [_found(row) for row in connection.execute(_CHUNKS.format(marks=_marks(numbers)), (kb_no, *numbers))]


def _marks(numbers: Sequence[int]) -> str:
    return ", ".join("?" * len(numbers))


def _found(row: Values) -> FoundChunk:
    number, position, text, start, end, page, heading, *document = row
    return FoundChunk(number, Chunk(position, text, start, end, page, heading), DocumentRow(*document))


def document_values(row: DocumentRow) -> Values:
    return msgspec.structs.astuple(row)


def job_values(row: JobRow) -> Values:
    return tuple(getattr(row, name) for name in JOB.split(", "))


def _value(connection: Connection, sql: str, *values: Any) -> Any:
    found = connection.execute(sql, values).fetchone()
    return found[0] if found else None


def _values(connection: Connection, sql: str, *values: Any) -> list[Any]:
    return [found[0] for found in connection.execute(sql, values)]
