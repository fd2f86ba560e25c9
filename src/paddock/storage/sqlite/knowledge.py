"""Knowledge in the embedded store: its tables and its index, in the same file and through the same writer.

Everything is written in small parts, one commit each, because statements run on the event loop. What is dropped is
hidden at once and taken out part by part; a start goes on with what an earlier one left.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from paddock.ports.knowledge import BaseRow, ChunkFilter, DocumentRow, FoundChunk, JobRow, KnowledgeFile, StoredChunk
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.tokens import Phrase
from paddock.storage.sqlite import knowledge_queries as queries
from paddock.storage.sqlite.connection import Connection, Cursor

# ruff: noqa: S608 - the column lists are our own, values are always bound
SOURCE_PART_BYTES = 262_144
CHUNKS_PER_COMMIT = 16
DROPPED_PER_COMMIT = 64

_ADD_BASE = f"insert into knowledge_bases ({queries.BASE}) values (?, ?, ?, ?, ?, ?) on conflict do nothing returning 1"
_DROP_BASE = "delete from knowledge_bases where kb_no = ? returning 1"
_DROP_JOBS = "delete from knowledge_jobs where kb_no = ?"
_DROP_DOCUMENT = "delete from knowledge_documents where document_no = ?"
_CHANGED = "update knowledge_bases set version = version + 1 where kb_no = ?"
_ADD_JOB = f"insert into knowledge_jobs ({queries.JOB}, kb_no) values ({', '.join('?' * 15)})"
_SET_JOB = """
update knowledge_jobs set status = ?, done = ?, total = ?, message = ?, content_hash = ? where job_id = ? returning 1"""
_ADD_SOURCE = "insert into knowledge_sources (job_id, part, bytes) values (?, ?, ?)"
_DROP_SOURCE = "delete from knowledge_sources where job_id = ?"
_ADD_DOCUMENT = f"""
insert into knowledge_documents (kb_no, {queries.DOCUMENT}) select kb_no, ?, ?, ?, ?, ?, ?, ?, ? from knowledge_bases
 where workspace_id = ? and kb_id = ? on conflict (document_id) do nothing"""
_ADD_CHUNK = """
insert into knowledge_chunks (kb_no, document_no, position, text, start, "end", page, heading, vector)
select kb_no, document_no, ?, ?, ?, ?, ?, ?, ? from knowledge_documents where document_id = ?
returning (kb_no << 32) + chunk_no"""
_ADD_TOKENS = "insert into knowledge_search (rowid, tokens) values (?, ?)"
_READY = """
update knowledge_documents set ready = 1, chunk_count = ? where document_id = ? returning kb_no, document_no"""
_DROP_SOME = """
delete from knowledge_chunks where chunk_no in (select chunk_no from knowledge_chunks where document_no = ? limit ?)
returning 1"""

Answer = TypeVar("Answer")


class Database(Protocol):
    """What knowledge needs of the store it lives in."""

    def perform(self, deed: Callable[[Cursor], None], rows: Sequence[AuditRow] = ()) -> Awaitable[None]: ...
    def ask(self, question: Callable[[Connection], Answer]) -> Awaitable[Answer]: ...


class SqliteKnowledge:
    """The `KnowledgeStore` port over the store's own file."""

    def __init__(self, store: Database) -> None:
        self._store = store

    # --- bases

    async def bases(self, workspace: str) -> Sequence[BaseRow]:
        return await self._store.ask(partial(queries.bases, workspace=workspace))

    async def base(self, workspace: str, kb_id: str) -> BaseRow | None:
        return await self._store.ask(partial(queries.base, workspace=workspace, kb_id=kb_id))

    async def add_base(self, row: BaseRow, audit: AuditRow) -> None:
        def add(cursor: Cursor) -> None:
            values = (row.workspace_id, row.kb_id, row.name, row.description, row.embedding_model, row.created_at)
            if cursor.execute(_ADD_BASE, values).fetchone() is None:
                raise _TakenError

        try:
            await self._store.perform(add, [audit])
        except HostError as error:
            text = f"there is a knowledge base {row.kb_id!r} already; delete it first, or choose another id"
            raise HostError(ErrorCode.CONFLICT, text) from error

    async def drop_base(self, workspace: str, kb_id: str, audit: AuditRow) -> bool:
        kb_no = await self._kb_no(workspace, kb_id)
        if kb_no is None:
            return False
        documents = await self._store.ask(partial(queries.document_numbers, kb_no=kb_no))

        def drop(cursor: Cursor) -> None:
            cursor.execute(_DROP_BASE, (kb_no,))
            cursor.execute(_DROP_JOBS, (kb_no,))

        await self._store.perform(drop, [audit])
        for document_no in documents:
            await self._drop(document_no)
        return True

    # --- documents

    async def documents(
        self, workspace: str, kb_id: str, *, after: str = "", limit: int = 100
    ) -> Sequence[DocumentRow]:
        return await self._of(workspace, kb_id, partial(queries.documents, after=after, limit=limit))

    async def files(self, workspace: str, *, limit: int = 100) -> Sequence[KnowledgeFile]:
        return await self._store.ask(partial(queries.files, workspace=workspace, limit=limit))

    async def document_by_hash(self, workspace: str, kb_id: str, content_hash: str) -> DocumentRow | None:
        return await self._of(workspace, kb_id, partial(queries.document_by_hash, content_hash=content_hash))

    async def drop_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> bool:
        kb_no = await self._kb_no(workspace, kb_id)
        document_no = await self._store.ask(partial(queries.document_no, kb_no=kb_no, document_id=document_id))
        if document_no is None:
            return False
        await self._drop(document_no, [audit], kb_no)
        return True

    async def _drop(self, document_no: int, rows: Sequence[AuditRow] = (), kb_no: int | None = None) -> None:
        """Hide the document, then take its chunks out of the index, some at a time."""

        def hide(cursor: Cursor) -> None:
            cursor.execute(_DROP_DOCUMENT, (document_no,))
            cursor.execute(_CHANGED, (kb_no,))

        await self._store.perform(hide, rows)
        dropped: list[Any] = [None]

        def drop_some(cursor: Cursor) -> None:
            dropped[:] = cursor.execute(_DROP_SOME, (document_no, DROPPED_PER_COMMIT)).fetchall()

        while dropped:
            await self._store.perform(drop_some)

    async def sweep(self) -> int:
        """Take out what an earlier start hid and did not finish dropping; how many documents that were."""
        left = await self._store.ask(queries.orphans)
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
        return await self._store.ask(partial(queries.job, workspace=workspace, kb_id=kb_id, job_id=job_id))

    async def unfinished_jobs(self, *, limit: int = 100, workspace: str | None = None) -> Sequence[JobRow]:
        return await self._store.ask(partial(queries.unfinished_jobs, limit=limit, workspace=workspace))

    async def workspaces_with_jobs(self) -> Sequence[str]:
        return await self._store.ask(queries.workspaces_with_jobs)

    async def source(self, job_id: str) -> bytes:
        return await self._store.ask(partial(queries.source, job_id=job_id))

    async def begin(self, job: JobRow, document: DocumentRow) -> int:
        def begin(cursor: Cursor) -> None:
            cursor.execute(_ADD_DOCUMENT, (*queries.document_values(document), job.workspace_id, job.kb_id))
            _set_job(cursor, job)

        await self._store.perform(begin)
        return await self._store.ask(partial(queries.stored_chunks, document_id=document.document_id))

    async def add_chunks(self, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        for at in range(0, len(chunks), CHUNKS_PER_COMMIT):
            part = chunks[at : at + CHUNKS_PER_COMMIT]
            await self._store.perform(partial(_add_chunks, job=job, chunks=part))

    async def finish(self, job: JobRow) -> None:
        new = await self._store.ask(partial(queries.unready, document_id=job.document_id))
        replaced: Sequence[int] = ()
        if new and job.status == "completed":
            kb_no = await self._kb_no(job.workspace_id, job.kb_id)
            replaced = await self._store.ask(partial(queries.named, kb_no=kb_no, name=job.name, but=job.document_id))

        def finish(cursor: Cursor) -> None:
            if job.status == "completed":
                _make_ready(cursor, job)
                cursor.executemany(_DROP_DOCUMENT, [(number,) for number in replaced])
            _set_job(cursor, job)
            cursor.execute(_DROP_SOURCE, (job.job_id,))

        await self._store.perform(finish)
        for number in replaced if job.status == "completed" else new:
            await self._drop(number)

    # --- what is found

    async def find(
        self, workspace: str, kb_id: str, terms: Sequence[Phrase], *, limit: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        return await self._of(workspace, kb_id, partial(queries.find, terms=terms, limit=limit, only=only))

    async def vectors(
        self, workspace: str, kb_id: str, *, after: int = 0, limit: int = 4096
    ) -> Sequence[tuple[int, bytes]]:
        return await self._of(workspace, kb_id, partial(queries.vectors, after=after, limit=limit))

    async def version(self, workspace: str, kb_id: str) -> int:
        return await self._store.ask(partial(queries.version, workspace=workspace, kb_id=kb_id))

    async def chunks(self, workspace: str, kb_id: str, numbers: Sequence[int]) -> Sequence[FoundChunk]:
        return await self._of(workspace, kb_id, partial(queries.chunks, numbers=numbers))

    async def _of(self, workspace: str, kb_id: str, question: Callable[..., Answer]) -> Answer:
        """Ask something of one base, in one go."""
        return await self._store.ask(
            lambda connection: question(connection, kb_no=queries.kb_no(connection, workspace, kb_id))
        )

    async def _kb_no(self, workspace: str, kb_id: str) -> int | None:
        return await self._store.ask(partial(queries.kb_no, workspace=workspace, kb_id=kb_id))


class _TakenError(ValueError):
    """The base exists: fails this very work and no other."""


def _execute(cursor: Cursor, sql: str, values: queries.Values) -> None:
    cursor.execute(sql, values)


def _set_job(cursor: Cursor, job: JobRow) -> None:
    values = (job.status, job.done, job.total, job.message, job.content_hash, job.job_id)
    if cursor.execute(_SET_JOB, values).fetchone() is None:
        raise ValueError("the job is gone: its knowledge base was deleted")


def _add_chunks(cursor: Cursor, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
    for stored in chunks:
        chunk = stored.chunk
        place = (chunk.position, chunk.text, chunk.start, chunk.end, chunk.page, chunk.heading)
        number = cursor.execute(_ADD_CHUNK, (*place, stored.vector, job.document_id)).fetchone()
        if number is None:
            raise ValueError("the document is gone: its knowledge base was deleted")
        cursor.execute(_ADD_TOKENS, (number[0], stored.tokens))
    _set_job(cursor, job)


def _make_ready(cursor: Cursor, job: JobRow) -> None:
    found = cursor.execute(_READY, (job.total, job.document_id)).fetchone()
    if found is not None:
        cursor.execute(_CHANGED, (found[0],))
