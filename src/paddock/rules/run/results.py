"""Results of a runner as the hot path reads them, and the checks of their form. Pure.

The same shape as `paddock_sdk.protocol.results.AgentRunResult`; a test proves that both read the same.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from paddock.rules.access.limits import MAX_ACTION_BYTES, MAX_ARTIFACT_INLINE_BYTES
from paddock_sdk.protocol.frames import MAX_RESULT_BYTES, longest_result

MAX_ACTION_CHARS = 128
MAX_STEP_CHARS = 128
TERMINAL_TYPES = frozenset({"run.completed", "run.failed"})


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a run. Unknown types are kept and ignored with a warning by whoever decides."""

    run_id: str
    type: str
    data: dict[str, Any] = {}
    sequence: int | None = None
    timestamp: float | None = None


class Wrong(msgspec.Struct, frozen=True):
    """The reason a malformed result ends its run."""

    code: str
    message: str


def problem_with(result: Result, size: int) -> Wrong | None:
    """The first thing wrong with a result, or None. Unknown types are never wrong."""
    if size > MAX_RESULT_BYTES and size > (cap := longest_result(result.type)):
        text = f"a {result.type} of {size} bytes is over the cap of {cap}; send large data as an artifact"
        return Wrong("payload_too_large", text)
    shape = SHAPES.get(result.type)
    what = shape(result.data) if shape else None
    return Wrong("runner.protocol_error", f"{result.type}: {what}") if what else None


Shape = Callable[[dict[str, Any]], str | None]


def _needs_message(field: str) -> Shape:
    def check(data: dict[str, Any]) -> str | None:
        part = data.get(field)
        if not isinstance(part, dict):
            return f"data.{field} must be an object"
        content: object = part.get("content")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if content is not None and not isinstance(content, str | list):
            return f"data.{field}.content must be a string or a list"
        return None

    return check


def _needs_strings(*fields: str) -> Shape:
    def check(data: dict[str, Any]) -> str | None:
        missing = next((field for field in fields if not isinstance(data.get(field), str)), None)
        return f"data.{missing} must be a string" if missing else None

    return check


def _may_have(**kinds: "Kind") -> Shape:
    """Fields that may be left out or null, and else are of a kind."""

    def check(data: dict[str, Any]) -> str | None:
        for field, kind in kinds.items():
            value = data.get(field)
            if value is not None and not isinstance(value, kind.types):
                return f"data.{field} must be {kind.called}"
        return None

    return check


def _both(first: Shape, second: Shape) -> Shape:
    return lambda data: first(data) or second(data)


class Kind(msgspec.Struct, frozen=True):
    types: tuple[type, ...]
    called: str


OBJECT = Kind((dict,), "an object")
STRING = Kind((str,), "a string")
LIST = Kind((list,), "a list")
STRING_OR_OBJECT = Kind((str, dict), "a string or an object")


def _action_requested(data: dict[str, Any]) -> str | None:
    wrong = _needs_strings("action")(data) or _may_have(target=OBJECT, payload=OBJECT)(data)
    if wrong is None and not 0 < len(data["action"]) <= MAX_ACTION_CHARS:
        return f"data.action must have 1 to {MAX_ACTION_CHARS} characters"
    if wrong is None and len(msgspec.json.encode([data.get("target"), data.get("payload")])) > MAX_ACTION_BYTES:
        return f"data.target and data.payload are over the cap of {MAX_ACTION_BYTES} bytes"
    return wrong


def _step(data: dict[str, Any]) -> str | None:
    wrong = _needs_strings("step_name")(data)
    if wrong is None and not 0 < len(data["step_name"]) <= MAX_STEP_CHARS:
        return f"data.step_name must have 1 to {MAX_STEP_CHARS} characters"
    return wrong


def _state_updated(data: dict[str, Any]) -> str | None:
    wrong = _needs_strings("scope", "key")(data)
    return "data.value is missing" if wrong is None and "value" not in data else wrong


_described = _both(
    _needs_strings("artifact_type"),
    _may_have(artifact_id=STRING, mime_type=STRING, name=STRING, sha256=STRING, metadata=OBJECT, content_base64=STRING),
)


def _artifact_created(data: dict[str, Any]) -> str | None:
    if wrong := _described(data):
        return wrong
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


SHAPES: Mapping[str, Shape] = {
    "message.delta": _needs_message("chunk"),
    "message.completed": _needs_message("message"),
    "tool.call.started": _both(_needs_strings("tool_call_id", "tool_name"), _may_have(parameters=OBJECT)),
    "tool.call.completed": _both(
        _needs_strings("tool_call_id", "tool_name"), _may_have(artifact=OBJECT, error=STRING_OR_OBJECT)
    ),
    "step.started": _step,
    "step.finished": _step,
    "artifact.created": _artifact_created,
    "state.updated": _state_updated,
    "action.requested": _action_requested,
    "run.completed": _may_have(message=OBJECT, usage=OBJECT, pending_tool_call_ids=LIST, interrupts=LIST),
    "run.failed": _may_have(code=STRING, message=STRING, error=STRING),
}
