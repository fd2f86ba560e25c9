"""Models behind OpenAI's Responses API."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.models.openai import OpenAIChatModel
from paddock.models.wire import ServerSaidError, elements, file, picture, reason_of, thoughts_of
from paddock.ports.models import CalledTool, ModelAnswer, ModelCall, ModelPiece, Usage
from paddock.rules.agents.model_options import RESPONSES
from paddock.rules.agents.specs import ModelSpec
from paddock_sdk.protocol.messages import LLMTool, Message

REASONING = "openai_reasoning"
"""Where a message keeps the thoughts that the provider wants back, encrypted by it."""
_SEALED = {"reasoning": ("encrypted_content",)}


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: str | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    message: str | None = None
    error: Any = None


_read = msgspec.json.Decoder(_Event).decode
_read_whole = msgspec.json.Decoder(_Response).decode
_SPOKEN = frozenset({"response.output_text.delta", "response.refusal.delta"})
_ENDINGS = frozenset({"response.completed", "response.incomplete"})
_BROKEN = frozenset({"response.failed", "error"})


class ResponsesWire:
    options = RESPONSES

    def request(self, call: ModelCall, spec: ModelSpec, *, stream: bool) -> Mapping[str, Any]:
        body: dict[str, Any] = {"store": False, **spec.defaults, **call.extra_args}
        if spec.max_output_tokens:
            body.setdefault("max_output_tokens", spec.max_output_tokens)
        body |= {"model": spec.model, "input": [item for message in call.messages for item in _items(message)]}
        if call.tools:
            body["tools"] = [_offered(tool) for tool in call.tools]
        if stream:
            body["stream"] = True
        return body

    def collector(self) -> "ResponsesCollector":
        return ResponsesCollector()

    def answer(self, body: bytes) -> ModelAnswer:
        said = _read_whole(body)
        if said.error is not None or said.output is None:
            raise ServerSaidError(reason_of(said.error))
        output = Output()
        for item in said.output:
            output.add(item)
        return ModelAnswer(
            content="".join(output.texts),
            tool_calls=tuple(output.calls),
            finish_reason=_finish(said, output),
            extras=output.extras,
            usage=_usage(said.usage),
        )


class Output:
    """Collects a response item by item."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.calls: list[CalledTool] = []
        self._thoughts: list[dict[str, Any]] = []

    def add(self, item: Mapping[str, Any]) -> None:
        match item.get("type"):
            case "function_call":
                name, arguments = str(item.get("name") or ""), str(item.get("arguments") or "{}")
                self.calls.append(CalledTool(str(item.get("call_id") or item.get("id") or ""), name, arguments))
            case "reasoning" if item.get("encrypted_content"):
                self._thoughts.append(dict(item))
            case "message":
                parts: list[Mapping[str, Any]] = item.get("content") or []
                self.texts += [str(part.get("text") or part.get("refusal") or "") for part in parts]
            case _:
                pass

    @property
    def extras(self) -> dict[str, Any]:
        return {REASONING: self._thoughts} if self._thoughts else {}


class ResponsesCollector:
    __slots__ = ("_arguments", "_end", "_output", "_text_came", "finished")

    def __init__(self) -> None:
        self.finished = False
        self._output = Output()
        self._end = _Response()
        self._text_came = False
        self._arguments: list[str] = []

    @property
    def complete(self) -> bool:
        return self.finished

    @property
    def unsaid(self) -> Sequence[str]:
        return self._arguments

    def take(self, data: bytes) -> ModelPiece | None:
        if data == b"[DONE]":
            return None
        event = _read(data)
        if event.type in _SPOKEN:
            self._text_came = True
            return ModelPiece(event.delta or "") if event.delta else None
        if event.type == "response.reasoning_summary_text.delta":
            return ModelPiece("", event.delta or "") if event.delta else None
        if event.type == "response.function_call_arguments.delta" and event.delta:
            self._arguments.append(event.delta)
        if event.type in _BROKEN:
            raise ServerSaidError(reason_of(event.error or event.message or (event.response and event.response.error)))
        if event.type == "response.output_item.done" and event.item is not None:
            self._output.add(event.item)
        elif event.type in _ENDINGS and event.response is not None:
            self.finished, self._end = True, event.response
        return None

    def last(self) -> ModelPiece:
        return ModelPiece(
            content="" if self._text_came else "".join(self._output.texts),
            tool_calls=tuple(self._output.calls),
            final=True,
            finish_reason=_finish(self._end, self._output),
            extras=self._output.extras,
            usage=_usage(self._end.usage),
        )


def _finish(said: _Response, output: Output) -> str:
    if said.status == "incomplete":
        reason = (said.incomplete_details or {}).get("reason")
        return "length" if reason == "max_output_tokens" else str(reason or "incomplete")
    return "tool_calls" if output.calls else "stop"


def _usage(counted: _Usage | None) -> Usage | None:
    return None if counted is None else Usage(counted.input_tokens, counted.output_tokens, counted.total_tokens)


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": _output(message)}]
    role = message.role if message.role in {"system", "assistant"} else "user"
    items: list[dict[str, Any]] = []
    if role == "assistant":
        items += thoughts_of(message, REASONING, _SEALED, optional=("id", "summary"))
    parts = [part for element in elements(message) if (part := _part(element, role))]
    if parts:
        items.append({"type": "message", "role": role, "content": parts})
    for call in message.tool_calls or ():
        about = {"call_id": call.id, "name": call.function.name, "arguments": call.function.arguments}
        items.append({"type": "function_call", **about})
    return items


def _output(message: Message) -> str | list[dict[str, Any]]:
    if all(element.type == "text" for element in elements(message)):
        return message.text
    return [part for element in elements(message) if (part := _part(element, message.role))]


def _part(element: Any, role: str) -> dict[str, Any] | None:
    if (seen := picture(element)) is not None:
        return {"type": "input_image", "image_url": seen.as_url}
    if (given := file(element)) is not None:
        place = {"file_url": given.url} if given.url else {"file_data": given.as_url}
        return {"type": "input_file", "filename": element.file_name or "file", **place}
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": kind, "text": element.text} if element.text else None


def _offered(tool: LLMTool) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "strict": False, **about}


class OpenAIResponsesModel(OpenAIChatModel):
    wire = ResponsesWire()
    path = "responses"


MODEL = OpenAIResponsesModel
