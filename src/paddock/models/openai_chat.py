"""Models behind OpenAI's chat completions or anything compatible: Ollama, vLLM, DeepSeek, Kimi, Qwen and the rest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from paddock.models.remote import RemoteModel
from paddock.models.wire.openai_chat import ChatWire
from paddock.models.wire.sse import RubbishError
from paddock.ports.models import ModelCall
from paddock_sdk.protocol.host_calls import RerankEntry

if TYPE_CHECKING:
    from paddock.models.connections import Client

MAX_TEXTS = 256
"""Texts in one request for vectors."""
NO_KEY = "none"
"""What is sent to a server of one's own that wants no key; the library insists on something."""


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Vectors(msgspec.Struct):
    data: list[_Vector]


class _Ranked(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None


class _Ranking(msgspec.Struct):
    results: list[_Ranked]


_read_vectors = msgspec.json.Decoder(_Vectors).decode
_read_ranking = msgspec.json.Decoder(_Ranking).decode


class OpenAIChatModel(RemoteModel):
    wire = ChatWire()
    path = "chat/completions"
    usual_key = "OPENAI_API_KEY"

    def _library(self) -> Any:
        import openai

        return openai

    def _client(self, library: Any, key: str | None, base_url: str | None) -> "Client":
        return library.AsyncOpenAI(api_key=key or NO_KEY, base_url=base_url)

    async def embed(self, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]:
        if self.info.model_type != "embedding":
            return await super().embed(texts, deadline_at=deadline_at)
        found: list[list[float]] = []
        for start in range(0, len(texts), MAX_TEXTS):
            found += await self._vectors(list(texts[start : start + MAX_TEXTS]), deadline_at)
        return found

    async def _vectors(self, texts: list[str], deadline_at: float) -> list[list[float]]:
        asked = {"model": self.spec.model, "input": texts, "encoding_format": "float", **self.spec.defaults}

        def read(said: bytes) -> list[list[float]]:
            vectors = _read_vectors(said).data
            if len(vectors) != len(texts):
                raise RubbishError(f"{len(vectors)} vectors for {len(texts)} texts")
            return [one.embedding for one in sorted(vectors, key=lambda one: one.index)]

        return await self._whole("embeddings", asked, deadline_at, read)

    async def rerank(
        self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None, /
    ) -> Sequence[RerankEntry]:
        """OpenAI has none; Jina, Cohere, vLLM and others answer `POST /rerank` in one shape."""
        if self.info.model_type != "rerank":
            return await super().rerank(call, query, documents, top_k)
        asked: dict[str, Any] = {**self.spec.defaults, "model": self.spec.model}
        asked |= {"query": query, "documents": list(documents)} | ({} if top_k is None else {"top_n": top_k})

        def read(said: bytes) -> list[_Ranked]:
            results = _read_ranking(said).results
            if any(not 0 <= one.index < len(documents) for one in results):
                raise RubbishError("a rank for a document nobody sent")
            return results

        results = await self._whole("rerank", asked, call.deadline_at, read)
        best = sorted(results, key=lambda one: -_score(one))[:top_k]
        return [RerankEntry(index=one.index, relevance_score=_score(one)) for one in best]


def _score(one: _Ranked) -> float:
    return one.relevance_score if one.relevance_score is not None else one.score or 0.0
