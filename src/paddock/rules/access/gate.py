"""The gate's table of host calls and its checks. Pure: a grant and a request in, a refusal out.

One table says for every call which field names the resource, which field the scope, and how much it may carry; the
checks are generic over it, so a new call without a line here fails a test and is refused until it has one. Who runs
the checks, and in which order, is `host/calls/host_calls.py`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import msgspec

from paddock.rules.access import limits
from paddock.rules.access.permissions import OPENS, PLATFORM_ACTIONS, STEERING_ACTIONS, USES, Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

NOT_ASKED: Final = "its manifest does not ask for {permission}"
WHY: Mapping[str, str] = {
    "manifest": "its manifest asks for {permission}, but its context says that it does not use it ({context})",
    "plugin_file": "its manifest asks for {permission}, the plugin file does not allow it",
    "agent": "its manifest and the plugin file have {permission}, the agent does not allow it",
    "host": "it asks for {permission}, which this host does not offer",
}


def permission_for(method: str) -> str:
    """Return the permission that opens the call, as a manifest writes it; of several, the one that opens least."""
    if method in STEERING_ACTIONS:
        return "capabilities.steering"
    if method in PLATFORM_ACTIONS:
        return "permissions.platform_api with the name of the action"
    found = next((key for key, calls in OPENS.items() if method in calls), None)
    return f'permissions.{found[0]}: ["{found[1]}"]' if found else "what opens it"


def why_not(grant: Grant, method: str) -> str:
    permission, layer = permission_for(method), grant.refused.get(method)
    why = WHY.get(layer, NOT_ASKED) if layer else NOT_ASKED
    told = why.format(permission=permission, context=f"context.{USES.get(method, '')}")
    return f"this run was not granted {method}: {told}. Manifest, plugin file and agent must all allow it"


Measure = Literal["characters", "bytes", "bytes of JSON", "documents", "bytes at once"]
ResourceKind = Literal["models", "tools", "knowledge_bases"]
Within = Literal["state_scopes", "storage_areas", "platform_actions"]

NO_BOUND: Final = 1 << 62


class Cap(Value, frozen=True):
    field: str
    most: int
    measure: Measure
    instead: str = ""
    """What takes more."""


class CallCheck(Value, frozen=True):
    resource: str = ""
    """The field that names what is touched: on the audit row, and in the grant when `kind` is set."""
    kind: ResourceKind | None = None
    """Where in the grant that name must stand, with `operation` beside it."""
    operation: str = ""
    scope: str = ""
    """The field that says where: a state scope, a storage area, a platform action."""
    within: Within | None = None
    """Where in the grant that scope must stand."""
    conversation: str = ""
    """The field that may name another conversation; `filters.x` looks inside."""
    subthread: str = ""
    """The field that may name another of the platform's threads in it."""
    caps: tuple[Cap, ...] = ()
    call_bytes: int = limits.MAX_SMALL_CALL_BYTES
    """How large the whole call may be."""
    at_most: str = ""
    """The field that asks for so many: brought into 1..`MAX_PAGE`, because a page that is shorter says so."""


IN_PARTS = f"send it with storage.set in parts (offset, more), together up to {limits.MAX_BLOB_BYTES} bytes"
_KEY = Cap("key", limits.MAX_STATE_KEY_CHARS, "characters")
_BLOB_KEY = Cap("key", limits.MAX_STORAGE_KEY_CHARS, "characters")


def _model(operation: str, *caps: Cap) -> CallCheck:
    return CallCheck("model_id", "models", operation, caps=caps, call_bytes=limits.MAX_MODEL_CALL_BYTES)


def _state(*caps: Cap, call_bytes: int = limits.MAX_SMALL_CALL_BYTES) -> CallCheck:
    return CallCheck("key", scope="scope", within="state_scopes", caps=(_KEY, *caps), call_bytes=call_bytes)


def _storage(*caps: Cap, resource: str = "key", call_bytes: int = limits.MAX_SMALL_CALL_BYTES) -> CallCheck:
    return CallCheck(resource, scope="area", within="storage_areas", caps=caps, call_bytes=call_bytes)


