"""Models, tools, knowledge bases and files: what there is in a workspace, and what of it an agent's runs get. Pure.

Four layers cut it down: what the host has, what the runner's manifest asks for (already under the ceiling of its plugin
file), what the agent's owner allows, and which operations the host can do. Empty operations mean none. Which agent
answers an event is decided here as well, by the same patterns.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

Operations = Mapping[str, frozenset[str]]
"""Resource to the operations that are granted on it. Empty operations mean none."""

Choice = Mapping[str, frozenset[str] | None] | Literal["all", "read_only"]
"""What an owner allows of one kind: everything, tools that change nothing, or names with their operations (None: every
operation). A name may end in `*` and then means all that begin so."""

ALL: Choice = "all"
READ_ONLY: Choice = "read_only"


class Prices(Value, frozen=True):
    """Prices of a million tokens, in the operator's currency."""

    prompt: float
    completion: float


FREE = Prices(0.0, 0.0)


class ModelInfo(Value, frozen=True):
    model_id: str
    model_type: str = "llm"
    """llm, embedding or rerank"""
    provider: str = ""
    operations: frozenset[str] = frozenset({"invoke", "stream"})
    """Of invoke, stream, rerank."""
    context_window: int | None = None
    description: str = ""
    prices: Prices | None = None
    images: bool | None = None
    """Whether it can look at pictures, where somebody said so."""


class ToolInfo(Value, frozen=True):
    """One tool that can be granted. `parameters` is a JSON schema."""

    name: str
    tool_type: str
    """function, mcp or builtin"""
    description: str
    parameters: Mapping[str, Any]
    source: str = ""
    """Where it comes from: a module, an MCP server's name."""
    read_only: bool = False


class KnowledgeBaseInfo(Value, frozen=True):
    kb_id: str
    name: str
    kb_type: str = "lexical"
    description: str = ""


class OfferedFile(Value, frozen=True):
    """A file that came with an agent's settings, or that lies in a knowledge base (`kb_id`)."""

    file_id: str
    name: str = ""
    mime_type: str = ""
    kb_id: str | None = None


class Offered(Value, frozen=True):
    """Resources of a workspace. The identical object until something changes, so that results can be cached."""

    models: tuple[ModelInfo, ...] = ()
    tools: tuple[ToolInfo, ...] = ()
    bases: tuple[KnowledgeBaseInfo, ...] = ()
    files: tuple[OfferedFile, ...] = ()
    """Of the knowledge bases."""


NOTHING_OFFERED = Offered()


class AgentExtras(Value, frozen=True):
    """Settings of an agent besides policy and config that its runs see."""

    skills: tuple[Mapping[str, Any], ...] = ()
    mcp: tuple[Mapping[str, Any], ...] = ()
    frontend_tools: bool | None = None
    """Whether the client's own tools are shown; None leaves it to the door."""
    locale: str | None = None
    time_zone: str | None = None
    """What counts when nobody says otherwise."""
    cancel_on_disconnect: bool = False
    """Whether a run is stopped when the client that asked for it, by the AG-UI door, goes away."""
    isolation: str | None = None
    """How far its runs are kept apart at least."""
    working_directory: str | None = None
    """Where its runs work; None: in one of their conversation."""
    public_only: bool = False
    """Whether addresses in its settings came over the API and must lead to the public internet."""
    readable: tuple[str, ...] = ()
    """What its runs may read from L1 up, besides what they need to run at all."""


NO_EXTRAS = AgentExtras()


def place_of_model(name: str, price: float | None, default: str) -> tuple[bool, bool, float, str]:
    """Sort key for offered models: the default one, then the cheaper before the dearer, then those without a price.

    A runner whose settings name no model asks the first, so nobody pays more than they chose to.
    """
    return name != default, price is None, price or 0.0, name


def operations_on(name: str, choice: Choice, asked: frozenset[str], *, read_only: bool = False) -> frozenset[str]:
    if isinstance(choice, str):
        return asked if choice == "all" or read_only else frozenset()
    allowed: set[str] = set()
    for pattern, operations in choice.items():
        if fits_pattern(pattern, name):
            allowed |= asked if operations is None else asked & operations
    return frozenset(allowed)


