#!/usr/bin/env python3
"""Speaks the app-server of Codex as the real one was seen to."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from scenes import Fake, dead_servers, play


class Codex(Fake):
    home = Path(os.environ["CODEX_HOME"])

    def tell(self, method: str, **params: Any) -> None:
        self.write({"method": method, "params": {"threadId": self.session, "turnId": "turn", **params}})

    def piece(self, text: str) -> None:
        self.tell("item/agentMessage/delta", itemId="m", delta=text)
        self.write({"method": "item/agentMessage/delta", "params": {"threadId": "a helper's", "delta": "no"}})

    def whole(self, text: str) -> None:
        self.tell("item/completed", item={"type": "agentMessage", "id": "m", "text": text})

    def item(self, method: str, call_id: str, **more: Any) -> None:
        item = {"type": "mcpToolCall", "id": call_id, "server": "s", "tool": self.name, "arguments": self.parameters}
        self.tell(method, item={**item, **more})

    def tool(self, call_id: str, name: str, parameters: dict[str, Any]) -> None:
        self.name, self.parameters = name, parameters
        self.item("item/started", call_id, status="inProgress")

    def tool_end(self, call_id: str, text: str, *, failed: bool = False) -> None:
        if failed:
            self.item("item/completed", call_id, status="failed", error={"message": text})
        else:
            content = [{"type": "text", "text": text}]
            self.item("item/completed", call_id, status="completed", result={"content": content})

    def ask(self, call_id: str, name: str, parameters: dict[str, Any]) -> str:
        if words := [word.partition("=")[2] for word in sys.argv if word.startswith("--server=")]:
            return self.ask_for_a_server(call_id, words[0])
        item = {"type": "commandExecution", "id": call_id, "command": parameters["command"], "cwd": "."}
        self.tell("item/started", item={**item, "status": "inProgress"})
        params = {"threadId": self.session, "itemId": call_id, "command": parameters["command"], "cwd": "."}
        self.write({"id": 900, "method": "item/commandExecution/requestApproval", "params": params})
        while (said := self.read()).get("id") != 900:
            pass
        verdict = {"accept": "allow", "decline": "deny", "cancel": "stop"}[said["result"]["decision"]]
        if verdict != "allow":
            self.tell("item/completed", item={**item, "status": "declined"})
        return verdict

    def ask_for_a_server(self, call_id: str, word: str) -> str:
        """Before a tool of a further MCP server: which one, and with what, is beside the words for people."""
        item = {"type": "mcpToolCall", "id": call_id, "server": "wiki", "tool": "look_up", "arguments": {"word": word}}
        self.tell("item/started", item={**item, "status": "inProgress"})
        about = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"word": word}}
        answer = self.elicit('Allow the wiki MCP server to run tool "look_up"?', _meta=about)
        said = {"status": "failed", "error": {"message": "user rejected MCP tool call"}}
        self.tell("item/completed", item={**item, **({"status": "completed"} if answer == "accept" else said)})
        return {"accept": "allow", "decline": "deny", "cancel": "stop"}[answer]

    def offline(self, tries: int) -> None:
        """What it says when there is nobody at its provider's address, again and again, and for ever if need be."""
        info, about = {"responseStreamDisconnected": {}}, "Connection failed: error sending request"
        error = {"message": "Reconnecting... waiting for network", "codexErrorInfo": info, "additionalDetails": about}
        for _ in range(tries):
            self.tell("error", error=error, willRetry=True)

    def elicit(self, message: str, **more: Any) -> str:
        params = {"threadId": self.session, "serverName": "wiki", "mode": "form", "message": message, **more}
        self.write({"id": 901, "method": "mcpServer/elicitation/request", "params": params})
        while (said := self.read()).get("id") != 901:
            pass
        return said["result"]["action"]

    def over(self, status: str = "completed", **more: Any) -> None:
        count = int(self.file.read_text())
        total = {"inputTokens": 15 * count, "outputTokens": 3 * count}
        self.tell("thread/tokenUsage/updated", tokenUsage={"total": total})
        self.tell("turn/completed", turn={"id": "turn", "status": status, "items": [], **more})

    def fail(self, text: str) -> None:
        self.over("failed", error={"message": text})

    def interrupted(self) -> None:
        self.over("interrupted")

    def until_interrupted(self) -> None:
        while (said := self.read()).get("method") != "turn/interrupt":
            pass
        self.write({"id": said["id"], "result": {}})

    def steered(self) -> str:
        said = self.read()
        assert (said["method"], said["params"]["expectedTurnId"]) == ("turn/steer", "turn")
        self.write({"id": said["id"], "result": {"turnId": "turn"}})
        return said["params"]["input"][0]["text"]

    def late(self) -> None:
        said = self.read()
        self.over()
        self.write({"id": said["id"], "error": {"code": -32600, "message": "no active turn to steer"}})


def main() -> None:
    fake = Codex()
    assert sys.argv[1] == "app-server"
    while True:
        said = fake.read()
        method, params = said.get("method"), said.get("params") or {}
        if method == "initialize":
            fake.write({"id": said["id"], "result": {"userAgent": "fake"}})
        elif method == "thread/resume" and not fake.known(params["threadId"]):
            error = {"code": -32600, "message": f"no rollout found for thread id {params['threadId']}"}
            fake.write({"id": said["id"], "error": error})
        elif method in {"thread/start", "thread/resume"}:
            Path("opened.json").write_text(json.dumps(params))
            fake.write({"id": said["id"], "result": {"thread": {"id": fake.begin(params.get("threadId"))}}})
        elif method == "turn/start":
            fake.write({"id": said["id"], "result": {"turn": {"id": "turn"}}})
            for name in dead_servers():
                fake.tell("mcpServer/startupStatus/updated", name=name, status="failed", error="handshake failed")
            if params["input"][0]["text"].startswith("offline"):
                fake.offline(tries=int(params["input"][0]["text"].split()[1]))
            if params["input"][0]["text"] == "elicit":
                Path("elicited.txt").write_text(fake.elicit("What is your name?"))
            play(fake, params["input"])


main()
