"""Approval requests of Codex in our words: which tool, with which arguments. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from paddock_runners.harness.heard import Permission
from paddock_runners.toolkit.values import mapping

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"
ABOUT_A_COMMAND = ("command", "cwd", "additionalPermissions", "networkApprovalContext")


def for_command(key: Any, params: Mapping[str, Any]) -> Permission:
    about = {name: params[name] for name in ABOUT_A_COMMAND if params.get(name) is not None}
    return Permission((key, COMMAND), _call_id(key, params), "shell", about, exact="command" in about)


def for_patch(key: Any, params: Mapping[str, Any], items: Mapping[str, Mapping[str, Any]]) -> Permission:
    changes = items.get(call_id := _call_id(key, params), {}).get("changes")
    return Permission((key, PATCH), call_id, "apply_patch", {"changes": changes}, exact=bool(changes))


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
