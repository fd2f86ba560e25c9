"""Models behind OpenAI's chat completions or anything compatible: Ollama, vLLM, DeepSeek, Kimi, Qwen and the rest."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.models.remote import RemoteModel
from paddock.models.wire.openai_chat import ChatWire
from paddock.models.wire.sse import RubbishError
from paddock.ports.models import Embedded, ModelCall, Ranking, Usage
from paddock_sdk.protocol.host_calls import RerankEntry

MAX_TEXTS = 256
"""Texts in one request for vectors."""
ACCOUNT = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
"""Who pays at OpenAI, where a key belongs to several: variables that people set, and the headers they become."""


class _Vector(msgspec.Struct):
    index: int
    embedding: list[float]


class _Used(msgspec.Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None

    def counted(self) -> Usage | None:
        """All of it is the question: what comes back are numbers."""
        used = self.total_tokens if self.total_tokens is not None else self.prompt_tokens
        return None if used is None else Usage(used, 0, used)


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: _Used | None = None


class _Ranked(msgspec.Struct):
    index: int
    relevance_score: float | None = None
    score: float | None = None


class _Ranking(msgspec.Struct):
    results: list[_Ranked]
    usage: _Used | None = None


_read_vectors = msgspec.json.Decoder(_Vectors).decode
_read_ranking = msgspec.json.Decoder(_Ranking).decode


class OpenAIChatModel(RemoteModel):
    wire = ChatWire()
    path = "chat/completions"
    usual_key = "OPENAI_API_KEY"
    home = "https://api.openai.com/v1"
    home_variable = "OPENAI_BASE_URL"

    def _introduction(self, key: str | None) -> Mapping[str, str]:
        account = {header: value for name, header in ACCOUNT.items() if (value := os.environ.get(name))}
        return {"Authorization": f"Bearer {key}", **account} if key else account

    async def embed(self, call: ModelCall, texts: Sequence[str], /) -> Embedded:
        if self.info.model_type != "embedding":
            return await super().embed(call, texts)
        parts = [
            await self._vectors(list(texts[start : start + MAX_TEXTS]), call)
            for start in range(0, len(texts), MAX_TEXTS)
        ]
        return Embedded([vector for part in parts for vector in part.vectors], _added([part.usage for part in parts]))

    async def _vectors(self, texts: list[str], call: ModelCall) -> Embedded:
        asked = {"model": self.spec.model, "input": texts, "encoding_format": "float", **self.spec.defaults}

        def read(said: bytes) -> Embedded:
            answer = _read_vectors(said)
            if len(answer.data) != len(texts):
                raise RubbishError(f"{len(answer.data)} vectors for {len(texts)} texts")
            vectors = [one.embedding for one in sorted(answer.data, key=lambda one: one.index)]
            return Embedded(vectors, answer.usage and answer.usage.counted())

        return await self._whole("embeddings", asked, call, read)

    async def rerank(self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None, /) -> Ranking:
        """OpenAI has none; Jina, Cohere, vLLM and others answer `POST /rerank` in one shape."""
        if self.info.model_type != "rerank":
            return await super().rerank(call, query, documents, top_k)
        asked: dict[str, Any] = {**self.spec.defaults, "model": self.spec.model}
        asked |= {"query": query, "documents": list(documents)} | ({} if top_k is None else {"top_n": top_k})

        def read(said: bytes) -> _Ranking:
            ranking = _read_ranking(said)
            if any(not 0 <= one.index < len(documents) for one in ranking.results):
                raise RubbishError("a rank for a document nobody sent")
            return ranking

        ranking = await self._whole("rerank", asked, call, read)
        best = sorted(ranking.results, key=lambda one: -_score(one))[:top_k]
        entries = [RerankEntry(index=one.index, relevance_score=_score(one)) for one in best]
        return Ranking(entries, ranking.usage and ranking.usage.counted())


def _added(parts: Sequence[Usage | None]) -> Usage | None:
    """What all parts of one question used; None when one of them was not counted."""
    counted = [part.total_tokens for part in parts if part is not None and part.total_tokens is not None]
    return Usage(sum(counted), 0, sum(counted)) if len(counted) == len(parts) else None


def _score(one: _Ranked) -> float:
    return one.relevance_score if one.relevance_score is not None else one.score or 0.0
