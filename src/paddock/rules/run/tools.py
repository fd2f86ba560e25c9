"""Tools for programs that speak MCP: a name, a schema, and the host call behind each. Pure.

A program that speaks MCP and not our protocol gets the run's grant this way and no other: granted tools under their own
names, and some host calls under short ones. Which is answered at all is decided by the gate, call by call.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.context import ResolvedAgent
from paddock.rules.values import Value

PREFIX: Final = "host_"
"""Before one of our names when a granted tool already has it."""
MAX_SHOWN = 20
DEFAULT_SCOPE: Final = "conversation"
ANYTHING: Final[Mapping[str, Any]] = MappingProxyType({"type": "object"})

Arguments = Mapping[str, Any]
Params = dict[str, Any]


class RunTool(Value, frozen=True):
    """One tool of one run."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    method: str
    """The host call it stands for."""
    read_only: bool = False
    tool_name: str | None = None
    """For `tools.call`: which tool."""


class _Offer(Value, frozen=True):
    """A host call that is offered as a tool."""

    method: str
    description: str
    schema: Callable[[Grant], Mapping[str, Any]]
    read_only: bool = True


def _object(required: tuple[str, ...] = (), **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _text(description: str, **more: Any) -> Mapping[str, Any]:
    return {"type": "string", "description": description, **more}


def _count(description: str, default: int, most: int = 100) -> Mapping[str, Any]:
    return {"type": "integer", "description": description, "default": default, "minimum": 1, "maximum": most}


def _history_page(_grant: Grant) -> Mapping[str, Any]:
    return _object(
        limit=_count("How many items.", 20),
        before_cursor=_text("Items before this cursor, as an earlier page gave it."),
        after_cursor=_text("Items after this cursor."),
        direction={"type": "string", "enum": ["backward", "forward"], "default": "backward"},
    )


def _history_search(_grant: Grant) -> Mapping[str, Any]:
    return _object(("query",), query=_text("Words to look for."), top_k=_count("How many at most.", 10))


def _knowledge(grant: Grant) -> Mapping[str, Any]:
    bases = _bases(grant)
    which = _text("Which knowledge base.", enum=bases)
    required = ("query_text",) if len(bases) == 1 else ("kb_id", "query_text")
    return _object(
        required, kb_id=which, query_text=_text("What to find."), top_k=_count("How many passages at most.", 5)
    )


def _artifact_read(_grant: Grant) -> Mapping[str, Any]:
    return _object(
        ("artifact_id",),
        artifact_id=_text("The file's id."),
        offset={"type": "integer", "default": 0, "minimum": 0, "description": "First byte."},
        length=_count("How many bytes.", 65_536, 1_048_576),
    )


def _artifact_create(_grant: Grant) -> Mapping[str, Any]:
    return _object(
        ("name",),
        name=_text("File name, shown to people."),
        text=_text("Its content as text; or:"),
        content_base64=_text("its content as base64."),
        mime_type=_text("Such as text/markdown."),
    )


def _state(grant: Grant, **more: Mapping[str, Any]) -> Mapping[str, Any]:
    scope = _text("How far the value is remembered.", enum=sorted(grant.state_scopes), default=_scope(grant))
    return _object(("key", *more), key=_text("The value's name."), scope=scope, **more)


OFFERS: Final[Mapping[str, _Offer]] = MappingProxyType(
    {
        "history_page": _Offer("history.page", "Read this conversation's history, newest first.", _history_page),
        "history_search": _Offer("history.search", "Search this conversation's history.", _history_search),
        "knowledge_retrieve": _Offer("knowledge.retrieve", "Find passages in a knowledge base.", _knowledge),
        "artifact_read": _Offer("artifacts.read_range", "Read a file of this conversation by its id.", _artifact_read),
        "artifact_create": _Offer(
            "artifacts.create",
            "Store a file with this conversation; the answer has its id.",
            _artifact_create,
            read_only=False,
        ),
        "state_get": _Offer("state.get", "Read a small value that was kept earlier.", _state),
        "state_set": _Offer(
            "state.set",
            "Keep a small value for later turns.",
            partial(_state, value={"description": "Any JSON value; small."}),
            read_only=False,
        ),
        "current_event": _Offer(
            "events.get", "The event that this turn answers, as it is on record.", lambda _: _object()
        ),
    }
)


def run_tools(part: ResolvedAgent, grant: Grant) -> dict[str, RunTool]:
    granted = {tool["tool_name"]: tool for tool in part.resources["tools"] if "call" in tool["operations"]}
    tools = {name: _granted(name, tool, part.read_only_tools) for name, tool in granted.items()}
    for name, offer in OFFERS.items():
        if offer.method in grant.actions and (offer.method != "knowledge.retrieve" or _bases(grant)):
            free = name if name not in tools else f"{PREFIX}{name}"
            tools[free] = RunTool(free, offer.description, offer.schema(grant), offer.method, offer.read_only)
    return tools


def _granted(name: str, tool: Mapping[str, Any], read_only: frozenset[str]) -> RunTool:
    schema: Mapping[str, Any] = tool.get("parameters") or ANYTHING
    return RunTool(name, str(tool.get("description") or ""), schema, "tools.call", name in read_only, name)


def _bases(grant: Grant) -> list[str]:
    return sorted(kb_id for kb_id, operations in grant.knowledge_bases.items() if "retrieve" in operations)


def _scope(grant: Grant) -> str:
    return DEFAULT_SCOPE if DEFAULT_SCOPE in grant.state_scopes else min(grant.state_scopes)


def params_of(tool: RunTool, grant: Grant, arguments: Arguments, event_id: str) -> Params:
    """The params of the host call. What is wrong with them the gate says; only what is ours is looked at here."""
    run = {"run_id": grant.scope.run_id}
    if tool.tool_name is not None:
        return {**run, "tool_name": tool.tool_name, "parameters": dict(arguments)}
    _refuse_unknown(tool, arguments)
    if tool.method == "artifacts.create":
        return {**run, **_file(arguments)}
    return {**_defaults(tool, grant, event_id), **arguments, **run}


def _defaults(tool: RunTool, grant: Grant, event_id: str) -> Params:
    match tool.method:
        case "events.get":
            return {"event_id": event_id}
        case "knowledge.retrieve" if len(_bases(grant)) == 1:
            return {"kb_id": _bases(grant)[0]}
        case "history.page":
            return {"limit": 20}
        case "artifacts.read_range":
            return {"offset": 0, "length": 65_536}
        case "state.get" | "state.set":
            return {"scope": _scope(grant)}
        case _:
            return {}


def _refuse_unknown(tool: RunTool, arguments: Arguments) -> None:
    """Ours are few: a name that is none was meant to be one, and a run must not name another run either."""
    known: Mapping[str, Any] = tool.parameters["properties"]
    wrong = next((name for name in arguments if name not in known), None)
    if wrong is not None:
        told = ", ".join(known) or "none"
        raise HostError(
            ErrorCode.INVALID_ARGUMENT, f"{tool.name} has no argument {wrong[:64]!r}; its arguments are: {told}"
        )


def _file(arguments: Arguments) -> Params:
    given = {name: value for name, value in arguments.items() if name != "text"}
    text = arguments.get("text")
    if isinstance(text, str) == ("content_base64" in given):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "artifact_create needs text or content_base64, one of the two")
    if isinstance(text, str):
        given["content_base64"] = b64encode(text.encode(errors="replace")).decode()
        given.setdefault("mime_type", "text/plain")
    return {"artifact_type": "file", **given}
