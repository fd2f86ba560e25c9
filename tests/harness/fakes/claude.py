#!/usr/bin/env python3
"""Speaks Claude Code's stream-json as the real one was seen to."""

import os
import sys
from pathlib import Path
from typing import Any

from scenes import Fake, dead_servers, play


class Claude(Fake):
    home = Path(os.environ["CLAUDE_CONFIG_DIR"])
    turns = 0

    def line(self, kind: str, **more: Any) -> None:
        self.write({"type": kind, "session_id": self.session, "parent_tool_use_id": None, **more})

    def piece(self, text: str) -> None:
        delta = {"type": "text_delta", "text": text}
        self.line("stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta})

    def whole(self, text: str) -> None:
        self.assistant({"type": "text", "text": text})
        self.last = text

    def assistant(self, block: dict[str, Any], **more: Any) -> None:
        self.line("assistant", message={"role": "assistant", "model": "m", "content": [block]}, **more)

    def tool(self, call_id: str, name: str, parameters: dict[str, Any]) -> None:
        self.assistant({"type": "tool_use", "id": call_id, "name": name, "input": parameters})
        self.assistant({"type": "text", "text": "a helper's words"}, parent_tool_use_id=call_id)

    def tool_end(self, call_id: str, text: str, *, failed: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": failed}
        self.line("user", message={"role": "user", "content": [block]})

    def ask(self, call_id: str, name: str, parameters: dict[str, Any]) -> str:
        self.assistant({"type": "tool_use", "id": call_id, "name": name, "input": parameters})
        about = {"subtype": "can_use_tool", "tool_name": name, "input": parameters, "tool_use_id": call_id}
        self.write({"type": "control_request", "request_id": "p1", "request": about})
        while (said := self.read())["type"] != "control_response":
            pass
        verdict = said["response"]["response"]
        if verdict["behavior"] == "allow":
            return "allow"
        self.tool_end(call_id, verdict["message"], failed=True)
        return "stop" if verdict["interrupt"] else "deny"

    def over(self, **more: Any) -> None:
        Claude.turns += 1
        usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 3}
        about = {"subtype": "success", "is_error": False, "result": getattr(self, "last", ""), "usage": usage}
        self.line("result", **{**about, "total_cost_usd": 0.25 * int(self.file.read_text()), **more})

    def fail(self, text: str) -> None:
        block = {"type": "text", "text": f"API Error: {text}"}
        self.line("assistant", message={"role": "assistant", "model": "<synthetic>", "content": [block]})
        self.over(is_error=True, result=f"API Error: {text}")

    def not_logged_in(self) -> None:
        block, words = {"model": "<synthetic>", "content": []}, "Not logged in · Please run /login"
        self.line("assistant", message=block, error="authentication_failed")
        self.over(is_error=True, result=words, terminal_reason="api_error")

    def interrupted(self) -> None:
        self.over(subtype="error_during_execution", is_error=True, terminal_reason="aborted_streaming")

    def until_interrupted(self) -> None:
        while (said := self.read())["type"] != "control_request" or said["request"]["subtype"] != "interrupt":
            pass

    def steered(self) -> str:
        said = self.read()
        self.line("user", message=said["message"], uuid=said["uuid"], isReplay=True)
        return said["message"]["content"]

    def late(self) -> None:
        said = self.read()
        self.over()
        self.line("user", message=said["message"], uuid=said["uuid"], isReplay=True)
        play(self, said["message"]["content"])


def main() -> None:
    fake = Claude()
    argument = dict(zip(sys.argv, sys.argv[1:], strict=False))
    resumed = argument.get("--resume")
    if resumed is not None and not fake.known(resumed):
        print(f"No conversation found with session ID: {resumed}", file=sys.stderr, flush=True)
        sys.exit(1)
    fake.begin(resumed)
    while True:
        said = fake.read()
        if said["type"] == "control_request":
            answer = {"subtype": "success", "request_id": said["request_id"], "response": {}}
            fake.write({"type": "control_response", "response": answer})
        elif said["type"] == "user":
            servers = [{"name": name, "status": "failed"} for name in dead_servers()]
            fake.line("system", subtype="init", mcp_servers=servers, tools=[])
            if said["message"]["content"] == "login":
                fake.not_logged_in()
                continue
            play(fake, said["message"]["content"])


main()
