"""Knowledge bases as the host uses them: made, filled, asked, deleted. Words find passages, vectors too where the base
has an embedding model, and both rankings become one.
"""

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from typing import Any, cast

import msgspec
import structlog

from paddock.knowledge.ingest import EMBED_SECONDS, Embed, Ingest
from paddock.knowledge.vectors import Vectors, packed
from paddock.ports.knowledge import (
    BaseRow,
    ChunkFilter,
    DocumentRow,
    FoundChunk,
    JobRow,
    KnowledgeBaseInfo,
    KnowledgeFile,
    KnowledgeStore,
    Originals,
    Passage,
)
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import Payer
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.passages import bounded, fuse
from paddock.rules.search.tokens import terms_of

log = structlog.get_logger("paddock.knowledge")

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
MAX_METADATA_BYTES = 16 * 1024
MAX_WAITING_JOBS, MAX_JOBS = 200, 4000
"""Documents on their way in, of one workspace and in all."""
MAX_PASSAGES = 100
MAX_FILES = 100
"""Originals of a workspace that a run is told of: their ids are part of its context and of its grant."""
DEPTH = 50
"""How far each ranking is read before they are merged."""
FILTERED_DEPTH = 1000
"""How many of the nearest are looked at when only some documents count."""
EVERYTHING = ChunkFilter()
FILTERS = ("document_ids", "documents", "media_types", "metadata")
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(eq=False)
class Bases:
    """The `Knowledge` port, and what administrators do with it."""

    store: KnowledgeStore
    ingest: Ingest
    _: KW_ONLY
    embed: Embed | None = None
    clock: Callable[[], float] = time.time
    originals: Originals | None = None

    def __post_init__(self) -> None:
        self._vectors = Vectors(self.store)

    async def bases(self, workspace: str) -> Sequence[KnowledgeBaseInfo]:
        return [_info(row) for row in await self.store.bases(workspace)]

    async def files(self, workspace: str) -> Sequence[KnowledgeFile]:
        return await self.store.files(workspace, limit=MAX_FILES)

    async def retrieve(
        self, payer: Payer, kb_id: str, query: str, *, top_k: int, filters: Mapping[str, Any]
    ) -> Sequence[Passage]:
        if not 1 <= top_k <= MAX_PASSAGES:
            raise _invalid(f"top_k must be from 1 to {MAX_PASSAGES}")
        if not query.strip():
            raise _invalid("the query is empty: say what to look for")
        only = chunk_filter(filters)
        base = await self.get(payer.workspace_id, kb_id)
        scored = await self._ranked(payer, base, query, top_k, only)
        numbers = [number for number, _ in scored]
        found = {one.chunk_no: one for one in await self.store.chunks(payer.workspace_id, kb_id, numbers)}
        return [_passage(found[number], score) for number, score in scored if number in found][:top_k]

    async def _ranked(
        self, payer: Payer, base: BaseRow, query: str, top_k: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        place = (base.workspace_id, base.kb_id)
        if not base.embedding_model or self.embed is None:
            words = await self.store.find(*place, terms_of(query), limit=top_k, only=only)
            return [(number, bounded(score)) for number, score in words]
        depth, wanted = (
            max(top_k, DEPTH),
            self.embed(payer, base.embedding_model, [query], deadline_at=self._deadline()),
        )
        words, near = await asyncio.gather(  # the words need not wait for the embedding model's answer
            self.store.find(*place, terms_of(query), limit=depth, only=only),
            self._near(place, wanted, depth, only),
            return_exceptions=True,
        )
        if isinstance(words, BaseException):
            raise words
        return fuse([number for number, _ in words], _or_nothing(near, base, words_found=bool(words)))

    def _deadline(self) -> float:
        return self.clock() + EMBED_SECONDS

    async def _near(
        self, place: tuple[str, str], embedded: Awaitable[Sequence[Sequence[float]]], depth: int, only: ChunkFilter
    ) -> Sequence[int]:
        (wanted,) = packed(await embedded, 1)
        if only == EVERYTHING:
            return await self._vectors.nearest(place, wanted, depth)
        near = await self._vectors.nearest(place, wanted, FILTERED_DEPTH)
        found = await self.store.chunks(*place, near)
        counting = {one.chunk_no for one in found if only.passes(one.document, _metadata(one.document))}
        return [number for number in near if number in counting][:depth]

    # --- what administrators do

    async def create(
        self, workspace: str, kb_id: str, audit: AuditRow, *, name: str = "", description: str = "", model: str = ""
    ) -> BaseRow:
        if not _ID.fullmatch(kb_id):
            raise _invalid("a knowledge base's id has 1 to 64 of a-z, 0-9, - and _, and begins with a letter or digit")
        row = BaseRow(workspace, kb_id, name or kb_id, description, model, self.clock())
        await self.store.add_base(row, audit)
        return row

    async def list(self, workspace: str) -> Sequence[BaseRow]:
        return await self.store.bases(workspace)

    async def delete(self, workspace: str, kb_id: str, audit: AuditRow) -> None:
        hashes = await self._hashes(workspace, kb_id)
        if not await self.store.drop_base(workspace, kb_id, audit):
            raise _no_base(kb_id)
        await self._free(hashes)

    async def add(
        self, payer: Payer, kb_id: str, name: str, content: bytes, audit: AuditRow, metadata: Mapping[str, Any]
    ) -> JobRow:
        _check_document(name, content, metadata)
        await self.get(payer.workspace_id, kb_id)
        await self._check_room(payer.workspace_id)
        job = JobRow(
            job_id=str(uuid.uuid4()),
            workspace_id=payer.workspace_id,
            kb_id=kb_id,
            document_id=str(uuid.uuid4()),
            name=name,
            content_hash=sha256(content).hexdigest(),
            size_bytes=len(content),
            created_at=self.clock(),
            metadata=msgspec.json.encode(metadata),
            user_id=payer.user_id,
        )
        await self.store.add_job(job, content, audit)
        self.ingest.wake()
        return job

    async def job(self, workspace: str, kb_id: str, job_id: str) -> JobRow:
        job = await self.store.job(workspace, kb_id, job_id)
        if job is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such job")
        return job

    async def on_their_way(self, workspace: str, kb_id: str) -> Sequence[JobRow]:
        await self.get(workspace, kb_id)
        waiting = await self.store.unfinished_jobs(limit=MAX_WAITING_JOBS, workspace=workspace)
        return [job for job in waiting if job.kb_id == kb_id]

    async def _check_room(self, workspace: str) -> None:
        mine = await self.store.unfinished_jobs(limit=MAX_WAITING_JOBS, workspace=workspace)
        if len(mine) >= MAX_WAITING_JOBS or len(await self.store.unfinished_jobs(limit=MAX_JOBS)) >= MAX_JOBS:
            raise HostError(ErrorCode.RATE_LIMITED, "too many documents are waiting; try again shortly", retryable=True)

    async def documents(self, workspace: str, kb_id: str, *, after: str, limit: int) -> Sequence[DocumentRow]:
        await self.get(workspace, kb_id)
        return await self.store.documents(workspace, kb_id, after=after, limit=limit)

    async def delete_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> None:
        await self.get(workspace, kb_id)
        hashes = await self.originals.hashes(document_id) if self.originals is not None else ()
        if not await self.store.drop_document(workspace, kb_id, document_id, audit):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such document in this knowledge base")
        await self._free(hashes)

    async def _hashes(self, workspace: str, kb_id: str) -> Sequence[str]:
        found: list[str] = []
        after = ""
        while self.originals is not None:
            page = await self.store.documents(workspace, kb_id, after=after, limit=1000)
            if not page:
                break
            found += [document.content_hash for document in page]
            after = page[-1].document_id
        return found

    async def _free(self, hashes: Sequence[str]) -> None:
        if self.originals is not None and hashes:
            await self.originals.free(hashes)

    async def get(self, workspace: str, kb_id: str) -> BaseRow:
        base = await self.store.base(workspace, kb_id)
        if base is None:
            raise _no_base(kb_id)
        return base


def _or_nothing(near: Sequence[int] | BaseException, base: BaseRow, *, words_found: bool) -> Sequence[int]:
    """Return the passages near in meaning; none while the embedding model fails and words found some."""
    if not isinstance(near, BaseException):
        return near
    if not isinstance(near, HostError) or not words_found:
        raise near
    log.warning("found by words only", action="knowledge.retrieve", kb_id=base.kb_id, reason=near.message)
    return ()


def chunk_filter(filters: Mapping[str, Any]) -> ChunkFilter:
    """Read the filters of a question; what cannot be meant is refused with a sentence."""
    unknown = next((name for name in filters if name not in FILTERS), None)
    if unknown is not None:
        raise _invalid(f"there is no filter {str(unknown)[:64]!r}; known are {', '.join(FILTERS)}")
    metadata = filters.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise _invalid("filters.metadata must be an object")
    return ChunkFilter(
        document_ids=_names(filters, "document_ids"),
        names=_names(filters, "documents"),
        media_types=_names(filters, "media_types"),
        metadata=cast("Mapping[str, Any] | None", metadata),
    )


def _names(filters: Mapping[str, Any], name: str) -> frozenset[str] | None:
    value = filters.get(name)
    if value is None:
        return None
    names = cast("list[object]", value) if isinstance(value, list) else [None]
    if len(names) > 256 or not all(isinstance(one, str) for one in names):
        raise _invalid(f"filters.{name} must be a list of at most 256 strings")
    return frozenset(cast("list[str]", names))


def _check_document(name: str, content: bytes, metadata: Mapping[str, Any]) -> None:
    if not 0 < len(name) <= 255 or not name.isprintable():
        raise _invalid("a document's name has 1 to 255 printable characters")
    if not content:
        raise _invalid("the document is empty")
    if len(content) > MAX_DOCUMENT_BYTES:
        text = f"a document may have at most {MAX_DOCUMENT_BYTES} bytes; split it"
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text)
    if len(msgspec.json.encode(metadata)) > MAX_METADATA_BYTES:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"metadata may have at most {MAX_METADATA_BYTES} bytes of JSON")


def _info(row: BaseRow) -> KnowledgeBaseInfo:
    kind = "hybrid" if row.embedding_model else "lexical"
    return KnowledgeBaseInfo(row.kb_id, row.name, kind, row.description)


def _metadata(document: DocumentRow) -> dict[str, Any]:
    return msgspec.json.decode(document.metadata) if document.metadata else {}


def _passage(found: FoundChunk, score: float) -> Passage:
    chunk, document = found.chunk, found.document
    place: dict[str, Any] = {
        "document_id": document.document_id,
        "document": document.name,
        "media_type": document.media_type,
        "position": chunk.position,
        "start": chunk.start,
        "end": chunk.end,
        "page": chunk.page,
        "heading": chunk.heading or None,
        "metadata": _metadata(document) or None,
    }
    cited = {name: value for name, value in place.items() if value is not None}
    return Passage(f"{document.document_id}.{chunk.position}", chunk.text, score, cited)


def _no_base(kb_id: str) -> HostError:
    return HostError(ErrorCode.NOT_FOUND, f"there is no knowledge base {kb_id[:64]!r} in this workspace")


def _invalid(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)