LOOKED_AT: Final[Mapping[str, CallCheck]] = MappingProxyType(
    {
        "models.invoke": _model("invoke"),
        "models.stream": _model("stream"),
        "models.rerank": _model("rerank", Cap("documents", limits.MAX_RERANK_DOCUMENTS, "documents")),
        "tools.get_detail": CallCheck("tool_name", "tools", "detail"),
        "tools.call": CallCheck("tool_name", "tools", "call", call_bytes=limits.MAX_TOOL_CALL_BYTES),
        "knowledge.retrieve": CallCheck(
            "kb_id",
            "knowledge_bases",
            "retrieve",
            caps=(Cap("query_text", limits.MAX_QUERY_CHARS, "characters"),),
            at_most="top_k",
        ),
        "history.page": CallCheck(
            "conversation_id", conversation="conversation_id", subthread="thread_id", at_most="limit"
        ),
        "history.search": CallCheck(
            "filters.conversation_id",
            conversation="filters.conversation_id",
            subthread="filters.thread_id",
            caps=(Cap("query", limits.MAX_QUERY_CHARS, "characters"),),
            at_most="top_k",
        ),
        "events.get": CallCheck("event_id"),
        "events.page": CallCheck(at_most="limit"),
        "artifacts.metadata": CallCheck("artifact_id"),
        "artifacts.read_range": CallCheck(
            "artifact_id", caps=(Cap("length", limits.MAX_RANGE_BYTES, "bytes at once"),)
        ),
        "artifacts.open_stream": CallCheck("artifact_id"),
        "artifacts.create": CallCheck(
            "name", caps=(Cap("content_base64", limits.MAX_ARTIFACT_INLINE_BYTES, "bytes"),), call_bytes=NO_BOUND
        ),
        "state.get": _state(),
        "state.set": _state(
            Cap("value", limits.MAX_STATE_VALUE_BYTES, "bytes of JSON", "storage.set takes larger values"),
            call_bytes=NO_BOUND,
        ),
        "state.delete": _state(),
        "storage.get": _storage(_BLOB_KEY),
        "storage.set": _storage(
            _BLOB_KEY, Cap("value_base64", limits.MAX_STORAGE_VALUE_BYTES, "bytes", IN_PARTS), call_bytes=NO_BOUND
        ),
        "storage.delete": _storage(_BLOB_KEY),
        "storage.list": _storage(Cap("prefix", limits.MAX_STORAGE_KEY_CHARS, "characters"), resource="prefix"),
        "steering.pull": CallCheck(at_most="limit"),
        "platform.request_action": CallCheck(
            "action", scope="action", within="platform_actions", call_bytes=limits.MAX_ACTION_BYTES
        ),
    }
)
"""Every host call. Where the whole call has no bound of its own, its fields have, and the frame ends it."""


class CallRefusedError(HostError):
    """A refusal whose reason only the audit may know."""

    def __init__(self, code: ErrorCode, message: str, reason: str, **more: Any) -> None:
        super().__init__(code, message, **more)
        self.reason = reason


def named(params: Mapping[str, Any], field: str) -> str:
    """Return a field of unchecked parameters as text, cut to the length an audit row holds."""
    value: object = params.get(field)
    if "." in field:
        first, _, inner = field.partition(".")
        outer = params.get(first)
        value = cast("dict[str, object]", outer).get(inner) if isinstance(outer, dict) else None
    return value[:256] if isinstance(value, str) else ""


def _field(asked: Any, field: str) -> Any:
    if "." not in field:
        return getattr(asked, field)
    first, _, inner = field.partition(".")
    value = getattr(asked, first)
    return cast("dict[str, Any]", value).get(inner) if isinstance(value, dict) else None


# --- 4: operation and resource ---------------------------------------------------------------------------------------


def check_operation(grant: Grant, method: str) -> None:
    if method not in grant.actions:
        reason = f"{method} is not in the grant of the run"
        raise CallRefusedError(ErrorCode.UNAUTHORIZED, why_not(grant, method), reason)


