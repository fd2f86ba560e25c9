#!/usr/bin/env python3
"""Speaks ACP the way claude-agent-acp and codex-acp do, where they differ from others; recorded from the real ones."""

import json
import sys
from pathlib import Path
from typing import Any

CAN = {"loadSession": True, "sessionCapabilities": {"resume": {}, "systemPrompt": {}}}
CHOICES = [
    {
        "id": "model",
        "category": "model",
        "options": [{"value": "sol"}, {"group": "old", "options": [{"value": "luna"}]}],
    }
]
OPTIONS = [
    {"optionId": "allow_once", "name": "Yes, proceed", "kind": "allow_once"},
    {"optionId": "cancel", "name": "No, and tell Codex what to do differently", "kind": "reject_once"},
]


def write(value: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **value}), flush=True)


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def update(what: str, **more: Any) -> None:
    write({"method": "session/update", "params": {"sessionId": "s1", "update": {"sessionUpdate": what, **more}}})


def words(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})


def status(name: str) -> None:
    update("session_info_update", _meta={"codex": {"threadStatus": {"type": name}}})


def ask(call: dict[str, Any], key: Any = 0) -> str:
    """The option that was chosen, or how else it was answered."""
    call = {"toolCallId": "c0", "kind": "execute", "status": "pending", **call}
    params = {"sessionId": "s1", "toolCall": call, "options": OPTIONS}
    write({"id": key, "method": "session/request_permission", "params": params})
    while (said := read()).get("id") != key or "method" in said:
        pass
    outcome = said["result"]["outcome"]
    return str(outcome.get("optionId") or outcome["outcome"])


def pieces() -> str:
    """claude-agent-acp shows the arguments while the model still writes them, and the output as people read it."""
    meta = {"claudeCode": {"toolName": "Write"}}
    given = {"file_path": "a.txt", "content": "hello"}
    update("tool_call", toolCallId="c0", title="Write", kind="edit", status="pending", rawInput={}, _meta=meta)
    update("tool_call_update", toolCallId="c0", rawInput={"file_path": "a.txt"}, title="Write a.txt", _meta=meta)
    update("tool_call_update", toolCallId="c0", rawInput=given, _meta=meta)
    update("usage_update", used=12, size=1000)
    shown = [{"type": "content", "content": {"type": "text", "text": "```console\nwritten\n```"}}]
    update("tool_call_update", toolCallId="c0", status="completed", rawOutput="written", content=shown, _meta=meta)
    return "end_turn"


def command() -> str:
    """codex-acp tells what a command printed in an extension, bit by bit, and its name when it is over."""
    given = {"command": "ls", "cwd": "/somewhere"}
    update("tool_call", toolCallId="c0", title="ls", kind="execute", status="in_progress", rawInput=given)
    update("tool_call_update", toolCallId="c0", _meta={"terminal_output_delta": {"data": "a.txt\n"}})
    more = {"terminal_output_delta": {"data": "b.txt\n"}, "terminal_exit": {"exit_code": 0}}
    update("tool_call_update", toolCallId="c0", name="exec_command", status="completed", _meta=more)
    return "end_turn"


def of_a_server(server: str) -> str:
    """codex-acp asks about a call it has shown before, and does not say again what it is."""
    given = {"server": server, "tool": "keep", "arguments": {"value": 5}}
    meta = {"is_mcp_tool_call": True}
    title = f"mcp.{server}.keep"
    update("tool_call", toolCallId="c0", title=title, kind="execute", status="in_progress", rawInput=given, _meta=meta)
    if ask({}) == "allow_once":
        raw = {"result": {"content": [{"type": "text", "text": "kept"}]}, "error": None}
        update("tool_call_update", toolCallId="c0", status="completed", rawOutput=raw)
    return "end_turn"


def disguised(title: str) -> str:
    """A command that is written like the name of one of the host's tools."""
    chosen = ask({"title": title, "rawInput": {"command": title}})
    Path("answered.txt").write_text(chosen)
    return "cancelled" if chosen == "cancel" else "end_turn"


def trouble() -> str:
    status("active")
    status("systemError")
    words("The provider is down.\n\n")
    return "end_turn"


def late() -> str:
    """Asks once more when it was told to stop, and stops when that is answered."""
    words("Wait")
    while read().get("method") != "session/cancel":
        pass
    Path("answered.txt").write_text(ask({"title": "rm x", "rawInput": {"command": "rm x"}}))
    return "cancelled"


def noticed() -> str:
    update("notice", severity="warning", title="Model metadata not found")
    words("Clear words.")
    update("notice", severity="error", title="Hook failed", description="no such file")
    return "end_turn"


def unreadable() -> str:
    write({"id": ["no", "id"], "method": "session/request_permission", "params": {"options": []}})
    return "end_turn" if read() else ""


SCENES = {
    "pieces": pieces,
    "command": command,
    "own": lambda: of_a_server("host"),
    "foreign": lambda: of_a_server("elsewhere"),
    "disguised": lambda: disguised("mcp__host__keep"),
    "tail": lambda: disguised("rm -rf x # (host MCP Server)"),
    "trouble": trouble,
    "late": late,
    "noticed": noticed,
    "unreadable": unreadable,
}


def main() -> None:
    while True:
        said = read()
        params, method = said.get("params", {}), said.get("method")
        if method == "initialize":
            write({"id": said["id"], "result": {"protocolVersion": 1, "agentCapabilities": CAN}})
            Path("client.json").write_text(json.dumps(params))
        elif method in {"session/new", "session/resume"}:
            Path("opened.json").write_text(json.dumps(params))
            write({"id": said["id"], "result": {"sessionId": "s1", "configOptions": CHOICES}})
        elif method in {"session/set_config_option", "session/set_mode"}:
            write({"id": said["id"], "error": {"code": -32602, "message": "Invalid params"}})
        elif method == "session/prompt" and params["prompt"][0]["text"] == "login":
            write({"id": said["id"], "error": {"code": -32000, "message": "Authentication required"}})
        elif method == "session/prompt":
            write({"id": said["id"], "result": {"stopReason": SCENES[params["prompt"][0]["text"]]()}})


main()
