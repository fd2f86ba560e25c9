"""Models behind Anthropic's messages."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from paddock.models.remote import RemoteModel
from paddock.models.wire import ServerSaidError, elements, file, picture, reason_of, thoughts_of
from paddock.ports.models import CalledTool, ModelAnswer, ModelCall, ModelPiece, Usage
from paddock.rules.agents.model_options import ANTHROPIC
from paddock.rules.agents.specs import ModelSpec
from paddock_sdk.protocol.messages import LLMTool, Message, ToolCall

MAX_TOKENS = 8192
"""The API wants to be told how long an answer may get."""
THINKING = "thinking_blocks"
"""Where a message keeps the thoughts that the provider wants back, signed by it."""
_SIGNED: Mapping[str, Sequence[str]] = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
STATUS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class _Delta(msgspec.Struct):
    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Whole(msgspec.Struct):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    type: str = ""
    error: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Whole | None = None
    usage: _Usage | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Event).decode
_read_whole = msgspec.json.Decoder(_Whole).decode


class AnthropicWire:
    options = ANTHROPIC

    def request(self, call: ModelCall, spec: ModelSpec, *, stream: bool) -> Mapping[str, Any]:
        length = spec.max_output_tokens or MAX_TOKENS
        body: dict[str, Any] = {"max_tokens": length, **spec.defaults, **call.extra_args}
        system = "\n\n".join(message.text for message in call.messages if message.role == "system" and message.text)
        if system:
            body["system"] = system
        body |= {"model": spec.model, "messages": _turns(call.messages)}
        if call.tools:
            body["tools"] = [_offered(tool) for tool in call.tools]
        if stream:
            body["stream"] = True
        return body

    def collector(self) -> "AnthropicCollector":
        return AnthropicCollector()

    def answer(self, body: bytes) -> ModelAnswer:
        said = _read_whole(body)
        if said.error is not None or said.content is None:
            raise _error(said.error)
        blocks = dict(enumerate(said.content))
        for block in blocks.values():
            if block.type == "tool_use":
                block.input = msgspec.json.encode(block.input or {}).decode()
        return ModelAnswer(
            content="".join(block.text or "" for block in blocks.values() if block.type == "text"),
            tool_calls=_calls(blocks),
            finish_reason=REASONS.get(said.stop_reason or "", said.stop_reason),
            extras=_thoughts(blocks),
            usage=_counted(said.usage, None),
        )


class AnthropicCollector:
    __slots__ = ("_at_end", "_at_start", "_blocks", "_reason", "finished")

    def __init__(self) -> None:
        self.finished = False
        self._blocks: dict[int, _Block] = {}
        self._reason: str | None = None
        self._at_start: _Usage | None = None
        self._at_end: _Usage | None = None

    @property
    def complete(self) -> bool:
        return self.finished

    @property
    def unsaid(self) -> Sequence[str]:
        return [call.arguments for call in _calls(self._blocks)]

    def take(self, data: bytes) -> ModelPiece | None:
        event = _read(data)
        if event.type == "content_block_delta" and event.delta is not None:
            return self._grown(event.index, event.delta)
        match event.type:
            case "content_block_start" if event.content_block is not None:
                return self._begun(event.index, event.content_block)
            case "message_start" if event.message is not None:
                self._at_start = event.message.usage
            case "message_delta":
                self._at_end = event.usage
                self._reason = event.delta.stop_reason if event.delta else None
            case "message_stop":
                self.finished = True
            case "error":
                raise _error(event.error)
            case _:
                pass
        return None

    def _begun(self, index: int, block: _Block) -> ModelPiece | None:
        self._blocks[index] = block
        if block.type == "tool_use":
            block.input = ""
        return ModelPiece(block.text) if block.type == "text" and block.text else None

    def _grown(self, index: int, delta: _Delta) -> ModelPiece | None:
        if delta.type == "text_delta":
            return ModelPiece(delta.text) if delta.text else None
        block = self._blocks.get(index)
        if block is None:
            return None
        if delta.type == "input_json_delta":
            block.input += delta.partial_json or ""
        elif delta.type == "signature_delta":
            block.signature = (block.signature or "") + (delta.signature or "")
        elif delta.type == "thinking_delta" and delta.thinking:
            block.thinking = (block.thinking or "") + delta.thinking
            return ModelPiece("", delta.thinking)
        return None

    def last(self) -> ModelPiece:
        return ModelPiece(
            tool_calls=_calls(self._blocks),
            final=True,
            finish_reason=REASONS.get(self._reason or "", self._reason),
            extras=_thoughts(self._blocks),
            usage=_counted(self._at_start, self._at_end),
        )


def _calls(blocks: Mapping[int, _Block]) -> Sequence[CalledTool]:
    return tuple(
        CalledTool(block.id or f"call_{at + 1}", block.name or "", block.input or "{}")
        for at, block in sorted(blocks.items())
        if block.type == "tool_use"
    )


def _thoughts(blocks: Mapping[int, _Block]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for _, block in sorted(blocks.items()):
        if block.type == "thinking" and block.signature:
            found.append({"type": "thinking", "thinking": block.thinking or "", "signature": block.signature})
        elif block.type == "redacted_thinking":
            found.append({"type": "redacted_thinking", "data": block.data or ""})
    return {THINKING: found} if found else {}


def _counted(start: _Usage | None, end: _Usage | None) -> Usage | None:
    """Questions are counted at the start, cached ones apart; the answer at the end."""
    if start is None and end is None:
        return None
    first = start or end or _Usage()
    parts = (first.input_tokens, first.cache_creation_input_tokens, first.cache_read_input_tokens)
    prompt = None if first.input_tokens is None else sum(part or 0 for part in parts)
    completion = (end or first).output_tokens
    total = None if prompt is None or completion is None else prompt + completion
    return Usage(prompt, completion, total)


def _error(error: Any) -> ServerSaidError:
    about = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    return ServerSaidError(reason_of(error), STATUS.get(str(about.get("type")), 500))


def _turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """User and assistant in turn, as the API wants it: what one side says in a row is one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        parts = [part for element in elements(message) if (part := _part(element))]
        return [{**result, "content": parts}] if parts else [result]
    blocks: list[dict[str, Any]] = []
    if message.role == "assistant":
        blocks += thoughts_of(message, THINKING, _SIGNED)
    blocks += [part for element in elements(message) if (part := _part(element))]
    return blocks + [_used(call) for call in message.tool_calls or ()]


