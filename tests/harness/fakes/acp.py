#!/usr/bin/env python3
"""Speaks the Agent Client Protocol as the real agents were seen to."""

import os
import sys
from pathlib import Path
from typing import Any

from scenes import Fake, play

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Acp(Fake):
    home = Path(os.environ["HOME"])
    prompt: Any = None
    loads = "--load" in sys.argv

    def update(self, what: str, **more: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": what, **more}}
        self.write({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def piece(self, text: str) -> None:
        self.update("agent_thought_chunk", content={"type": "text", "text": "hm"})
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def tool(self, call_id: str, name: str, parameters: dict[str, Any]) -> None:
        self.update("tool_call", toolCallId=call_id, title=name, kind="other", status="pending", rawInput=parameters)
        self.update("tool_call_update", toolCallId=call_id, status="in_progress")

    def tool_end(self, call_id: str, text: str, *, failed: bool = False) -> None:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        self.update("tool_call_update", toolCallId=call_id, status="failed" if failed else "completed", content=content)

    def ask(self, call_id: str, name: str, parameters: dict[str, Any]) -> str:
        call: dict[str, Any] = {"toolCallId": call_id, "title": name, "kind": "execute", "rawInput": parameters}
        if "--terse" in sys.argv:
            text = {"type": "text", "text": f"May I run {parameters['command']}?"}
            call = {"toolCallId": call_id, "title": name, "content": [{"type": "content", "content": text}]}
        if "--vague" in sys.argv:
            call = {"toolCallId": call_id, "title": name, "rawInput": {"cwd": "."}}
        if "--own" in sys.argv:
            call = {"toolCallId": call_id, "title": "mcp__host__add"}
        if titles := [word.partition("=")[2] for word in sys.argv if word.startswith("--titled=")]:
            kind, _, title = titles[0].partition(":")  # Gemini CLI says which tool in words, and of which kind it is
            content = {"type": "text", "text": '{"page":"tea"}'}
            call = {"toolCallId": call_id, "title": title, "kind": kind, "content": [{"content": content}]}
        params = {"sessionId": self.session, "toolCall": call, "options": OPTIONS}
        self.write({"jsonrpc": "2.0", "id": 900, "method": "session/request_permission", "params": params})
        while (said := self.read()).get("id") != 900:
            pass
        outcome = said["result"]["outcome"]
        if outcome["outcome"] == "cancelled":
            self.until_interrupted()
            return "stop"
        if outcome["optionId"] == "no":
            self.update("tool_call_update", toolCallId=call_id, status="failed", rawInput=parameters)
        return {"yes": "allow", "no": "deny"}[outcome["optionId"]]

    def over(self, reason: str = "end_turn") -> None:
        self.update(
            "usage_update", used=1, size=2, cost={"amount": 0.25 * int(self.file.read_text()), "currency": "USD"}
        )
        result = {"stopReason": reason, "usage": {"inputTokens": 15, "outputTokens": 3}}
        self.write({"jsonrpc": "2.0", "id": self.prompt, "result": result})

    def fail(self, text: str) -> None:
        error = {"code": -32603, "message": "Internal error", "data": {"details": text}}
        self.write({"jsonrpc": "2.0", "id": self.prompt, "error": error})

    def interrupted(self) -> None:
        self.over("cancelled")

    def until_interrupted(self) -> None:
        while self.read().get("method") != "session/cancel":
            pass

    def again(self, said: dict[str, Any]) -> None:
        session = said["params"]["sessionId"]
        if "--logged-out" in sys.argv:
            error = {"code": -32000, "message": "Authentication required"}
            self.write({"jsonrpc": "2.0", "id": said["id"], "error": error})
            return
        if not self.known(session):
            error = {"code": -32002, "message": "Resource not found"}
            self.write({"jsonrpc": "2.0", "id": said["id"], "error": error})
            return
        self.begin(session)
        if said["method"] == "session/load":
            self.piece("replayed words")
        self.write({"jsonrpc": "2.0", "id": said["id"], "result": {}})
        if said["method"] == "session/load":
            self.piece("words replayed late")  # as Gemini CLI does


def main() -> None:
    fake = Acp()
    can = {
        "loadSession": True,
        "promptCapabilities": {"image": True},
        **({} if fake.loads else {"sessionCapabilities": {"resume": {}}}),
    }
    while True:
        said = fake.read()
        method = said.get("method")
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": can}
            fake.write({"jsonrpc": "2.0", "id": said["id"], "result": result})
        elif method == "session/new":
            fake.write({"jsonrpc": "2.0", "id": said["id"], "result": {"sessionId": fake.begin(None)}})
        elif method in {"session/resume", "session/load"}:
            fake.again(said)
        elif method == "session/prompt":
            fake.prompt = said["id"]
            play(fake, said["params"]["prompt"])


main()
