"""The demo model behind the pretend host: what the official runners are tried with, without a host around them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddock_demo.answers import answer

MODEL: dict[str, Any] = {"model_id": "demo", "operations": ["invoke", "stream"], "context_window": 32_768}
NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
ADD: dict[str, Any] = {
    "tool_name": "add",
    "operations": ["call"],
    "description": "Add two numbers.",
    "parameters": NUMBERS,
}


def demo(asked: list[Any]) -> Callable[[Any], list[Any]]:
    """Answers `models.stream` as the demo model does; every question is kept in `asked`."""

    def stream(params: Any) -> list[Any]:
        asked.append(params)
        said = answer(params.messages, params.tools or [])
        calls = [
            {"id": one.call_id, "function": {"name": one.name, "arguments": one.arguments}} for one in said.tool_calls
        ]
        chunk: dict[str, Any] = {"content": said.content, "is_final": True, **({"tool_calls": calls} if calls else {})}
        return [{"chunk": chunk, "usage": {"total_tokens": said.prompt_tokens + said.completion_tokens}}]

    return stream


def adding(params: Any) -> Mapping[str, Any]:
    return {"result": params.parameters["a"] + params.parameters["b"]}


def resources(*tools: Mapping[str, Any], window: int = 32_768, **more: Any) -> dict[str, Any]:
    return {"models": [{**MODEL, "context_window": window}], "tools": list(tools), **more}


def shown(params: Any) -> list[dict[str, Any]]:
    """The messages of a question, as they went over the wire."""
    return [message.to_wire() for message in params.messages]


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(message.get("content")) for message in messages]
