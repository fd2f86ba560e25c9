"""Models, tools, knowledge bases and files: what there is in a workspace, and what of it an agent's runs get. Pure.

Four layers cut it down: what the host has, what the runner's manifest asks for (already under the ceiling of its plugin
file), what the agent's owner allows, and which operations the host can do. Empty operations mean none.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from paddock.rules.values import Value

Operations = Mapping[str, frozenset[str]]
"""Resource to the operations that are granted on it. Empty operations mean none."""

Choice = Mapping[str, frozenset[str] | None] | Literal["all", "read_only"]
"""What an owner allows of one kind: everything, tools that change nothing, or names with their operations (None: every
operation). A name may end in `*` and then means all that begin so."""

ALL: Choice = "all"
READ_ONLY: Choice = "read_only"


class OfferedModel(Value, frozen=True):
    model_id: str
    model_type: str = "llm"
    provider: str = ""
    operations: frozenset[str] = frozenset({"invoke", "stream"})
    context_window: int | None = None
    images: bool | None = None


class OfferedTool(Value, frozen=True):
    name: str
    tool_type: str
    description: str
    parameters: Mapping[str, Any]
    read_only: bool = False


class OfferedBase(Value, frozen=True):
    kb_id: str
    name: str
    kb_type: str = ""


class OfferedFile(Value, frozen=True):
    """A file that came with an agent's settings, or that lies in a knowledge base (`kb_id`)."""

    file_id: str
    name: str = ""
    mime_type: str = ""
    kb_id: str | None = None


class Offered(Value, frozen=True):
    """Resources of a workspace. The identical object until something changes, so that results can be cached."""

    models: tuple[OfferedModel, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    bases: tuple[OfferedBase, ...] = ()
    files: tuple[OfferedFile, ...] = ()
    """Of the knowledge bases."""


NOTHING_OFFERED = Offered()


def place_of_model(name: str, price: float | None, default: str) -> tuple[bool, bool, float, str]:
    """Sort key for offered models: the default one, then the cheaper before the dearer, then those without a price.

    A runner whose settings name no model asks the first, so nobody pays more than they chose to.
    """
    return name != default, price is None, price or 0.0, name


def operations_on(name: str, choice: Choice, asked: frozenset[str], *, read_only: bool = False) -> frozenset[str]:
    """Return the asked operations that an owner allows on one resource."""
    if isinstance(choice, str):
        return asked if choice == "all" or read_only else frozenset()
    allowed: set[str] = set()
    for pattern, operations in choice.items():
        if matches(pattern, name):
            allowed |= asked if operations is None else asked & operations
    return frozenset(allowed)


def matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def some(granted: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {name: operations for name, operations in granted.items() if operations}


def not_offered(kind: str, choice: Choice, names: Iterable[str]) -> list[str]:
    """Return one sentence for each name that an owner allows and the workspace does not have."""
    if isinstance(choice, str):
        return []
    there = list(names)
    missing = [pattern for pattern in choice if not any(matches(pattern, name) for name in there)]
    return [f"{kind}: {name!r} is not offered here{_server_of(name)}" for name in missing]


def _server_of(name: str) -> str:
    """A tool of an MCP server is called SERVER__TOOL, and is there once its server is."""
    server, mark, _ = name.partition("__")
    return f": the MCP server {server!r} is not up (yet; the log says why), or nobody named it" if mark else ""


# --- as the runner sees it --------------------------------------------------------------------------------------------


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
