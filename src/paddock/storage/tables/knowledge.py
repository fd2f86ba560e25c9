"""Knowledge: bases, documents, their chunks, and jobs on their way in, in the same database as everything else.

Everything is written in small parts, one commit each. What is dropped is hidden at once and taken out part by part; a
start goes on with what an earlier one left. How words get into the index and are found there is each database's own
(`Words`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import asdict

from paddock.ports.knowledge import BaseRow, ChunkFilter, DocumentRow, FoundChunk, JobRow, KnowledgeFile, StoredChunk
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.passages import Chunk
from paddock.rules.search.tokens import Phrase
from paddock.storage.tables.statements import (
    Ask,
    Engine,
    HasEngine,
    Query,
    Work,
    ask,
    columns_of,
    just,
    long,
    many,
    one,
    several,
    value,
)

# ruff: noqa: S608 - the column lists are our own, values are always bound
DOCUMENT = columns_of(DocumentRow)
JOB = columns_of(JobRow)
_OF_BASE = "from knowledge_bases where workspace_id = :workspace and kb_id = :kb_id"
_KB_NO = f"(select kb_no {_OF_BASE})"
_DOCUMENT_NO = "select document_no from knowledge_documents where"
_READY_ONE = Query(value, f"{_DOCUMENT_NO} kb_no = {_KB_NO} and document_id = :document_id and ready")
_OF_THE_BASE = Query(value, f"{_DOCUMENT_NO} kb_no = :kb_no")
_NAMED = Query(value, f"{_DOCUMENT_NO} kb_no = {_KB_NO} and name = :name and document_id <> :but and ready")
_UNREADY = Query(value, f"{_DOCUMENT_NO} document_id = :document_id and not ready")
# Documents that are gone and whose chunks are not; and documents of a base that is gone.
_ORPHANS = Query(
    value,
    """
select distinct document_no from knowledge_chunks c
 where not exists (select 1 from knowledge_documents d where d.document_no = c.document_no)
union select document_no from knowledge_documents d
 where not exists (select 1 from knowledge_bases b where b.kb_no = d.kb_no)""",
)
_STORED = Query(
    value,
    """
select count(*) from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no
 where d.document_id = :document_id""",
)
_SOURCE = Query(value, "select bytes from knowledge_sources where job_id = :job_id order by part")
_VECTORS = Query(
    several,
    f"""
