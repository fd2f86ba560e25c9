"""What a runner says during a run, as the hot path reads it, and which of it is well formed. Pure.

The same shape as `paddock_sdk.protocol.results.AgentRunResult`; a test proves that both read the same.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from paddock.rules.limits import MAX_ARTIFACT_INLINE_BYTES, MAX_STATE_KEY_CHARS, MAX_STATE_VALUE_BYTES

MAX_RESULT_BYTES = 1_048_576
TERMINAL_TYPES = frozenset({"run.completed", "run.failed"})


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a run. Unknown types are kept and ignored with a warning by whoever decides."""

    run_id: str
    type: str
    data: dict[str, Any] = {}
    sequence: int | None = None
    timestamp: float | None = None


class Wrong(msgspec.Struct, frozen=True):
    """Why a result ends its run: it cannot be read as what it says it is."""

    code: str
    message: str


def problem_with(result: Result, size: int) -> Wrong | None:
    """The first thing wrong with a result, or None. Unknown types are never wrong."""
    if size > MAX_RESULT_BYTES:
        text = f"a {result.type} of {size} bytes is over the cap of {MAX_RESULT_BYTES}; send large data as an artifact"
        return Wrong("payload_too_large", text)
    shape = SHAPES.get(result.type)
    what = shape(result.data) if shape else None
    return Wrong("runner.protocol_error", f"{result.type}: {what}") if what else None


def _needs_message(field: str) -> "Shape":
    def check(data: dict[str, Any]) -> str | None:
        part = data.get(field)
        if not isinstance(part, dict):
            return f"data.{field} must be an object"
        content: object = part.get("content")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if content is not None and not isinstance(content, str | list):
            return f"data.{field}.content must be a string or a list"
        return None

    return check


def _needs_strings(*fields: str) -> "Shape":
    def check(data: dict[str, Any]) -> str | None:
        missing = next((field for field in fields if not isinstance(data.get(field), str)), None)
        return f"data.{missing} must be a string" if missing else None

    return check


def _completed(data: dict[str, Any]) -> str | None:
    message = data.get("message")
    if message is not None and not isinstance(message, dict):
        return "data.message must be an object"
    usage = data.get("usage")
    return "data.usage must be an object" if usage is not None and not isinstance(usage, dict) else None


def _state_updated(data: dict[str, Any]) -> str | None:
    wrong = _needs_strings("scope", "key")(data)
    if wrong is None and len(data["key"]) > MAX_STATE_KEY_CHARS:
        return f"data.key has more than {MAX_STATE_KEY_CHARS} characters"
    if wrong is None and "value" not in data:
        return "data.value is missing"
    if wrong is None and len(msgspec.json.encode(data["value"])) > MAX_STATE_VALUE_BYTES:
        return f"data.value is over the cap of {MAX_STATE_VALUE_BYTES} bytes"
    return wrong


def _artifact_created(data: dict[str, Any]) -> str | None:
    wrong = _needs_strings("artifact_type")(data)
    optional = ("artifact_id", "mime_type", "name", "sha256", "content_base64")
    odd = next((field for field in optional if data.get(field) is not None and not isinstance(data[field], str)), None)
    if wrong or odd:
        return wrong or f"data.{odd} must be a string"
    if data.get("metadata") is not None and not isinstance(data["metadata"], dict):
        return "data.metadata must be an object"
    if data.get("content_base64") is None:
        return None if data.get("artifact_id") else "data needs content_base64, or the artifact_id of a stored file"
    return _content(data)


def _content(data: dict[str, Any]) -> str | None:
    try:
        content = b64decode(data["content_base64"], validate=True)
    except ValueError as error:
        return f"data.content_base64 is not base64: {error}"
    if len(content) > MAX_ARTIFACT_INLINE_BYTES:
        return f"data.content_base64 may hold at most {MAX_ARTIFACT_INLINE_BYTES} bytes"
    if data.get("sha256") is not None and data["sha256"].lower() != sha256(content).hexdigest():
        return "data.sha256 is not the hash of the content"
    return None


Shape = Callable[[dict[str, Any]], str | None]
SHAPES: Mapping[str, Shape] = {
    "message.delta": _needs_message("chunk"),
    "message.completed": _needs_message("message"),
    "tool.call.started": _needs_strings("tool_call_id", "tool_name"),
    "tool.call.completed": _needs_strings("tool_call_id", "tool_name"),
    "artifact.created": _artifact_created,
    "state.updated": _state_updated,
    "action.requested": _needs_strings("action"),
    "run.completed": _completed,
    "run.failed": lambda _data: None,
}
