"""The real harnesses, pinned, as `make harnesses` installs them. A test that cannot have one says so."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from needs import not_run

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "harnesses"
NATIVE = INSTALLED / "node_modules"
WORK = ROOT / "harnesses" / ".work"
"""Codex's sandbox does not work with a home below the system's temporary directory."""
ACP = ROOT / "harnesses" / "acp" / "node_modules"
KIMI = (ACP / ".bin" / "node", ACP / "@moonshot-ai" / "kimi-code" / "dist" / "main.mjs")
Call = tuple[str, str]


@dataclass(frozen=True)
class Real:
    """One real harness: what its agent is set to, and how a model calls its tools."""

    name: str
    program: str
    """Below the directory that holds the installed ones."""
    shell: Callable[[str], Call]
    host_tool: Callable[[str, Any], Call]
    config: dict[str, Any]
    url_path: str = "/v1"
    native: str = ""
    """Where the program itself lies, below node_modules; what is on the PATH may only be a door to it."""
    runner: str = ""
    made_by: str = "make harnesses"

    def path(self) -> str:
        program = INSTALLED / self.program
        if not program.exists():
            not_run(f"the real {self.name}, because it is not installed; `{self.made_by}` does it")
        return str(program)

    def agent(self, url: str, **config: Any) -> dict[str, Any]:
        address = url.removesuffix("/v1") + self.url_path
        settings = {"command": self.path(), "api_key": "none", "base_url": address, **self.config, **config}
        return {"runner": f"plugin:paddock/{self.runner or self.name}/default", "config": settings}


def _claude_shell(command: str) -> Call:
    return "Bash", json.dumps({"command": command, "description": "for the test"})


def _codex_shell(command: str) -> Call:
    asked = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": "for the test"}
    return "exec_command", json.dumps(asked)


REAL = {
    "claude-code": Real(
        "claude-code",
        "node_modules/.bin/claude",
        _claude_shell,
        lambda name, given: (f"mcp__host__{name}", json.dumps(given)),
        {"model": "claude-sonnet-4-5"},
        "",
        native="@anthropic-ai/claude-code-*/claude",
    ),
    "codex": Real(
        "codex",
        "node_modules/.bin/codex",
        _codex_shell,
        lambda name, given: (f"mcp__host.{name}", json.dumps(given)),
        {"model": "scripted"},
        native="@openai/codex-*/vendor/*/bin/codex",
    ),
    "opencode": Real(
        "opencode",
        "acp/node_modules/.bin/opencode",
        lambda command: ("bash", json.dumps({"command": command, "description": "for the test"})),
        lambda name, given: (f"host_{name}", json.dumps(given)),
        {"model": "scripted", "preset": "opencode", "command": [str(ACP / ".bin" / "opencode"), "acp"]},
        runner="acp",
        made_by="make harnesses-acp",
    ),
    "gemini": Real(
        "gemini",
        "acp/node_modules/.bin/gemini",
        lambda command: ("run_shell_command", json.dumps({"command": command, "description": "for the test"})),
        lambda name, given: (f"mcp_host_{name}", json.dumps(given)),
        {
            "model": "gemini-2.5-flash",
            "preset": "gemini",
            "auth": "gemini-api-key",
            "command": [str(KIMI[0]), str(ACP / "@google" / "gemini-cli" / "bundle" / "gemini.js"), "--acp"],
        },
        "",
        runner="acp",
        made_by="make harnesses-acp",
    ),
    "kimi-code": Real(
        "kimi-code",
        "acp/node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
        lambda command: ("Bash", json.dumps({"command": command})),
        lambda name, given: (f"mcp__host__{name}", json.dumps(given)),
        {"model": "scripted", "preset": "kimi-code", "command": [*map(str, KIMI), "acp"]},
        runner="acp",
        made_by="make harnesses-acp",
    ),
}


def processes_of(directory: Path) -> list[psutil.Process]:
    """Everything that was started for a conversation that works in this directory, wherever it is by now."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
            alive = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if alive and "PADDOCK_HARNESS_RUN" in env and env.get("HOME", "").startswith(str(directory)):
            found.append(process)
    return found


def token_of(directory: Path) -> str:
    """The token that a live harness was given."""
    return next(process.environ()["PADDOCK_RUN_TOKEN"] for process in processes_of(directory))
