"""Knowledge in the database: its tables and its index, written beside the log's writer, so neither holds up the other.

Everything is written in small parts, one commit each. What is dropped is hidden at once and taken out part by part; a
start goes on with what an earlier one left.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any, Protocol

from paddock.ports.knowledge import BaseRow, ChunkFilter, DocumentRow, FoundChunk, JobRow, KnowledgeFile, StoredChunk
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.tokens import Phrase
from paddock.storage.postgres import knowledge_queries as queries
from paddock.storage.postgres import knowledge_words as words
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import Answer, Ask, Reader
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
SOURCE_PART_BYTES = 1_048_576
CHUNKS_PER_COMMIT = 64
DROPPED_PER_COMMIT = 256

_ADD_BASE = f"""
insert into knowledge_bases ({queries.BASE}) values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning 1"""
_DROP_BASE = "delete from knowledge_bases where kb_no = $1"
_DROP_JOBS = "delete from knowledge_jobs where kb_no = $1"
_DROP_DOCUMENTS = "delete from knowledge_documents where document_no = any($1::bigint[])"
_CHANGED = "update knowledge_bases set version = version + 1 where kb_no = $1"
_ADD_JOB = f"insert into knowledge_jobs ({queries.JOB}, kb_no) values ({', '.join(f'${n}' for n in range(1, 16))})"
_SET_JOB = """
update knowledge_jobs set status = $2, done = $3, total = $4, message = $5, content_hash = $6
 where job_id = $1 and status in ('queued', 'running') returning 1"""
_ADD_SOURCE = "insert into knowledge_sources (job_id, part, bytes) values ($1, $2, $3)"
_DROP_SOURCE = "delete from knowledge_sources where job_id = $1"
_ADD_DOCUMENT = f"""
insert into knowledge_documents (kb_no, {queries.DOCUMENT})
select kb_no, $3, $4, $5, $6, $7, $8, $9, $10 from knowledge_bases where workspace_id = $1 and kb_id = $2
on conflict (document_id) do nothing"""
_DOCUMENT = "select kb_no, document_no from knowledge_documents where document_id = $1 for share"
_ADD_CHUNKS = """
with added as (
  insert into knowledge_chunks (kb_no, document_no, position, text, start, "end", page, heading, vector)
  select $1, $2, * from unnest($3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::text[],
                               $9::bytea[])
  returning chunk_no, position)
insert into knowledge_words (chunk_no, document_no, length, tokens)
select chunk_no, $2, length, tokens::tsvector from added
  join unnest($3::bigint[], $10::bigint[], $11::text[]) as given (position, length, tokens) using (position)"""
_READY = """
update knowledge_documents set ready = true, chunk_count = $2,
       token_count = (select coalesce(sum(length), 0)::bigint from knowledge_words w
                       where w.chunk_no in (select chunk_no from knowledge_chunks c
                                             where c.document_no = knowledge_documents.document_no))
 where document_id = $1 returning kb_no"""
_DROP_SOME = """
with gone as (
  delete from knowledge_chunks where chunk_no in
    (select chunk_no from knowledge_chunks where document_no = $1 limit $2) returning 1)
