"""Items of a Codex turn that are calls of tools, in our words. Pure; items of any other kind are not told."""

from collections.abc import Iterator, Mapping
from typing import Any

from paddock_runners.harness.heard import Heard, ToolBegan, ToolEnded
from paddock_runners.toolkit.values import listing, mapping


def began(item: Mapping[str, Any]) -> Iterator[Heard]:
    call = _call(item)
    if call is not None:
        yield ToolBegan(str(item.get("id")), *call)


def ended(item: Mapping[str, Any]) -> Iterator[Heard]:
    call = _call(item)
    if call is None:
        return
    call_id, failed = str(item.get("id")), item.get("status") in {"failed", "declined"}
    words = _words(item)
    if failed:
        yield ToolEnded(call_id, call[0], error=words or str(item.get("status")))
    else:
        yield ToolEnded(call_id, call[0], result=words)


def _call(item: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The tool's name and what it is called with."""
    match item.get("type"):
        case "commandExecution":
            return "shell", {"command": item.get("command"), "cwd": item.get("cwd")}
        case "fileChange":
            return "apply_patch", {"changes": item.get("changes")}
        case "mcpToolCall":
            return f"mcp__{item.get('server')}__{item.get('tool')}", mapping(item.get("arguments"))
        case "webSearch":
            return "web_search", {"query": item.get("query")}
        case _:
            return None


def _words(item: Mapping[str, Any]) -> str:
    if item.get("type") == "commandExecution":
        output, status = str(item.get("aggregatedOutput") or ""), item.get("exitCode")
        return output if status in {0, None} else f"{output}\n(exit status {status})".lstrip()
    if item.get("type") == "mcpToolCall":
        error = mapping(item.get("error")).get("message")
        parts = map(mapping, listing(mapping(item.get("result")).get("content")))
        return str(error or "\n".join(str(part.get("text", f"({part.get('type')})")) for part in parts))
    return str(item.get("status") or "")