def fits_pattern(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def some(granted: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {name: operations for name, operations in granted.items() if operations}


def not_offered(kind: str, choice: Choice, names: Iterable[str]) -> list[str]:
    """Return one sentence for each name that an owner allows and the workspace does not have."""
    if isinstance(choice, str):
        return []
    there = list(names)
    missing = [pattern for pattern in choice if not any(fits_pattern(pattern, name) for name in there)]
    return [f"{kind}: {name!r} is not offered here{_server_of(name)}" for name in missing]


def _server_of(name: str) -> str:
    """A tool of an MCP server is called SERVER__TOOL, and is there once its server is."""
    server, mark, _ = name.partition("__")
    return f": the MCP server {server!r} is not up (yet; the log says why), or nobody named it" if mark else ""


def model_resources(offered: Offered, granted: Operations) -> list[dict[str, Any]]:
    return [
        {
            "model_id": model.model_id,
            "model_type": model.model_type,
            "provider": model.provider,
            "operations": sorted(granted[model.model_id]),
            **({"context_window": model.context_window} if model.context_window else {}),
            **({"images": model.images} if model.images is not None else {}),
        }
        for model in offered.models
        if model.model_id in granted
    ]


def tool_resources(offered: Offered, granted: Operations) -> list[dict[str, Any]]:
    return [
        {
            "tool_name": tool.name,
            "tool_type": tool.tool_type,
            "description": tool.description,
            "operations": sorted(granted[tool.name]),
            "parameters": tool.parameters,
        }
        for tool in offered.tools
        if tool.name in granted
    ]


def base_resources(offered: Offered, granted: Operations) -> list[dict[str, Any]]:
    """Those the run may list; one it may only retrieve from is not told, but can be named."""
    return [
        {"kb_id": base.kb_id, "kb_name": base.name, "kb_type": base.kb_type, "operations": sorted(granted[base.kb_id])}
        for base in offered.bases
        if "list" in granted.get(base.kb_id, ())
    ]


def file_resources(files: Iterable[OfferedFile]) -> list[dict[str, Any]]:
    return [
        {
            "file_id": file.file_id,
            "file_name": file.name,
            "mime_type": file.mime_type,
            "source": "config" if file.kb_id is None else "knowledge",
        }
        for file in files
    ]


def frontend_tools(given: Any, taken: Iterable[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The client's own tools as resources, and the names of those left out because a host tool is called the same.

    The model may see them, the client answers them, and no host call reaches them: they have no operations.
    """
    known, left_out, shown = set(taken), list[str](), list[dict[str, Any]]()
    for tool in cast("list[Any]", given) if isinstance(given, list) else ():
        told = _frontend_tool(tool)
        if told is None:
            continue
        if told["tool_name"] in known:
            left_out.append(told["tool_name"])
        else:
            known.add(told["tool_name"])
            shown.append(told)
    return shown, left_out


def _frontend_tool(tool: Any) -> dict[str, Any] | None:
    """None for what has no name: clients send what they like."""
    said = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    name, parameters = said.get("name"), said.get("parameters")
    if not isinstance(name, str) or not name:
        return None
    return {
        "tool_name": name,
        "tool_type": "frontend",
        "description": str(said.get("description") or ""),
        "operations": [],
        "parameters": parameters if isinstance(parameters, dict) else {},
    }


Rules = Mapping[str, Sequence[str]]
"""Agent to the event types it answers; a type may end in `*`."""


def answers(patterns: Sequence[str], event_type: str) -> bool:
    return any(fits_pattern(pattern, event_type) for pattern in patterns)


def answering(event_type: str, rules: Rules, addressed: str | None = None) -> str:
    """The one agent that answers. Raises HostError with a sentence that says which rules to change.

    An event may be addressed to an agent; then it is that one's, if it answers such events at all.
    """
    if addressed is not None:
        if not answers(rules.get(addressed, ()), event_type):
            text = f"agent {addressed!r} does not answer {event_type}; add it to its events"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        return addressed
    found = sorted(agent_id for agent_id, patterns in rules.items() if answers(patterns, event_type))
    if not found:
        raise HostError(ErrorCode.NOT_FOUND, f"no agent answers {event_type}; add it to the events of one")
    if len(found) > 1:
        text = f"{len(found)} agents answer {event_type} ({', '.join(found)}); leave it to exactly one of them"
        raise HostError(ErrorCode.CONFLICT, text)
    return found[0]
