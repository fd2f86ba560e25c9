"""Approval requests of Codex in our words: which tool, with which arguments."""

from collections.abc import Collection, Mapping
from typing import Any

from paddock_runners.harness.heard import Permission
from paddock_runners.harness.obeyed import is_obeyed
from paddock_runners.toolkit.values import listing, mapping

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"
ABOUT_A_COMMAND = ("command", "cwd", "additionalPermissions", "networkApprovalContext")


def for_command(key: Any, params: Mapping[str, Any]) -> Permission:
    about = {name: params[name] for name in ABOUT_A_COMMAND if params.get(name) is not None}
    return Permission((key, COMMAND), _call_id(key, params), "shell", about, exact="command" in about)


def for_patch(
    key: Any, params: Mapping[str, Any], items: Mapping[str, Mapping[str, Any]], directory: str
) -> Permission:
    """Read a question about changes of files; `directory` is where Codex works."""
    changes = items.get(call_id := _call_id(key, params), {}).get("changes")
    paths = [path for change in listing(changes) for path in _paths(mapping(change))]
    obeyed = is_obeyed(paths, directory)
    return Permission((key, PATCH), call_id, "apply_patch", {"changes": changes}, exact=bool(changes), obeyed=obeyed)


def _paths(change: Mapping[str, Any]) -> list[str]:
    """Return where a change is made, and where it moves the file to."""
    found = [change.get("path"), mapping(change.get("kind")).get("move_path")]
    return [path for path in found if isinstance(path, str)]


def for_server(key: Any, params: Mapping[str, Any], items: Collection[Mapping[str, Any]]) -> Permission | None:
    """Before a call of an MCP server's tool; None when the server itself asks something of a person.

    The question names the tool in words for people; the call that waits for the answer says what it is.
    """
    server, message, about = params.get("serverName"), str(params.get("message")), mapping(params.get("_meta"))
    if about.get("codex_approval_kind") != "mcp_tool_call":
        return None
    given = mapping(about.get("tool_params"))
    for item in items:
        tool = item.get("tool")
        known = item.get("type"), item.get("server"), mapping(item.get("arguments"))
        if known == ("mcpToolCall", server, given) and f'"{tool}"' in message:
            return Permission((key, ELICITATION), str(item.get("id")), f"mcp__{server}__{tool}", given)
    unclear = {**given, "message": message}
    return Permission((key, ELICITATION), str(key), f"mcp__{server}", unclear, exact=False)


def _call_id(key: Any, params: Mapping[str, Any]) -> str:
    return str(params.get("itemId") or key)
