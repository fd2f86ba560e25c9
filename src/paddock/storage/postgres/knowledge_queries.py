"""What is looked up of knowledge: every question over committed data but the search itself."""

from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.ports.knowledge import BaseRow, DocumentRow, FoundChunk, JobRow, KnowledgeFile
from paddock.rules.search.chunking import Chunk
from paddock.storage.postgres.reader import Reader

# ruff: noqa: S608 - the column lists are our own, values are always bound
Values = tuple[Any, ...]

BASE = "workspace_id, kb_id, name, description, embedding_model, created_at"
DOCUMENT = "document_id, name, media_type, content_hash, size_bytes, created_at, metadata, chunk_count"
JOB = (
    "job_id, workspace_id, kb_id, document_id, name, content_hash, size_bytes, created_at, metadata, status, done, "
    "total, message, user_id"
)
_OF_BASE = "from knowledge_bases where workspace_id = $1 and kb_id = $2"
_OF_DOCUMENT = ", ".join(f"d.{name}" for name in DOCUMENT.split(", "))
_CHUNKS = f"""
select c.chunk_no, c.position, c.text, c.start, c."end", c.page, c.heading, {_OF_DOCUMENT}
  from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = $1 and c.chunk_no = any($2::bigint[])"""
_VECTORS = """
select c.chunk_no, c.vector from knowledge_chunks c
  join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = $1 and c.chunk_no > $2 and c.vector <> '' order by c.chunk_no limit $3"""
_DOCUMENTS = f"""
select {DOCUMENT} from knowledge_documents where kb_no = $1 and ready and document_id > $2 order by document_id
 limit $3"""
_FILES = """
select a.artifact_id, d.name, d.media_type, b.kb_id
  from knowledge_bases b join knowledge_documents d on d.kb_no = b.kb_no and d.ready
  join artifacts a on a.artifact_id = 'doc_' || d.document_id
 where b.workspace_id = $1 order by d.created_at desc, d.document_id limit $2"""
_BY_HASH = f"select {DOCUMENT} from knowledge_documents where kb_no = $1 and content_hash = $2 and ready limit 1"
_NO = "select document_no from knowledge_documents"
# Documents that are gone and whose chunks are not; and documents of a base that is gone.
_ORPHANS = """
select distinct document_no from knowledge_chunks c
 where not exists (select 1 from knowledge_documents d where d.document_no = c.document_no)
union select document_no from knowledge_documents d
 where not exists (select 1 from knowledge_bases b where b.kb_no = d.kb_no)"""
_STORED = """
select count(*) from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no
 where d.document_id = $1"""
_JOB = f"select {JOB} from knowledge_jobs where job_id = $1 and workspace_id = $2 and kb_id = $3"
_UNFINISHED = f"""
select {JOB} from knowledge_jobs
 where status in ('queued', 'running') and ($2::text is null or workspace_id = $2)
 order by created_at, job_id limit $1"""
_WITH_JOBS = """
select distinct workspace_id from knowledge_jobs where status in ('queued', 'running') order by workspace_id"""


async def bases(reader: Reader, workspace: str) -> list[BaseRow]:
    sql = f"select {BASE} from knowledge_bases where workspace_id = $1 order by kb_id"
    return [BaseRow(*row) for row in await reader.all(sql, workspace)]


async def base(reader: Reader, workspace: str, kb_id: str) -> BaseRow | None:
    found = await reader.one(f"select {BASE} {_OF_BASE}", workspace, kb_id)
    return BaseRow(*found) if found else None


async def kb_no(reader: Reader, workspace: str, kb_id: str) -> int | None:
    return await _value(reader, f"select kb_no {_OF_BASE}", workspace, kb_id)


async def version(reader: Reader, workspace: str, kb_id: str) -> int:
    return await _value(reader, f"select version {_OF_BASE}", workspace, kb_id) or 0


async def documents(reader: Reader, kb_no: int | None, after: str, limit: int) -> list[DocumentRow]:
    return [DocumentRow(*row) for row in await reader.all(_DOCUMENTS, kb_no, after, limit)]


async def files(reader: Reader, workspace: str, limit: int) -> list[KnowledgeFile]:
    return [KnowledgeFile(*row) for row in await reader.all(_FILES, workspace, limit)]


async def document_by_hash(reader: Reader, kb_no: int | None, content_hash: str) -> DocumentRow | None:
    found = await reader.one(_BY_HASH, kb_no, content_hash)
    return DocumentRow(*found) if found else None


async def document_no(reader: Reader, kb_no: int | None, document_id: str) -> int | None:
    return await _value(reader, f"{_NO} where kb_no = $1 and document_id = $2 and ready", kb_no, document_id)


async def document_numbers(reader: Reader, kb_no: int) -> list[int]:
    return await _values(reader, f"{_NO} where kb_no = $1", kb_no)


async def named(reader: Reader, kb_no: int | None, name: str, but: str) -> list[int]:
    return await _values(
        reader, f"{_NO} where kb_no = $1 and name = $2 and document_id <> $3 and ready", kb_no, name, but
    )


async def unready(reader: Reader, document_id: str) -> list[int]:
    return await _values(reader, f"{_NO} where document_id = $1 and not ready", document_id)


async def orphans(reader: Reader) -> list[int]:
    return await _values(reader, _ORPHANS)


async def stored_chunks(reader: Reader, document_id: str) -> int:
    return await _value(reader, _STORED, document_id)


async def job(reader: Reader, workspace: str, kb_id: str, job_id: str) -> JobRow | None:
    found = await reader.one(_JOB, job_id, workspace, kb_id)
    return JobRow(*found) if found else None


async def unfinished_jobs(reader: Reader, limit: int, workspace: str | None) -> list[JobRow]:
    return [JobRow(*row) for row in await reader.all(_UNFINISHED, limit, workspace)]


async def workspaces_with_jobs(reader: Reader) -> list[str]:
    return [row[0] for row in await reader.all(_WITH_JOBS)]


async def source(reader: Reader, job_id: str) -> bytes:
    return b"".join(
        await _values(reader, "select bytes from knowledge_sources where job_id = $1 order by part", job_id)
    )


async def vectors(reader: Reader, kb_no: int | None, after: int, limit: int) -> list[tuple[int, bytes]]:
    return [(number, vector) for number, vector in await reader.all(_VECTORS, kb_no, after, limit)]


async def chunks(reader: Reader, kb_no: int | None, numbers: Sequence[int]) -> list[FoundChunk]:
    return [_found(*row) for row in await reader.all(_CHUNKS, kb_no, list(numbers))]


def _found(
    number: int, position: int, text: str, start: int, end: int, page: int | None, heading: str, *document: Any
) -> FoundChunk:
    return FoundChunk(number, Chunk(position, text, start, end, page, heading), DocumentRow(*document))


def document_values(row: DocumentRow) -> Values:
    return msgspec.structs.astuple(row)


def job_values(row: JobRow) -> Values:
    return tuple(getattr(row, name) for name in JOB.split(", "))


async def _value(reader: Reader, sql: str, *values: Any) -> Any:
    found = await reader.one(sql, *values)
    return found[0] if found else None


async def _values(reader: Reader, sql: str, *values: Any) -> list[Any]:
    return [found[0] for found in await reader.all(sql, *values)]
