"""Knowledge as the host sees it: bases per workspace, passages found in them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddock.rules.values import Value


class KnowledgeBaseInfo(Value, frozen=True):
    kb_id: str
    name: str
    kb_type: str = "lexical"
    description: str = ""


class Passage(Value, frozen=True):
    """A place in a source that answers a question. `metadata` says where it stands, so that it can be cited."""

    passage_id: str
    text: str
    score: float
    metadata: Mapping[str, Any]


class Knowledge(Protocol):
    async def bases(self, workspace: str) -> Sequence[KnowledgeBaseInfo]: ...
    async def retrieve(
        self, workspace: str, kb_id: str, query: str, *, top_k: int, filters: Mapping[str, Any]
    ) -> Sequence[Passage]:
        """Best first. Raises HostError(NOT_FOUND) for a base that is not of this workspace."""
        ...