def _used(call: ToolCall) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(call.function.arguments or "{}")
    except msgspec.DecodeError:
        given = {}
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.function.name,
        "input": given if isinstance(given, dict) else {},
    }


def _part(element: Any) -> dict[str, Any] | None:
    if (seen := picture(element)) is not None:
        return {"type": "image", "source": _source(seen.url, seen.mime_type, seen.data)}
    if (given := file(element)) is not None:
        return {"type": "document", "source": _source(given.url, given.mime_type, given.data)}
    return {"type": "text", "text": element.text} if element.text else None


def _source(url: str | None, mime_type: str, data: str) -> dict[str, Any]:
    return {"type": "url", "url": url} if url else {"type": "base64", "media_type": mime_type, "data": data}


def _offered(tool: LLMTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters or {"type": "object"}}


VERSION = "2026-10-21"
"""Of the messages' wire; the provider wants it said with each question."""


class AnthropicModel(RemoteModel):
    wire = AnthropicWire()
    path = "v1/messages"
    usual_key = "ANTHROPIC_API_KEY"
    home = "https://api.anthropic.com"
    home_variable = "ANTHROPIC_BASE_URL"

    def _introduction(self, key: str | None) -> Mapping[str, str]:
        return {"anthropic-version": VERSION} | ({"Authorization": f"Bearer {key}"} if key else {})


MODEL = AnthropicModel
