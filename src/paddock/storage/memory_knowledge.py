"""Knowledge that lives and dies with the process: every promise of the port but durability."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from paddock.ports.knowledge import (
    BaseRow,
    ChunkFilter,
    DocumentRow,
    FoundChunk,
    JobRow,
    KnowledgeFile,
    StoredChunk,
    original_id,
)
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactGone, AuditRow
from paddock.rules.search.ranking import bm25
from paddock.rules.search.tokens import Phrase
from paddock.rules.values import replace
from paddock.storage.memory import MemoryStore

Place = tuple[str, str]


@dataclass(slots=True)
class _Document:
    row: DocumentRow
    ready: bool = False
    chunks: dict[int, StoredChunk] = field(default_factory=dict[int, StoredChunk])


@dataclass(slots=True)
class _Base:
    row: BaseRow
    version: int = 0
    documents: dict[str, _Document] = field(default_factory=dict[str, _Document])


class MemoryKnowledge:
    """The `KnowledgeStore` port over plain dictionaries; audit rows go to the memory store beside it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._bases: dict[Place, _Base] = {}
        self._jobs: dict[str, JobRow] = {}
        self._sources: dict[str, bytes] = {}
        self._last = 0

    async def bases(self, workspace: str) -> Sequence[BaseRow]:
        return [base.row for (of, _), base in sorted(self._bases.items()) if of == workspace]

    async def base(self, workspace: str, kb_id: str) -> BaseRow | None:
        found = self._bases.get((workspace, kb_id))
        return found.row if found else None

    async def add_base(self, row: BaseRow, audit: AuditRow) -> None:
        if (row.workspace_id, row.kb_id) in self._bases:
            text = f"there is a knowledge base {row.kb_id!r} already; delete it first, or choose another id"
            raise HostError(ErrorCode.CONFLICT, text)
        self._bases[row.workspace_id, row.kb_id] = _Base(row)
        await self._store.write([audit])

    async def drop_base(self, workspace: str, kb_id: str, audit: AuditRow) -> bool:
        base = self._bases.pop((workspace, kb_id), None)
        if base is None:
            return False
        await self._forget(base.documents)
        for job in [job for job in self._jobs.values() if (job.workspace_id, job.kb_id) == (workspace, kb_id)]:
            del self._jobs[job.job_id]
            self._sources.pop(job.job_id, None)
        await self._store.write([audit])
        return True

    async def documents(
        self, workspace: str, kb_id: str, *, after: str = "", limit: int = 100
    ) -> Sequence[DocumentRow]:
        ready = sorted(self._ready(workspace, kb_id), key=lambda document: document.row.document_id)
        return list(islice((one.row for one in ready if one.row.document_id > after), limit))

    async def files(self, workspace: str, *, limit: int = 100) -> Sequence[KnowledgeFile]:
        found: list[tuple[DocumentRow, str]] = []
        for (of, kb_id), base in self._bases.items():
            found += [(one.row, kb_id) for one in base.documents.values() if of == workspace and one.ready]
        found.sort(key=lambda one: (-one[0].created_at, one[0].document_id))
        files = [KnowledgeFile(original_id(row.document_id), row.name, row.media_type, kb) for row, kb in found]
        return [file for file in files if await self._store.artifact(file.file_id) is not None][:limit]

    async def document_by_hash(self, workspace: str, kb_id: str, content_hash: str) -> DocumentRow | None:
        return next((one.row for one in self._ready(workspace, kb_id) if one.row.content_hash == content_hash), None)

    async def drop_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> bool:
        base = self._bases.get((workspace, kb_id))
        if base is None or document_id not in base.documents or not base.documents[document_id].ready:
            return False
        del base.documents[document_id]
        await self._forget([document_id])
        base.version += 1
        await self._store.write([audit])
        return True

    async def _forget(self, document_ids: Iterable[str]) -> None:
        """Drop the originals of documents that are gone."""
        await self._store.write([ArtifactGone(original_id(one)) for one in document_ids])

    async def add_job(self, job: JobRow, source: bytes, audit: AuditRow) -> None:
        if (job.workspace_id, job.kb_id) not in self._bases:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no knowledge base {job.kb_id!r}")
        self._jobs[job.job_id], self._sources[job.job_id] = job, source
        await self._store.write([audit])

    async def job(self, workspace: str, kb_id: str, job_id: str) -> JobRow | None:
        job = self._jobs.get(job_id)
        return job if job and (job.workspace_id, job.kb_id) == (workspace, kb_id) else None

    async def unfinished_jobs(self, *, limit: int = 100, workspace: str | None = None) -> Sequence[JobRow]:
        waiting = (job for job in self._unfinished() if workspace in (None, job.workspace_id))
        return sorted(waiting, key=lambda job: (job.created_at, job.job_id))[:limit]

    async def workspaces_with_jobs(self) -> Sequence[str]:
        return sorted({job.workspace_id for job in self._unfinished()})

    def _unfinished(self) -> Iterable[JobRow]:
        return (job for job in self._jobs.values() if job.status in {"queued", "running"})

    async def source(self, job_id: str) -> bytes:
        return self._sources.get(job_id, b"")

    async def begin(self, job: JobRow, document: DocumentRow) -> int:
        base = self._base_of(job)
        stored = base.documents.setdefault(document.document_id, _Document(document))
        self._jobs[job.job_id] = job
        return len(stored.chunks)

    async def add_chunks(self, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        document = self._base_of(job).documents[job.document_id]
        for chunk in chunks:
            self._last += 1
            document.chunks[self._last] = chunk
        self._jobs[job.job_id] = job

    async def finish(self, job: JobRow) -> None:
        base = self._base_of(job)
        document = base.documents.get(job.document_id)
        if job.status != "completed":
            if document is not None and not document.ready:
                del base.documents[job.document_id]
                await self._forget([job.document_id])
        elif document is not None:
            for old in [one for one in base.documents.values() if one.ready and one.row.name == job.name]:
                if old is not document:
                    del base.documents[old.row.document_id]
                    await self._forget([old.row.document_id])
            document.ready, document.row = True, replace(document.row, chunk_count=job.total)
            base.version += 1
        self._jobs[job.job_id] = job
        self._sources.pop(job.job_id, None)

    async def sweep(self) -> int:
        return 0

    async def find(
        self, workspace: str, kb_id: str, terms: Sequence[Phrase], *, limit: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        counting = {
            number: stored.tokens.split()
            for document in self._ready(workspace, kb_id)
            if only.passes(document.row, msgspec.json.decode(document.row.metadata or b"{}"))
            for number, stored in document.chunks.items()
        }
        return bm25(counting, terms)[:limit]

    async def vectors(
        self, workspace: str, kb_id: str, *, after: int = 0, limit: int = 4096
    ) -> Sequence[tuple[int, bytes]]:
        found = (
            (number, stored.vector)
            for document in self._ready(workspace, kb_id)
            for number, stored in document.chunks.items()
            if number > after and stored.vector
        )
        return sorted(found)[:limit]

    async def version(self, workspace: str, kb_id: str) -> int:
        base = self._bases.get((workspace, kb_id))
        return base.version if base else 0

    async def chunks(self, workspace: str, kb_id: str, numbers: Sequence[int]) -> Sequence[FoundChunk]:
        wanted = set(numbers)
        return [
            FoundChunk(number, stored.chunk, document.row)
            for document in self._ready(workspace, kb_id)
            for number, stored in document.chunks.items()
            if number in wanted
        ]

    def _ready(self, workspace: str, kb_id: str) -> Iterator[_Document]:
        base = self._bases.get((workspace, kb_id))
        return (document for document in (base.documents.values() if base else ()) if document.ready)

    def _base_of(self, job: JobRow) -> _Base:
        base = self._bases.get((job.workspace_id, job.kb_id))
        if base is None or job.job_id not in self._jobs:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "the job is gone: its knowledge base was deleted")
        return base
