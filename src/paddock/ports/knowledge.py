"""Knowledge as the host sees it, bases per workspace and passages found in them, and what it needs from a store."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from paddock.rules.agents.resources import KnowledgeBaseInfo
from paddock.rules.people import Payer
from paddock.rules.rows.rows import AuditRow
from paddock.rules.search.passages import Chunk
from paddock.rules.search.tokens import Phrase
from paddock.rules.values import Value

JobStatus = Literal["queued", "running", "completed", "failed"]


class Passage(Value, frozen=True):
    """A place in a source that answers a question. `metadata` says where it stands, so that it can be cited."""

    passage_id: str
    text: str
    score: float
    metadata: Mapping[str, Any]


class KnowledgeFile(Value, frozen=True):
    """A document of a base whose original is kept, under the id of an artifact."""

    file_id: str
    name: str
    media_type: str
    kb_id: str


class Knowledge(Protocol):
    async def bases(self, workspace: str) -> Sequence[KnowledgeBaseInfo]: ...
    async def files(self, workspace: str) -> Sequence[KnowledgeFile]:
        """Originals of documents, the newest ones if there are many."""
        ...

    async def retrieve(
        self, payer: Payer, kb_id: str, query: str, *, top_k: int, filters: Mapping[str, Any]
    ) -> Sequence[Passage]:
        """Best first. Raises HostError(NOT_FOUND) for a base that is not of the payer's workspace."""
        ...


class BaseRow(Value, frozen=True):
    """One knowledge base. `embedding_model` empty: searched by words alone."""

    workspace_id: str
    kb_id: str
    name: str
    description: str
    embedding_model: str
    created_at: float


class DocumentRow(Value, frozen=True):
    """One document of a base. Its content hash is its identity: the same bytes are never there twice."""

    document_id: str
    name: str
    media_type: str
    content_hash: str
    size_bytes: int
    created_at: float
    metadata: bytes = b""
    """JSON object of whoever added it."""
    chunk_count: int = 0


class JobRow(Value, frozen=True):
    """One document on its way in. Its source is stored with it until it has ended, so any later start can go on."""

    job_id: str
    workspace_id: str
    kb_id: str
    document_id: str
    name: str
    content_hash: str
    """Empty when it has ended."""
    size_bytes: int
    created_at: float
    metadata: bytes = b""
    status: JobStatus = "queued"
    done: int = 0
    """Chunks stored so far."""
    total: int = 0
    """Chunks altogether; 0 until the text is extracted."""
    message: str = ""
    """How it ended, in a sentence."""
    user_id: str = ""
    """Who brought it in, and uses the embedding model for it."""


class KnowledgeBases(Knowledge, Protocol):
    """All of it: what runs ask, and what administrators do. Refusals are HostError with a sentence."""

    async def create(
        self, workspace: str, kb_id: str, audit: AuditRow, *, name: str = "", description: str = "", model: str = ""
    ) -> BaseRow: ...
    async def get(self, workspace: str, kb_id: str) -> BaseRow: ...
    async def list(self, workspace: str) -> Sequence[BaseRow]: ...
    async def delete(self, workspace: str, kb_id: str, audit: AuditRow) -> None: ...
    async def add(
        self, payer: Payer, kb_id: str, name: str, content: bytes, audit: AuditRow, metadata: Mapping[str, Any]
    ) -> JobRow:
        """Accept a document: it is stored when this returns, and found when its job has completed."""
        ...

    async def job(self, workspace: str, kb_id: str, job_id: str) -> JobRow: ...
    async def on_their_way(self, workspace: str, kb_id: str) -> Sequence[JobRow]:
        """Jobs of this base that have not ended, the oldest first."""
        ...

    async def documents(self, workspace: str, kb_id: str, *, after: str, limit: int) -> Sequence[DocumentRow]: ...
    async def delete_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> None: ...


class StoredChunk(Value, frozen=True):
    """A chunk ready to be stored: its tokens for the index, and its vector when the base has an embedding model."""

    chunk: Chunk
    tokens: str
    vector: bytes = b""


class FoundChunk(Value, frozen=True):
    chunk_no: int
    chunk: Chunk
    document: DocumentRow


