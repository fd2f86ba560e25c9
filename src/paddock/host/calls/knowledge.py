"""Knowledge for runners: passages of the granted bases, each with its position, and the originals of documents, which
are kept as artifacts."""

import math
from collections.abc import Mapping, Sequence

from paddock.host.calls.artifacts import Artifacts, free
from paddock.host.calls.metering import EMBED, Metering
from paddock.host.calls.work import CallHandler
from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs
from paddock.ports.knowledge import DocumentRow, JobRow, Knowledge, Passage, original_id
from paddock.ports.models import Models
from paddock.rules.access.artifacts import NewArtifact
from paddock.rules.access.permissions import Grant
from paddock.rules.people import Payer, about_tokens_in
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
        """Return passages, best first. The gate has checked that the base is granted."""
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
    """Originals of documents, as artifacts of their workspace without a user or a conversation. They count against its
    limit, are part of its backups, and can be read by runs that were granted them."""

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


class Embeddings:
    """Embeds texts for the knowledge bases, with the model that the settings name."""

    def __init__(self, models: Models, metering: Metering) -> None:
        self._models = models
        self._metering = metering

    async def __call__(
        self, payer: Payer, model_id: str, texts: Sequence[str], *, deadline_at: float
    ) -> Sequence[Sequence[float]]:
        workspace = payer.workspace_id
        info = self._models.find(workspace, model_id)
        if info is None:  # the catalog knows what is on its list
            return (await self._models.embed(workspace, model_id, texts, deadline_at=deadline_at)).vectors
        async with self._metering.around(payer, info, EMBED) as meter:
            meter.prompt_tokens = lambda: about_tokens_in(*texts)
            embedded = await self._models.embed(workspace, model_id, texts, deadline_at=deadline_at, lost=meter.lost)
            meter.usage = embedded.usage
        return embedded.vectors
