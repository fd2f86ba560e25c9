"""Models behind OpenAI's chat completions or anything compatible: Ollama, vLLM, DeepSeek, Kimi, Qwen and the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.models.remote import Opening, RemoteModel
from paddock.models.wire.openai_chat import ChatWire
from paddock.models.wire.sse import RubbishError
from paddock.ports.models import ModelCall
from paddock_sdk.protocol.host_calls import RerankEntry

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


class OpenAIChatModel(RemoteModel):
    wire = ChatWire()
    usual_key = "OPENAI_API_KEY"

    def _library(self) -> Any:
        import openai

        return openai

    def _connect(self, library: Any, key: str | None, **common: Any) -> Any:
        return library.AsyncOpenAI(api_key=key or NO_KEY, **common)

    def _open(self, client: Any, body: Mapping[str, Any], **common: Any) -> Opening:
        named, rest = split(body, "model", "stream")
        create = client.chat.completions.with_streaming_response.create
        return create(**named, messages=(), extra_body=rest, **common)

    async def embed(self, texts: Sequence[str], *, deadline_at: float) -> Sequence[Sequence[float]]:
        if self.info.model_type != "embedding":
            return await super().embed(texts, deadline_at=deadline_at)
        found: list[list[float]] = []
        for start in range(0, len(texts), MAX_TEXTS):
            found += await self._vectors(list(texts[start : start + MAX_TEXTS]), deadline_at)
        return found

    async def _vectors(self, texts: list[str], deadline_at: float) -> list[list[float]]:
        async with self._sending(deadline_at) as (client, common):
            asked = {"model": self.spec.model, "input": texts, "encoding_format": "float"}
            create = client.embeddings.with_streaming_response.create
            async with create(**asked, extra_body=dict(self.spec.defaults), **common) as response:
                said = msgspec.json.decode(await response.read(), type=_Vectors)
            if len(said.data) != len(texts):
                raise RubbishError(f"{len(said.data)} vectors for {len(texts)} texts")
        return [one.embedding for one in sorted(said.data, key=lambda one: one.index)]

    async def rerank(
        self, call: ModelCall, query: str, documents: Sequence[str], top_k: int | None, /
    ) -> Sequence[RerankEntry]:
        """OpenAI has none; Jina, Cohere, vLLM and others answer `POST /rerank` in one shape."""
        if self.info.model_type != "rerank":
            return await super().rerank(call, query, documents, top_k)
        import httpx2

        asked: dict[str, Any] = {"model": self.spec.model, "query": query, "documents": list(documents)}
        if top_k is not None:
            asked["top_n"] = top_k
        async with self._sending(call.deadline_at) as (client, common):
            options = {"timeout": common["timeout"], "headers": common["extra_headers"]}
            body = {**self.spec.defaults, **asked}
            raw = await client.post("/rerank", cast_to=httpx2.Response, body=body, options=options)
            said = msgspec.json.decode(raw.content, type=_Ranking)
            if any(not 0 <= one.index < len(documents) for one in said.results):
                raise RubbishError("a rank for a document nobody sent")
        best = sorted(said.results, key=lambda one: -_score(one))[:top_k]
        return [RerankEntry(index=one.index, relevance_score=_score(one)) for one in best]


def _score(one: _Ranked) -> float:
    return one.relevance_score if one.relevance_score is not None else one.score or 0.0


def split(body: Mapping[str, Any], *names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the client's method takes by name, and everything else, which it passes on as it is.

    The conversation is among the rest: by name the client walks through every part of it looking for fields to rename,
    which costs milliseconds, and what is in the rest wins over what is named.
    """
    named = {name: body[name] for name in names if name in body}
    return named, {name: value for name, value in body.items() if name not in named}
