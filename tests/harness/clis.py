"""The real harnesses, pinned, as `make harnesses` installs them. A test that cannot have one says so."""

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
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
NODE = ACP / ".bin" / "node"
KIMI = (NODE, ACP / "@moonshot-ai" / "kimi-code" / "dist" / "main.mjs")
CLAUDE_ACP = ACP / "@agentclientprotocol" / "claude-agent-acp" / "dist" / "index.js"
CODEX_ACP = ACP / "@agentclientprotocol" / "codex-acp" / "dist" / "index.js"
Call = tuple[str, str]


def node_is_new() -> bool:
    """Whether the machine's own Node runs Kimi Code; what `make have-harnesses` asks as well."""
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return False
    return tuple(int(part) for part in said.strip().lstrip("v").split(".")[:2]) >= (22, 19)


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
    picture: str = ""
    """How its model is shown one."""
    goes_on_refused: bool = True
    """Whether its model hears of a refusal; else the turn ends with it."""

    def path(self) -> str:
        program = INSTALLED / self.program
        if not program.exists():
            not_run(f"the real {self.name}, because it is not installed; `{self.made_by}` does it")
        return str(program)

    def server_tool(self, server: str, name: str, given: Any) -> Call:
        """The same tool of another server than the host's."""
        called, arguments = self.host_tool(name, given)
        return called.replace("host", server, 1), arguments

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
        picture='"type": "image", "source"',
    ),
    "codex": Real(
        "codex",
        "node_modules/.bin/codex",
        _codex_shell,
        lambda name, given: (f"mcp__host.{name}", json.dumps(given)),
        {"model": "scripted"},
        native="@openai/codex-*/vendor/*/bin/codex",
        picture='"type": "input_image"',
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
            "command": [str(NODE), str(ACP / "@google" / "gemini-cli" / "bundle" / "gemini.js"), "--acp"],
        },
        "",
        runner="acp",
        made_by="make harnesses-acp",
    ),
    "claude-acp": Real(
        "claude-acp",
        str(CLAUDE_ACP.relative_to(INSTALLED)),
        _claude_shell,
        lambda name, given: (f"mcp__host__{name}", json.dumps(given)),
        {
            "model": "claude-sonnet-4-5",
            "preset": "claude",
            "command": [str(NODE), str(CLAUDE_ACP)],
        },
        "",
        runner="acp",
        made_by="make harnesses-acp",
        picture='"type": "image", "source"',
    ),
    "codex-acp": Real(
        "codex-acp",
        str(CODEX_ACP.relative_to(INSTALLED)),
        _codex_shell,
        lambda name, given: (f"mcp__host.{name}", json.dumps(given)),
        {
            "model": "scripted",
            "preset": "codex",
            "command": [str(NODE), str(CODEX_ACP)],
        },
        runner="acp",
        made_by="make harnesses-acp",
        picture='"type": "input_image"',
        goes_on_refused=False,
    ),
    "kimi-code": Real(
        "kimi-code",
        "acp/node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
        lambda command: ("Bash", json.dumps({"command": command})),
        lambda name, given: (f"mcp__host__{name}", json.dumps(given)),
        {"model": "scripted", "preset": "kimi-code", "command": [*map(str, KIMI), "acp"]},
        runner="acp",
        made_by="make harnesses-acp",
        picture='"type": "image_url"',
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


def runs(directory: Path, program: str) -> bool:
    """Whether a command of that name runs there."""
    for process in processes_of(directory):
        with suppress(psutil.Error):
            if any(Path(first).name.startswith(program) for first in process.cmdline()[:1]):
                return True
    return False


def token_of(directory: Path) -> str:
    """The token that a live harness was given."""
    return next(process.environ()["PADDOCK_RUN_TOKEN"] for process in processes_of(directory))
