"""Models behind OpenAI's chat completions or anything compatible: Ollama, vLLM, DeepSeek, Kimi, Qwen and the rest."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.models.remote import RemoteModel
from paddock.models.wire import RubbishError, ServerSaidError, elements, file, picture, reason_of
from paddock.ports.models import CalledTool, Embedded, ModelAnswer, ModelCall, ModelPiece, Ranking, Usage
from paddock.rules.agents.model_options import CHAT
from paddock.rules.agents.specs import ModelSpec
from paddock_sdk.protocol.host_calls import RerankEntry
from paddock_sdk.protocol.messages import LLMTool, Message

ROLES: Mapping[str, str] = {"system": "system", "assistant": "assistant", "tool": "tool"}
"""Everybody else is a user to a model."""
FROM_TOOLS = "(What the tools gave back, in order:)"


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function
    index: int | None = None
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None
    refusal: str | None = None


_NOTHING = _Message()


class _Choice(msgspec.Struct):
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Completion).decode


class ChatWire:
    options = CHAT

    def request(self, call: ModelCall, spec: ModelSpec, *, stream: bool) -> Mapping[str, Any]:
        body: dict[str, Any] = {**spec.defaults, **call.extra_args}
        if spec.max_output_tokens and not {"max_tokens", "max_completion_tokens"} & set(body):
            limit = (
                "max_tokens" if spec.base_url else "max_completion_tokens"
            )  # the old word, which all but OpenAI know
            body[limit] = spec.max_output_tokens
        body |= {"model": spec.model, "messages": _conversation(call.messages)}
        if call.tools:
            body["tools"] = [_offered(tool) for tool in call.tools]
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def collector(self) -> "ChatCollector":
        return ChatCollector()

    def answer(self, body: bytes) -> ModelAnswer:
        said = _read(body)
        if said.error is not None or not said.choices:
            raise ServerSaidError(reason_of(said.error))
        message = said.choices[0].message or _NOTHING
        calls = ToolCallParts()
        for call in message.tool_calls or ():
            calls.add(call)
        reasoning = message.reasoning_content or message.reasoning
        return ModelAnswer(
            content=message.content or message.refusal or "",
            tool_calls=calls.whole(),
            finish_reason=said.choices[0].finish_reason,
            extras={"reasoning_content": reasoning} if reasoning else {},
            usage=_usage(said.usage),
        )


class ChatCollector:
    __slots__ = ("_calls", "_reason", "_usage", "finished")

    def __init__(self) -> None:
        self.finished = False
        self._calls = ToolCallParts()
        self._reason: str | None = None
        self._usage: Usage | None = None

    def take(self, data: bytes) -> ModelPiece | None:
        if data == b"[DONE]":
            self.finished = True
            return None
        said = _read(data)
        if said.error is not None:
            raise ServerSaidError(reason_of(said.error))
        if said.usage is not None:
            self._usage = _usage(said.usage)
        return self._choice(said.choices[0]) if said.choices else None

    def _choice(self, choice: _Choice) -> ModelPiece | None:
        if choice.finish_reason is not None:
            self._reason = choice.finish_reason
        delta = choice.delta
        if delta is None:
            return None
        for call in delta.tool_calls or ():
            self._calls.add(call)
        content = delta.content or delta.refusal
        if content:
            return ModelPiece(content)
        reasoning = delta.reasoning_content or delta.reasoning
        return ModelPiece("", reasoning) if reasoning else None

    def last(self) -> ModelPiece:
        return ModelPiece(tool_calls=self._calls.whole(), final=True, finish_reason=self._reason, usage=self._usage)

    @property
    def complete(self) -> bool:
        """Some servers close without [DONE]; a reason to finish is as good."""
        return self.finished or self._reason is not None

    @property
    def unsaid(self) -> Sequence[str]:
        return [call.arguments for call in self._calls.whole()]


class ToolCallParts:
    """Tool calls put together from the parts they come in."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[list[str], list[str], list[str]]] = {}

    def add(self, part: _ToolCall) -> None:
        at = part.index if part.index is not None else self._place(part)
        ids, names, arguments = self._parts.setdefault(at, ([], [], []))
        if part.id and not ids:
            ids.append(part.id)
        if part.function.name and not names:
            names.append(part.function.name)
        if part.function.arguments:
            arguments.append(part.function.arguments)

    def _place(self, part: _ToolCall) -> int:
        """A server that does not number its calls begins a new one whenever it gives an id or a name."""
        return len(self._parts) if part.id or part.function.name or not self._parts else len(self._parts) - 1

    def whole(self) -> Sequence[CalledTool]:
        return tuple(
            CalledTool("".join(ids) or f"call_{at + 1}", "".join(names), "".join(arguments) or "{}")
            for at, (ids, names, arguments) in sorted(self._parts.items())
        )


def _usage(counted: _Usage | None) -> Usage | None:
    if counted is None:
        return None
    asked, said, total = counted.prompt_tokens, counted.completion_tokens, counted.total_tokens
    if total is None and asked is not None and said is not None:
        total = asked + said
    return Usage(asked, said, total)


def _conversation(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """In their order. What a tool says is text only: its pictures follow right behind the results of that round."""
    said: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for message in messages:
        if message.role != "tool":
            said += _shown(pictures)
            pictures = []
        else:
            pictures += [part for element in elements(message) if element.type != "text" and (part := _part(element))]
        said.append(_said(message))
    return said + _shown(pictures)


def _shown(pictures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": FROM_TOOLS}, *pictures]}] if pictures else []


def _said(message: Message) -> dict[str, Any]:
    role = ROLES.get(message.role, "user")
    said: dict[str, Any] = {"role": role, "content": _content(message)}
    if message.name and role == "user":
        said["name"] = message.name
    if message.tool_calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": call.function.model_dump()} for call in message.tool_calls
        ]
    if role == "tool":
        said["tool_call_id"] = message.tool_call_id or ""
    reasoning = (message.provider_specific_fields or {}).get("reasoning_content")
    if role == "assistant" and message.tool_calls and isinstance(reasoning, str):
        said["reasoning_content"] = reasoning  # servers that think between tool calls want their thoughts back
    return said


def _content(message: Message) -> str | list[dict[str, Any]] | None:
    if not isinstance(message.content, list):
        return message.content if message.content is not None or message.tool_calls else ""
    if message.role == "tool" or all(element.type == "text" for element in message.content):
        return message.text
    return [part for element in elements(message) if (part := _part(element))]


def _part(element: Any) -> dict[str, Any] | None:
    if (seen := picture(element)) is not None:
        return {"type": "image_url", "image_url": {"url": seen.as_url}}
    if (given := file(element)) is not None:
        return {"type": "file", "file": {"filename": element.file_name or "file", "file_data": given.as_url}}
    return {"type": "text", "text": element.text} if element.text else None


def _offered(tool: LLMTool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": about}


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
        """Count everything as input: the answer is numbers."""
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


MODEL = OpenAIChatModel


def _added(parts: Sequence[Usage | None]) -> Usage | None:
    """Add up the usage of all parts of one question; None when one of them was not counted."""
    counted = [part.total_tokens for part in parts if part is not None and part.total_tokens is not None]
    return Usage(sum(counted), 0, sum(counted)) if len(counted) == len(parts) else None


def _score(one: _Ranked) -> float:
    return one.relevance_score if one.relevance_score is not None else one.score or 0.0
