"""Knowledge for runners: passages of the bases a run was granted, each with the place it stands at."""

from collections.abc import Mapping

from paddock.host.work import Work
from paddock.ports.knowledge import Knowledge, Passage
from paddock.rules.permissions import Grant
from paddock_sdk.protocol.history import RetrievalResultEntry
from paddock_sdk.protocol.host_calls import KnowledgeRetrieveParams, KnowledgeRetrieveResult
from paddock_sdk.protocol.messages import ContentElement


class KnowledgeCalls:
    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    @property
    def work(self) -> Mapping[str, Work]:
        return {"knowledge.retrieve": Work(read=self.retrieve)}

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
