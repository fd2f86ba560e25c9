"""Knowledge for runners: passages of the bases a run was granted, each with the place it stands at, and the documents
they are of, kept as artifacts."""

import math
from collections.abc import Mapping, Sequence

from paddock.host.calls.artifacts import Artifacts
from paddock.host.calls.work import CallHandler
from paddock.host.keeping.sweeping import free
from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs
from paddock.ports.knowledge import DocumentRow, JobRow, Knowledge, Passage, original_id
from paddock.rules.access.artifacts import NewArtifact
from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import ArtifactGone
from paddock_sdk.protocol.history import RetrievalResultEntry
from paddock_sdk.protocol.host_calls import KnowledgeRetrieveParams, KnowledgeRetrieveResult
from paddock_sdk.protocol.messages import ContentElement


class KnowledgeCalls:
    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {"knowledge.retrieve": CallHandler(read=self.retrieve)}

    async def retrieve(self, grant: Grant, asked: KnowledgeRetrieveParams) -> KnowledgeRetrieveResult:
        """Best first. The gate has checked that the base is in the grant."""
        passages = await self._knowledge.retrieve(
            grant.scope.payer, asked.kb_id, asked.query_text, top_k=asked.top_k, filters=asked.filters or {}
        )
        return KnowledgeRetrieveResult(results=[_entry(passage) for passage in passages])


def _entry(passage: Passage) -> RetrievalResultEntry:
    return RetrievalResultEntry(
        id=passage.passage_id,
        content=[ContentElement(type="text", text=passage.text)],
        metadata=dict(passage.metadata),
        distance=1.0 - passage.score,
        score=passage.score,
    )


class DocumentOriginals:
    """Originals of documents as artifacts of their workspace, of no user and of no conversation: they count against its
    room, are in its backups, and are readable by runs that were granted them."""

    def __init__(self, artifacts: Artifacts, records: KeptRecords, blobs: Blobs) -> None:
        self._artifacts = artifacts
        self._records = records
        self._blobs = blobs

    async def keep(self, job: JobRow, document: DocumentRow, content: bytes) -> None:
        artifact_id = original_id(document.document_id)
        if await self._records.artifact(artifact_id) is not None:
            return
        new = NewArtifact(
            job.workspace_id,
            "system",
            artifact_type="document",
            name=document.name,
            claimed_mime=document.media_type,
        )
        await self._artifacts.keep(new, content, max_bytes=len(content), artifact_id=artifact_id, keep_seconds=math.inf)

    async def hashes(self, document_id: str) -> Sequence[str]:
        row = await self._records.artifact(original_id(document_id))
        return [row.sha256] if row is not None else []

    async def drop(self, document_id: str) -> None:
        hashes = await self.hashes(document_id)
        await self._records.write([ArtifactGone(original_id(document_id))])
        await self.free(hashes)

    async def free(self, hashes: Sequence[str]) -> None:
        await free(self._records, self._blobs, hashes)
