"""Three runners, each before a fake that speaks its wire, so that one suite holds for all."""

import json
import os
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock_runners.acp import Acp
from paddock_runners.claude_code import ClaudeCode
from paddock_runners.codex import Codex
from paddock_runners.harness.runner import HarnessRunner
from paddock_sdk.testing import PretendHost, PretendRun, RunResults, pretend_host

FAKES = Path(__file__).parent / "fakes"


@dataclass
class Kind:
    """One harness: its runner, and how its fake is named in the settings."""

    name: str
    runner: Callable[[], HarnessRunner]
    config: dict[str, Any]

    @property
    def steers(self) -> bool:
        return self.name != "acp"

    def tool(self, name: str) -> str:
        return f"mcp__s__{name}" if self.name == "codex" else name


KINDS = {
    "claude-code": Kind("claude-code", ClaudeCode, {"command": str(FAKES / "claude.py")}),
    "codex": Kind("codex", Codex, {"command": str(FAKES / "codex.py")}),
    "acp": Kind("acp", Acp, {"command": [str(FAKES / "acp.py")]}),
}


@dataclass
class Desk:
    """A pretend host with one harness before it, and its working directory."""

    kind: Kind
    host: PretendHost
    directory: Path
    seconds: float = 60.0
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    resources: dict[str, Any] = field(default_factory=dict[str, Any])
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    more: dict[str, Any] = field(default_factory=dict[str, Any])

    async def start(self, text: str, **config: Any) -> PretendRun:
        metadata = {"working_directory": str(self.directory), "session_key": str(self.directory)}
        runtime = {"host": "pretend", "trace_id": "t", "deadline_at": time.time() + self.seconds, "metadata": metadata}
        settings = {**self.kind.config, **self.config, **config}
        return await self.host.start(
            text, config=settings, runtime=runtime, resources=self.resources, secrets=self.secrets, **self.more
        )

    async def run(self, text: str, **config: Any) -> RunResults:
        return await (await self.start(text, **config)).results()

    @property
    def starts(self) -> list[dict[str, Any]]:
        """How the fake was started, each time."""
        return [json.loads(line) for line in (self.directory / "started.jsonl").read_text().splitlines()]

    @property
    def prompts(self) -> list[str]:
        return [json.loads(line) for line in (self.directory / "prompts.jsonl").read_text().splitlines()]

    @property
    def pages(self) -> list[str]:
        """What it was told of its run in words, before each prompt."""
        return [json.loads(line).strip() for line in (self.directory / "pages.jsonl").read_text().splitlines()]


@asynccontextmanager
async def a_desk(kind: Kind, tmp_path: Path, **host: Any) -> AsyncGenerator[Desk]:
    directory = tmp_path / "work"
    directory.mkdir(parents=True, exist_ok=True)
    old = os.environ.get("HOME", "")
    os.environ["HOME"] = str(tmp_path)
    try:
        async with pretend_host(kind.runner(), **host) as pretend:
            yield Desk(kind, pretend, directory)
    finally:
        os.environ["HOME"] = old


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
