"""Documents on their way in. One job after the other, workspaces in turn: read in a child process, cut, embedded if
asked for, stored.

A job's source is stored before anybody is told it was accepted. Cutting is deterministic, so a job that was
interrupted goes on after the chunks it had stored. Nothing here answers a question.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import anyio.to_thread
import msgspec
import structlog

from paddock.confinement.readers import read_apart
from paddock.knowledge.reading import Extracted
from paddock.knowledge.vectors import packed
from paddock.ports.knowledge import DocumentRow, JobRow, KnowledgeStore, Originals, StoredChunk
from paddock.rules.access.limits import next_after
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.people import Payer
from paddock.rules.search.passages import Chunk, chunks_of
from paddock.rules.search.tokens import tokens_of
from paddock.rules.values import replace

SECONDS = 120.0
MAX_OUTPUT_BYTES = 96 * 1024 * 1024


async def extract(name: str, content: bytes, *, seconds: float = SECONDS) -> Extracted:
    """The sections of a file. Raises HostError(INVALID_ARGUMENT) with the reason when it cannot be read."""
    command = ("-m", "paddock.knowledge.child", name[-64:])
    said = await read_apart(command, content, seconds=seconds, most_bytes=MAX_OUTPUT_BYTES)
    if said.code is None and not said.output:
        raise _unreadable(name, f"reading it took more than {seconds:g} s")
    return _judged(name, said.output, said.code)


def _judged(name: str, output: bytes, code: int | None) -> Extracted:
    if code != 0 or len(output) > MAX_OUTPUT_BYTES:
        raise _unreadable(name, "reading it needs more time or memory than a document may take")
    found = msgspec.json.decode(output, type=Extracted)
    if found.problem:
        raise _unreadable(name, found.problem)
    return found


def _unreadable(name: str, why: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, f"{name[:120]} cannot be read: {why}")


log = structlog.get_logger("paddock.knowledge")

PART = 32
"""Chunks that are embedded and stored together."""
EMBED_SECONDS = 60.0
RETRY_SECONDS = 5.0


class Embed(Protocol):
    """One vector per text, by the deadline in epoch seconds."""

    async def __call__(
        self, payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float
    ) -> Sequence[Sequence[float]]: ...


@dataclass(eq=False)
class Ingest:
    store: KnowledgeStore
    _: KW_ONLY
    embed: Embed | None = None
    clock: Callable[[], float] = time.time
    originals: Originals | None = None
    """Keeps what documents were made of; without it only their passages are kept."""
    may_work: Callable[[], bool] = lambda: True
    """Whether it is this host that works through the jobs, where several share them."""

    def __post_init__(self) -> None:
        self._wake = asyncio.Event()
        self._last = ""
        """The workspace that had its turn last."""

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Work through jobs for as long as the host runs, beginning with those an earlier start left."""
        swept = False
        while True:
            self._wake.clear()
            try:
                if not swept and self.may_work():
                    await self.store.sweep()
                    swept = True
                while self.may_work() and (job := await self.next_job()):
                    await self.do(job)
            except StorageUnavailableError as error:
                log.warning("ingest waits for the store", action="knowledge.ingest", reason=str(error))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._wake.wait()

    async def next_job(self) -> JobRow | None:
        """The oldest job of the workspace whose turn it is: one with a thousand documents delays another by one."""
        if not (waiting := await self.store.workspaces_with_jobs()):
            return None
        self._last = next_after(waiting, self._last)
        jobs = await self.store.unfinished_jobs(limit=1, workspace=self._last)
        return jobs[0] if jobs else await self.next_job()

    async def do(self, job: JobRow) -> JobRow:
        """One job to its end. A document that cannot be read fails it; only the store's absence leaves it open."""
        try:
            ended = await self._bring_in(job)
        except HostError as error:
            ended = replace(job, status="failed", message=error.message)
        except StorageUnavailableError:
            raise
        except Exception:
            log.exception("a document could not be brought in", action="knowledge.ingest", job_id=job.job_id)
            ended = replace(job, status="failed", message="the host made a mistake; its log has it")
        if not self.may_work():
            return job  # it is another host's by now, which goes on with it
        try:
            ended = replace(ended, content_hash="")  # the document has it, and takes it along when it goes
            await self.store.finish(ended)
        except HostError as gone:  # the base was deleted meanwhile, and the job with it; or another host ended it
            log.info("a job had ended already", action="knowledge.ingest", job_id=job.job_id, reason=gone.message)
            if self.originals is not None and ended.status == "completed":
                await self._drop_without_document(job)
        return ended

    async def _bring_in(self, job: JobRow) -> JobRow:
        known = await self.store.document_by_hash(job.workspace_id, job.kb_id, job.content_hash)
        if known is not None and known.document_id != job.document_id:
            await self._keep_original(job, known, await self.store.source(job.job_id))
            message = f"unchanged: {known.name} has the same content"
            return replace(job, status="completed", message=message, done=known.chunk_count, total=known.chunk_count)
        base = await self.store.base(job.workspace_id, job.kb_id)
        if base is None:
            raise HostError(ErrorCode.NOT_FOUND, f"there is no knowledge base {job.kb_id!r}")
        source = await self.store.source(job.job_id)
        found = await extract(job.name, source)
        chunks = await anyio.to_thread.run_sync(chunks_of, found.sections)
        if not chunks:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"{job.name[:120]} has no text (scanned pages need OCR first)")
        running = replace(job, status="running", total=len(chunks))
        document = _document(job, found, self.clock())
        stored = await self.store.begin(running, document)
        await self._store_rest(replace(running, done=stored), chunks, base.embedding_model)
        await self._keep_original(job, document, source)
        told = "1 passage" if len(chunks) == 1 else f"{len(chunks)} passages"
        return replace(running, status="completed", done=len(chunks), message=told)

    async def _keep_original(self, job: JobRow, document: DocumentRow, content: bytes) -> None:
        if self.originals is not None:
            await self.originals.keep(job, document, content)

    async def _drop_without_document(self, job: JobRow) -> None:
        """The original may have been kept after the base, and with it the document, was deleted."""
        known = await self.store.document_by_hash(job.workspace_id, job.kb_id, job.content_hash)
        if self.originals is not None and (known is None or known.document_id != job.document_id):
            await self.originals.drop(job.document_id)

    async def _store_rest(self, job: JobRow, chunks: Sequence[Chunk], model: str) -> None:
        for at in range(job.done, len(chunks), PART):
            part = chunks[at : at + PART]
            vectors = await self._vectors(Payer(job.workspace_id, job.user_id), model, part)
            tokens = await anyio.to_thread.run_sync(_tokens, part)
            stored = [StoredChunk(*one) for one in zip(part, tokens, vectors, strict=True)]
            await self.store.add_chunks(replace(job, done=at + len(part)), stored)

    async def _vectors(self, payer: Payer, model: str, chunks: Sequence[Chunk]) -> Sequence[bytes]:
        if not model:
            return [b""] * len(chunks)
        if self.embed is None:
            text = f"the base wants the embedding model {model!r}, and this host has no models; configure it"
            raise HostError(ErrorCode.UNAVAILABLE, text)
        texts = [f"{chunk.heading}\n{chunk.text}" if chunk.heading else chunk.text for chunk in chunks]
        return packed(await self.embed(payer, model, texts, deadline_at=self.clock() + EMBED_SECONDS), len(texts))


def _tokens(chunks: Sequence[Chunk]) -> list[str]:
    return [" ".join(tokens_of(f"{chunk.heading}\n{chunk.text}")) for chunk in chunks]


def _document(job: JobRow, found: Extracted, now: float) -> DocumentRow:
    return DocumentRow(
        document_id=job.document_id,
        name=job.name,
        media_type=found.media_type,
        content_hash=job.content_hash,
        size_bytes=job.size_bytes,
        created_at=now,
        metadata=job.metadata,
    )