def check_resource(grant: Grant, looked: CallCheck, asked: Any) -> None:
    """Refuse a resource that is not granted. The words are equal for unknown resources and other operations."""
    if looked.kind is None:
        return
    name = _field(asked, looked.resource)
    resources: Mapping[str, frozenset[str]] = getattr(grant, looked.kind)
    granted = resources.get(name, frozenset[str]())
    if looked.operation not in granted:
        text = f"this run was not granted {looked.operation} on {name[:128]!r}"
        reason = f"granted on it: {', '.join(sorted(granted))}" if granted else "not a resource of this run"
        raise CallRefusedError(ErrorCode.UNAUTHORIZED, text, reason)


# --- 5: scope --------------------------------------------------------------------------------------------------------

_WHAT: Mapping[Within, str] = {
    "state_scopes": "state scope",
    "storage_areas": "storage area",
    "platform_actions": "platform action",
}


def check_scope(grant: Grant, looked: CallCheck, asked: Any) -> None:
    if looked.within is None:
        return
    scope = _field(asked, looked.scope)
    granted: frozenset[str] = getattr(grant, looked.within)
    if scope not in granted:
        what = _WHAT[looked.within]
        text = (
            f"this run was not granted the {what} {scope[:64]!r}; granted are: {', '.join(sorted(granted)) or 'none'}"
        )
        raise CallRefusedError(ErrorCode.UNAUTHORIZED, text, f"a {what} outside the grant of the run")


def other_conversation(grant: Grant, looked: CallCheck, asked: Any) -> str | None:
    """Another conversation that the call names and that this run may name; whether it is one is not known here."""
    if not looked.conversation:
        return None
    named_one = _field(asked, looked.conversation)
    if named_one is None or named_one == grant.scope.session_id:
        _check_subthread(grant, looked, asked)
        return None
    if grant.history_scope != "workspace":
        raise not_its_conversation("the run may read its own conversation only")
    if not isinstance(named_one, str):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{looked.conversation} must be a string")
    return named_one


def _check_subthread(grant: Grant, looked: CallCheck, asked: Any) -> None:
    """Another of the platform's threads takes what another conversation takes."""
    named_one = _field(asked, looked.subthread) if looked.subthread else None
    if named_one not in (None, grant.scope.subthread_id) and grant.history_scope != "workspace":
        raise not_its_conversation("the run may read its own thread of the conversation only")


def not_its_conversation(reason: str) -> CallRefusedError:
    """Refuse a foreign conversation in the same words as one that does not exist."""
    text = "this run may not read that conversation"
    return CallRefusedError(ErrorCode.UNAUTHORIZED, text, reason)


# --- 6: size ---------------------------------------------------------------------------------------------------------


def check_size(looked: CallCheck, asked: Any, method: str, size: int) -> None:
    if size > looked.call_bytes:
        text = f"a call of {method} may have at most {looked.call_bytes} bytes; this one has {size}"
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text)
    for cap in looked.caps:
        value = _field(asked, cap.field)
        if value is not None and (amount := _amount(cap.measure, value)) > cap.most:
            instead = f"; {cap.instead}" if cap.instead else ""
            text = f"{cap.field} may have at most {cap.most} {cap.measure}; this one has {amount}{instead}"
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text)


def _amount(measure: Measure, value: Any) -> int:
    match measure:
        case "bytes of JSON":
            return len(msgspec.json.encode(value))
        case "bytes":  # of what the base64 stands for
            return len(value) * 3 // 4 - value[-2:].count("=")
        case "bytes at once":
            return value
        case "characters" | "documents":
            return len(value)


def within_a_page(looked: CallCheck, asked: Any) -> Any:
    if not looked.at_most:
        return asked
    wanted = _field(asked, looked.at_most)
    if wanted is None or wanted == (given := max(1, min(wanted, limits.MAX_PAGE))):
        return asked
    return asked.model_copy(update={looked.at_most: given})