select count(*) from gone"""


class Database(Protocol):
    """What knowledge needs of the store it lives in."""

    @property
    def reader(self) -> Reader: ...
    def perform(self, deed: Ask[Answer], rows: Sequence[AuditRow] = ()) -> Awaitable[Answer]: ...


class PostgresKnowledge:
    """The `KnowledgeStore` port over the store's own database."""

    def __init__(self, store: Database) -> None:
        self._store = store

    # --- bases

    async def bases(self, workspace: str) -> Sequence[BaseRow]:
        return await queries.bases(self._store.reader, workspace)

    async def base(self, workspace: str, kb_id: str) -> BaseRow | None:
        return await queries.base(self._store.reader, workspace, kb_id)

    async def add_base(self, row: BaseRow, audit: AuditRow) -> None:
        async def add(connection: Connection) -> None:
            values = (row.workspace_id, row.kb_id, row.name, row.description, row.embedding_model, row.created_at)
            if not await connection.fetch(_ADD_BASE, *values):
                text = f"there is a knowledge base {row.kb_id!r} already; delete it first, or choose another id"
                raise HostError(ErrorCode.CONFLICT, text)

        await self._store.perform(add, [audit])

    async def drop_base(self, workspace: str, kb_id: str, audit: AuditRow) -> bool:
        kb_no = await self._kb_no(workspace, kb_id)
        if kb_no is None:
            return False

        async def drop(connection: Connection) -> None:
            await connection.fetch(_DROP_BASE, kb_no)
            await connection.fetch(_DROP_JOBS, kb_no)

        await self._store.perform(drop, [audit])
        for document_no in await queries.document_numbers(self._store.reader, kb_no):
            await self._drop(document_no)
        return True

    # --- documents

    async def documents(
        self, workspace: str, kb_id: str, *, after: str = "", limit: int = 100
    ) -> Sequence[DocumentRow]:
        return await queries.documents(self._store.reader, await self._kb_no(workspace, kb_id), after, limit)

    async def files(self, workspace: str, *, limit: int = 100) -> Sequence[KnowledgeFile]:
        return await queries.files(self._store.reader, workspace, limit)

    async def document_by_hash(self, workspace: str, kb_id: str, content_hash: str) -> DocumentRow | None:
        return await queries.document_by_hash(self._store.reader, await self._kb_no(workspace, kb_id), content_hash)

    async def drop_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> bool:
        kb_no = await self._kb_no(workspace, kb_id)
        document_no = await queries.document_no(self._store.reader, kb_no, document_id)
        if document_no is None:
            return False
        await self._drop(document_no, [audit], kb_no)
        return True

    async def _drop(self, document_no: int, rows: Sequence[AuditRow] = (), kb_no: int | None = None) -> None:
        """Hide the document, then take its chunks out of the index, some at a time."""

        async def hide(connection: Connection) -> None:
            await connection.fetch(_DROP_DOCUMENTS, [document_no])
            await connection.fetch(_CHANGED, kb_no)

        async def drop_some(connection: Connection) -> int:
            return await connection.fetchval(_DROP_SOME, document_no, DROPPED_PER_COMMIT)

        await self._store.perform(hide, rows)
        while await self._store.perform(drop_some) == DROPPED_PER_COMMIT:
            pass

    async def sweep(self) -> int:
        """Take out what an earlier start hid and did not finish dropping; how many documents that were."""
        left = await queries.orphans(self._store.reader)
        for document_no in left:
            await self._drop(document_no)
        return len(left)

    # --- jobs

    async def add_job(self, job: JobRow, source: bytes, audit: AuditRow) -> None:
        kb_no = await self._kb_no(job.workspace_id, job.kb_id)
        if kb_no is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no knowledge base {job.kb_id!r}")
        for part, at in enumerate(range(0, len(source), SOURCE_PART_BYTES)):
            values = (job.job_id, part, source[at : at + SOURCE_PART_BYTES])
            await self._store.perform(partial(_execute, sql=_ADD_SOURCE, values=values))
        await self._store.perform(partial(_execute, sql=_ADD_JOB, values=(*queries.job_values(job), kb_no)), [audit])

    async def job(self, workspace: str, kb_id: str, job_id: str) -> JobRow | None:
        return await queries.job(self._store.reader, workspace, kb_id, job_id)

    async def unfinished_jobs(self, *, limit: int = 100, workspace: str | None = None) -> Sequence[JobRow]:
        return await queries.unfinished_jobs(self._store.reader, limit, workspace)

    async def workspaces_with_jobs(self) -> Sequence[str]:
        return await queries.workspaces_with_jobs(self._store.reader)

    async def source(self, job_id: str) -> bytes:
        return await queries.source(self._store.reader, job_id)

    async def begin(self, job: JobRow, document: DocumentRow) -> int:
        async def begin(connection: Connection) -> None:
            await connection.fetch(_ADD_DOCUMENT, job.workspace_id, job.kb_id, *queries.document_values(document))
            await _set_job(connection, job)

        await self._store.perform(begin)
        return await queries.stored_chunks(self._store.reader, document.document_id)

    async def add_chunks(self, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        for at in range(0, len(chunks), CHUNKS_PER_COMMIT):
            part = chunks[at : at + CHUNKS_PER_COMMIT]
            await self._store.perform(partial(_add_chunks, job=job, chunks=part))

    async def finish(self, job: JobRow) -> None:
        new = await queries.unready(self._store.reader, job.document_id)
        replaced: Sequence[int] = ()
        if new and job.status == "completed":
            kb_no = await self._kb_no(job.workspace_id, job.kb_id)
            replaced = await queries.named(self._store.reader, kb_no, job.name, but=job.document_id)

        async def finish(connection: Connection) -> None:
            if job.status == "completed":
                await _make_ready(connection, job)
                await connection.fetch(_DROP_DOCUMENTS, list(replaced))
            await _set_job(connection, job)
            await connection.fetch(_DROP_SOURCE, job.job_id)

        await self._store.perform(finish)
        for number in replaced if job.status == "completed" else new:
            await self._drop(number)

    # --- what is found

    async def find(
        self, workspace: str, kb_id: str, terms: Sequence[Phrase], *, limit: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        kb_no = await self._kb_no(workspace, kb_id)
        if kb_no is None or not terms:
            return []
        return await self._store.reader.ask(partial(words.find, kb_no=kb_no, terms=terms, limit=limit, only=only))

    async def vectors(
        self, workspace: str, kb_id: str, *, after: int = 0, limit: int = 4096
    ) -> Sequence[tuple[int, bytes]]:
        return await queries.vectors(self._store.reader, await self._kb_no(workspace, kb_id), after, limit)

    async def version(self, workspace: str, kb_id: str) -> int:
        return await queries.version(self._store.reader, workspace, kb_id)

    async def chunks(self, workspace: str, kb_id: str, numbers: Sequence[int]) -> Sequence[FoundChunk]:
        return await queries.chunks(self._store.reader, await self._kb_no(workspace, kb_id), numbers)

    async def _kb_no(self, workspace: str, kb_id: str) -> int | None:
        return await queries.kb_no(self._store.reader, workspace, kb_id)


async def _execute(connection: Connection, sql: str, values: queries.Values) -> None:
    await connection.fetch(sql, *values)


async def _set_job(connection: Connection, job: JobRow) -> None:
    told = (job.status, job.done, job.total, job.message, job.content_hash)
    if not await connection.fetch(_SET_JOB, job.job_id, *told):
        text = "the job has ended already, at another host or with its knowledge base"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)


async def _add_chunks(connection: Connection, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
    document = await connection.fetchrow(_DOCUMENT, job.document_id)
    if document is None:
        raise HostError(ErrorCode.INVALID_ARGUMENT, "the document is gone: its knowledge base was deleted")
    await connection.fetch(_ADD_CHUNKS, *document, *_columns(document[0], chunks))
    await _set_job(connection, job)


def _columns(kb_no: int, chunks: Sequence[StoredChunk]) -> Sequence[Sequence[Any]]:
    rows = [
        (one.chunk.position, one.chunk.text, one.chunk.start, one.chunk.end, one.chunk.page, one.chunk.heading)
        for one in chunks
    ]
    position, text, start, end, page, heading = zip(*rows, strict=True)
    place = (position, escaped_column(text), start, end, page, escaped_column(heading))
    return [*place, [one.vector for one in chunks], *words.columns(kb_no, [one.tokens for one in chunks])]


async def _make_ready(connection: Connection, job: JobRow) -> None:
    found = await connection.fetchrow(_READY, job.document_id, job.total)
    if found is not None:
        await connection.fetch(_CHANGED, found[0])
