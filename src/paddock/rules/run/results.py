"""Results of a runner as the hot path reads them, the checks of their form, and what a run leaves open. Pure.

The same shape as `paddock_sdk.protocol.results.AgentRunResult`; a test proves that both read the same.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec

from paddock.rules.access.limits import MAX_ACTION_BYTES, MAX_ARTIFACT_INLINE_BYTES
from paddock.rules.errors import ErrorCode, HostError, RunCode
from paddock.rules.log.payloads import as_object
from paddock.rules.values import Value
from paddock_sdk.protocol.frames import MAX_RESULT_BYTES, longest_result

MAX_ACTION_CHARS = 128
MAX_STEP_CHARS = 128
ARTIFACT_REFUSED = "artifact.refused"
"""Stands on record for an `artifact.created` whose file was not kept."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a run. Unknown types are kept, and ignored with a warning."""

    run_id: str
    type: str
    data: dict[str, Any] = {}
    sequence: int | None = None
    timestamp: float | None = None


class Wrong(msgspec.Struct, frozen=True):
    """The reason a malformed result ends its run."""

    code: RunCode
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


def _may_have(**kinds: "FieldKind") -> Shape:
    def check(data: dict[str, Any]) -> str | None:
        for field, kind in kinds.items():
            value = data.get(field)
            if value is not None and not isinstance(value, kind.types):
                return f"data.{field} must be {kind.called}"
        return None

    return check


def _both(first: Shape, second: Shape) -> Shape:
    return lambda data: first(data) or second(data)


class FieldKind(msgspec.Struct, frozen=True):
    types: tuple[type, ...]
    called: str


OBJECT = FieldKind((dict,), "an object")
STRING = FieldKind((str,), "a string")
LIST = FieldKind((list,), "a list")
STRING_OR_OBJECT = FieldKind((str, dict), "a string or an object")


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


# --- calls and questions that a run leaves open ----------------------------------------------------------------------


MAX_NAMED = 10
APPROVALS = "approvals"
"""In the end of a run: actions that wait for the user's word. The host writes it, never a runner."""


class Interrupt(Value, frozen=True):
    """A question with which a run ended; the next run brings the answer."""

    interrupt_id: str
    expires_at: float | None = None


def questions_in(data: Mapping[str, Any]) -> list[Mapping[str, object]]:
    """The questions of a run that completed: the runner's own and the host's, each name once. One without a name
    cannot be answered and is left out; where both use a name, it is the host's."""
    if "interrupts" not in data and APPROVALS not in data:
        return []
    given = [*_objects(data.get("interrupts")), *_objects(data.get(APPROVALS))]
    return list({str(raw["id"]): raw for raw in given if isinstance(raw.get("id"), str)}.values())


def interrupts_in(data: Mapping[str, Any]) -> list[Interrupt]:
    return [_interrupt(raw) for raw in questions_in(data)]


def approvals_in(data: Mapping[str, Any]) -> dict[str, str]:
    """Those that the host asks: the approval each stands for, and its action."""
    return {str(raw["id"]): str(raw.get("action") or "") for raw in _objects(data.get(APPROVALS)) if "id" in raw}


def with_approvals(data: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The end of a run with what of it waits for its user: only the host says so."""
    said = {name: value for name, value in data.items() if name != APPROVALS}
    return {**said, APPROVALS: list(waiting)} if waiting else said


def _interrupt(raw: Mapping[str, object]) -> Interrupt:
    expires = raw.get("expires_at")
    return Interrupt(str(raw["id"]), float(expires) if isinstance(expires, int | float) else None)


def pending_in(data: Mapping[str, Any]) -> set[str]:
    """Calls that wait for the client's own answer: not those that wait for a person's word first."""
    given = data.get("pending_tool_call_ids")
    ids = {str(one) for one in cast("list[object]", given)} if isinstance(given, list) else set[str]()
    return ids - {str(raw.get("tool_call_id")) for raw in _objects(data.get("interrupts"))}


def _objects(given: object) -> Iterable[Mapping[str, object]]:
    return map(as_object, cast("list[object]", given) if isinstance(given, list) else ())


def answers_to(
    entries: Sequence[Mapping[str, Any]], asked: Sequence[Interrupt], now: float
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The client's answers to open questions, and what was odd about them. All questions must be answered at once.

    Raises HostError. After its time a question can only be declined.
    """
    known = {one.interrupt_id: one for one in asked}
    taken = {entry["interruptId"]: entry for entry in entries if entry["interruptId"] in known}
    if missing := [name for name in known if name not in taken]:
        listed = ", ".join(missing[:MAX_NAMED])
        text = f"resume must answer every open interrupt of the last run; these are missing: {listed}"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)
    odd = [
        f"no interrupt {entry['interruptId'][:64]!r} is open" for entry in entries if entry["interruptId"] not in known
    ]
    late = [name for name, one in known.items() if _is_over(one, now) and taken[name]["status"] == "resolved"]
    odd += [f"interrupt {name[:64]!r} has expired and counts as cancelled" for name in late]
    declined = {name: {"interruptId": name, "status": "cancelled"} for name in late}
    return list({**taken, **declined}.values()), odd


def _is_over(one: Interrupt, now: float) -> bool:
    return one.expires_at is not None and one.expires_at < now