class ChunkFilter(Value, frozen=True):
    """Which documents' chunks count; None filters nothing."""

    document_ids: frozenset[str] | None = None
    names: frozenset[str] | None = None
    media_types: frozenset[str] | None = None
    metadata: Mapping[str, Any] | None = None

    def passes(self, document: DocumentRow, metadata: Mapping[str, Any]) -> bool:
        return (
            (self.document_ids is None or document.document_id in self.document_ids)
            and (self.names is None or document.name in self.names)
            and (self.media_types is None or document.media_type in self.media_types)
            and all(metadata.get(key) == value for key, value in (self.metadata or {}).items())
        )


def original_id(document_id: str) -> str:
    """The id of the artifact that holds the original of a document; both databases know this form."""
    return f"doc_{document_id}"


class Originals(Protocol):
    """Keeps the bytes that documents were made of, as artifacts of their workspace."""

    async def keep(self, job: JobRow, document: DocumentRow, content: bytes) -> None:
        """Keep the original of a document, once. Raises HostError when the workspace has no room for it."""
        ...

    async def hashes(self, document_id: str) -> Sequence[str]:
        """The hash of a document's original, if it is kept."""
        ...

    async def drop(self, document_id: str) -> None:
        """Forget the original of a document that did not become one."""
        ...

    async def free(self, hashes: Sequence[str]) -> None:
        """Remove the bytes of documents that are gone, unless something else needs them."""
        ...


class KnowledgeStore(Protocol):
    """Bases, documents, chunks and jobs. Chunks of a document are found from its `finish` on, and not after its drop.

    Whatever is decided by a person comes with its audit row, written in the same commit.
    """

    async def bases(self, workspace: str) -> Sequence[BaseRow]: ...
    async def base(self, workspace: str, kb_id: str) -> BaseRow | None: ...
    async def add_base(self, row: BaseRow, audit: AuditRow) -> None:
        """Raises HostError(CONFLICT) when the workspace has one of that id."""
        ...

    async def drop_base(self, workspace: str, kb_id: str, audit: AuditRow) -> bool:
        """Delete the base with all its documents and jobs; False when there is none."""
        ...

    async def documents(
        self, workspace: str, kb_id: str, *, after: str = "", limit: int = 100
    ) -> Sequence[DocumentRow]:
        """Finished documents in order of id, after that one."""
        ...

    async def files(self, workspace: str, *, limit: int = 100) -> Sequence[KnowledgeFile]:
        """Finished documents whose original is kept, the newest first."""
        ...

    async def document_by_hash(self, workspace: str, kb_id: str, content_hash: str) -> DocumentRow | None: ...
    async def drop_document(self, workspace: str, kb_id: str, document_id: str, audit: AuditRow) -> bool: ...

    async def add_job(self, job: JobRow, source: bytes, audit: AuditRow) -> None: ...
    async def job(self, workspace: str, kb_id: str, job_id: str) -> JobRow | None: ...
    async def unfinished_jobs(self, *, limit: int = 100, workspace: str | None = None) -> Sequence[JobRow]:
        """Of a workspace, or of all, oldest first."""
        ...

    async def workspaces_with_jobs(self) -> Sequence[str]:
        """Those that have unfinished jobs."""
        ...

    async def source(self, job_id: str) -> bytes: ...
    async def begin(self, job: JobRow, document: DocumentRow) -> int:
        """Write down the job, and the document if it is not there; how many of its chunks are stored already."""
        ...

    async def add_chunks(self, job: JobRow, chunks: Sequence[StoredChunk]) -> None:
        """Store chunks of the job's document and the job's progress in one commit."""
        ...

    async def finish(self, job: JobRow) -> None:
        """The job has ended: completed, its document (if it brought one) is found from now on and takes the place of
        an older one of the same name; failed, it is gone. The source is dropped."""
        ...

    async def sweep(self) -> int:
        """Finish what an earlier start was about to drop; how many documents that were."""
        ...

    async def find(
        self, workspace: str, kb_id: str, terms: Sequence[Phrase], *, limit: int, only: ChunkFilter
    ) -> Sequence[tuple[int, float]]:
        """Numbers of chunks that contain some of the terms, best first, with scores above 0."""
        ...

    async def vectors(
        self, workspace: str, kb_id: str, *, after: int = 0, limit: int = 4096
    ) -> Sequence[tuple[int, bytes]]:
        """Vectors of chunks that can be found, in order of number, after that one."""
        ...

    async def version(self, workspace: str, kb_id: str) -> int:
        """Another number whenever something in the base may have changed."""
        ...

    async def chunks(self, workspace: str, kb_id: str, numbers: Sequence[int]) -> Sequence[FoundChunk]:
        """Those of them that can be found."""
        ...