select c.chunk_no, c.vector from knowledge_chunks c /*sqlite indexed by knowledge_vectors*/
  join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = {_KB_NO} and c.chunk_no > :after and c.vector <> no_bytes() order by c.chunk_no limit :limit""",
)
_CHUNKS = f"""
select c.chunk_no, c.position, c.text, c.start, c."end", c.page, c.heading, {columns_of(DocumentRow, "d.")}
  from knowledge_chunks c join knowledge_documents d on d.document_no = c.document_no and d.ready
 where c.kb_no = {_KB_NO} and c.chunk_no = any(:numbers::bigint[])"""

_ADD_BASE = f"""
insert into knowledge_bases ({columns_of(BaseRow)}) values (:{columns_of(BaseRow).replace(", ", ", :")})
on conflict do nothing returning 1"""
_ADD_JOB = f"insert into knowledge_jobs ({JOB}, kb_no) values (:{JOB.replace(', ', ', :')}, {_KB_NO})"
_SET_JOB = """
update knowledge_jobs
   set status = :status, done = :done, total = :total, message = :message, content_hash = :content_hash
 where job_id = :job_id and status in ('queued', 'running') returning 1"""
_ADD_SOURCE = "insert into knowledge_sources (job_id, part, bytes) values (:job_id, :part, :bytes)"
_ADD_DOCUMENT = f"""
insert into knowledge_documents (kb_no, {DOCUMENT})
select kb_no, :{DOCUMENT.replace(", ", ", :")} {_OF_BASE} on conflict (document_id) do nothing"""
_CHANGED = "update knowledge_bases set version = version + 1 where kb_no = :kb_no"
_DROP_DOCUMENTS = "delete from knowledge_documents where document_no = any(:documents::bigint[])"
_DROP_SOME = """
delete from knowledge_chunks where chunk_no in (
  select chunk_no from knowledge_chunks where document_no = :document_no limit :limit) returning 1"""
_HELD = "select kb_no, document_no from knowledge_documents where document_id = :document_id /*postgres for share*/"
_READY = """
update knowledge_documents set ready = true, chunk_count = :total
 /*postgres , token_count = (
   select coalesce(sum(length), 0)::bigint from knowledge_words w where w.chunk_no in (
     select chunk_no from knowledge_chunks c where c.document_no = knowledge_documents.document_no))*/
 where document_id = :document_id returning kb_no"""


class Words(Protocol):
    """The index of words, and how much goes into one commit."""

    SOURCE_PART_BYTES: int
    CHUNKS_PER_COMMIT: int
    DROPPED_PER_COMMIT: int

    def add(self, kb_no: int, document_no: int, chunks: Sequence[StoredChunk]) -> Work[None]:
        """Store chunks, and their words in the index."""
        ...

    def find(
        self, kb_no: int, terms: Sequence[Phrase], limit: int, only: ChunkFilter
    ) -> Work[Sequence[tuple[int, float]]]:
        """Numbers of chunks that contain some of the terms, best first, with their scores."""
        ...


@runtime_checkable
class HasWords(HasEngine, Protocol):
    words: Words


class KnowledgeTables:
    """The `KnowledgeStore` port over the store's own database."""

    def __init__(self, engine: Engine, words: Words) -> None:
        self.engine = engine
        self._words = words

    bases = many(BaseRow, "select {columns} from knowledge_bases where workspace_id = :workspace order by kb_id")
    base = one(BaseRow, f"select {{columns}} {_OF_BASE}")

    async def add_base(self, row: BaseRow, audit: AuditRow) -> None:
        def add() -> Work[None]:
            if not (yield Ask(_ADD_BASE, row)):
                text = f"there is a knowledge base {row.kb_id!r} already; delete it first, or choose another id"
                raise HostError(ErrorCode.CONFLICT, text)

        await self.engine.do(add, [audit])

    async def drop_base(self, workspace: str, kb_id: str, audit: AuditRow) -> bool:
        kb_no = await self._kb_no(workspace, kb_id)
        if kb_no is None:
            return False
        documents = await self.engine.all(_OF_THE_BASE, kb_no=kb_no)

        def drop() -> Work[None]:
            for table in ("knowledge_bases", "knowledge_jobs"):
                yield ask(f"delete from {table} where kb_no = :kb_no", kb_no=kb_no)

        await self.engine.do(drop, [audit])
        for document_no in documents:
            await self._drop(document_no)
        return True

    documents = long(
        DocumentRow,
        f"""
select {{columns}} from knowledge_documents where kb_no = {_KB_NO} and ready and document_id > :after
 order by document_id limit :limit""",
        after="",
        limit=100,
    )
    files = long(
        KnowledgeFile,
        """
select a.artifact_id, d.name, d.media_type, b.kb_id
  from knowledge_bases b join knowledge_documents d on d.kb_no = b.kb_no and d.ready
  join artifacts a on a.artifact_id = 'doc_' || d.document_id
 where b.workspace_id = :workspace order by d.created_at desc, d.document_id limit :limit""",
        limit=100,
    )
    document_by_hash = one(
        DocumentRow,
        f"""
select {{columns}} from knowledge_documents
 where kb_no = {_KB_NO} and content_hash = :content_hash and ready limit 1""",
    )

    async def drop_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> bool:
        place = {"workspace": workspace, "kb_id": kb_id}
        document_no = await self.engine.one(_READY_ONE, **place, document_id=document_id)
        if document_no is None:
            return False
        await self._drop(document_no, [audit], await self._kb_no(workspace, kb_id))
        return True

    async def _drop(self, document_no: int, rows: Sequence[AuditRow] = (), kb_no: int | None = None) -> None:
        most = self._words.DROPPED_PER_COMMIT

        def hide() -> Work[None]:
            yield ask(_DROP_DOCUMENTS, documents=[document_no])
            yield ask(_CHANGED, kb_no=kb_no)

        def drop_some() -> Work[int]:
            return len((yield ask(_DROP_SOME, document_no=document_no, limit=most)))

        await self.engine.do(hide, rows)
        while await self.engine.do(drop_some) == most:
            pass

    async def sweep(self) -> int:
        """Take out what an earlier start hid and did not finish dropping; how many documents that were."""
        left = await self.engine.long(_ORPHANS)
        for document_no in left:
            await self._drop(document_no)
        return len(left)

    async def add_job(self, job: JobRow, source: bytes, audit: AuditRow) -> None:
        if await self._kb_no(job.workspace_id, job.kb_id) is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no knowledge base {job.kb_id!r}")
        size = self._words.SOURCE_PART_BYTES
        for part, at in enumerate(range(0, len(source), size)):
            piece = {"job_id": job.job_id, "part": part, "bytes": source[at : at + size]}
            await self.engine.do(partial(just, Ask(_ADD_SOURCE, piece)))
        await self.engine.do(partial(just, ask(_ADD_JOB, **asdict(job), workspace=job.workspace_id)), [audit])

    job = one(
        JobRow,
        "select {columns} from knowledge_jobs where workspace_id = :workspace and kb_id = :kb_id and job_id = :job_id",
    )
    unfinished_jobs = many(
        JobRow,
        """
select {columns} from knowledge_jobs
 where status in ('queued', 'running') and (:workspace::text is null or workspace_id = :workspace)
 order by created_at, job_id limit :limit""",
        limit=100,
        workspace=None,
    )
    workspaces_with_jobs = many(
        value,
        "select distinct workspace_id from knowledge_jobs where status in ('queued', 'running') order by workspace_id",
    )

    async def source(self, job_id: str) -> bytes:
        return b"".join(await self.engine.long(_SOURCE, job_id=job_id))

    async def begin(self, job: JobRow, document: DocumentRow) -> int:
        def begin() -> Work[None]:
            yield ask(_ADD_DOCUMENT, **asdict(document), workspace=job.workspace_id, kb_id=job.kb_id)
            yield from _set_job(job)

        await self.engine.do(begin)
        return await self.engine.one(_STORED, document_id=document.document_id) or 0

    async def add_chunks(self, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        size = self._words.CHUNKS_PER_COMMIT
        for at in range(0, len(chunks), size):
            await self.engine.do(partial(self._add, job, chunks[at : at + size]))

    def _add(self, job: JobRow, chunks: Sequence[StoredChunk]) -> Work[None]:
        document = yield ask(_HELD, document_id=job.document_id)
        if not document:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "the document is gone: its knowledge base was deleted")
        kb_no, document_no = document[0]
        yield from self._words.add(kb_no, document_no, chunks)
        yield from _set_job(job)

    async def finish(self, job: JobRow) -> None:
        new = await self.engine.all(_UNREADY, document_id=job.document_id)
        replaced: Sequence[int] = ()
        if new and job.status == "completed":
            place = {"workspace": job.workspace_id, "kb_id": job.kb_id}
            replaced = await self.engine.all(_NAMED, **place, name=job.name, but=job.document_id)
        await self.engine.do(partial(_finish, job, replaced))
        for number in replaced if job.status == "completed" else new:
            await self._drop(number)

    async def find(
        self, workspace: str, kb_id: str, terms: Sequence[Phrase], *, limit: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        kb_no = await self._kb_no(workspace, kb_id)
        if kb_no is None or not terms:
            return []
        return await self.engine.ask(lambda: self._words.find(kb_no, terms, limit, only))

    async def vectors(
        self, workspace: str, kb_id: str, *, after: int = 0, limit: int = 4096
    ) -> Sequence[tuple[int, bytes]]:
        found = await self.engine.long(_VECTORS, workspace=workspace, kb_id=kb_id, after=after, limit=limit)
        return [(number, vector) for number, vector in found]

    version = one(value, f"select version {_OF_BASE}", otherwise=0)

    async def chunks(self, workspace: str, kb_id: str, numbers: Sequence[int]) -> Sequence[FoundChunk]:
        asked = {"workspace": workspace, "kb_id": kb_id, "numbers": list(numbers)}
        return await self.engine.long(Query(_found, _CHUNKS), **asked)

    _kb_no = one(value, f"select kb_no {_OF_BASE}")


def _set_job(job: JobRow) -> Work[None]:
    if not (yield Ask(_SET_JOB, job)):
        text = "the job has ended already, at another host or with its knowledge base"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)


def _finish(job: JobRow, replaced: Sequence[int]) -> Work[None]:
    if job.status == "completed":
        for (kb_no,) in (yield Ask(_READY, job)):
            yield ask(_CHANGED, kb_no=kb_no)
        yield ask(_DROP_DOCUMENTS, documents=replaced)
    yield from _set_job(job)
    yield Ask("delete from knowledge_sources where job_id = :job_id", job)


def _found(
    number: int, position: int, text: str, start: int, end: int, page: int | None, heading: str, *document: Any
) -> FoundChunk:
    return FoundChunk(number, Chunk(position, text, start, end, page, heading), DocumentRow(*document))
