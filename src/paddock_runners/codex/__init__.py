"""Codex in a conversation: its app-server, one process for each turn, the thread resumed, steered in the middle."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddock_runners.codex.wire import CodexWire, Opening
from paddock_runners.harness.config import COMMAND, FORM, Config, ConfigError, matches, one_of, select
from paddock_runners.harness.place import Place, program
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.runner import HarnessRunner
from paddock_runners.toolkit.words import both
from paddock_sdk import AgentRunnerCapabilities

SANDBOXES = ("workspace-write", "read-only", "danger-full-access")
PROVIDER = "paddock"
KEY_VARIABLE = "PADDOCK_CODEX_API_KEY"
"""Its name ends as it does so that Codex keeps it from the commands it runs."""
OPENAI = "https://api.openai.com/v1"
QUIET: Mapping[str, Any] = {
    "shell_environment_policy": {"ignore_default_excludes": False},
    "sandbox_workspace_write": {"exclude_slash_tmp": True, "exclude_tmpdir_env_var": True},
}
"""Commands see no keys and write nowhere but in the working directory."""
HIDDEN: Mapping[str, Mapping[str, Any]] = {
    "shell": {"features": {"shell_tool": False, "unified_exec": False}},
    "web_search": {"web_search": "disabled"},
}
"""What keeps a tool from its model, which may use it without a question."""


@dataclass(frozen=True, slots=True)
class CodexConfig(Config):
    sandbox: str = SANDBOXES[0]


class Codex(HarnessRunner):
    label = "Codex"
    description = both(
        "Codex in a working directory of the conversation, resumed turn by turn.",
        "在对话自己的工作目录中运行 Codex，每轮接着上一轮继续。",
    )
    harness = "codex"
    title = "Codex"
    capabilities = AgentRunnerCapabilities(
        streaming=True,
        tool_calling=True,
        multimodal_input=True,
        interrupt=True,
        stateful_session=True,
        steering=True,
    )
    config_schema = (
        COMMAND,
        *FORM,
        select(
            "sandbox",
            both("Sandbox", "沙箱"),
            SANDBOXES,
            both(
                "Codex's own, for the commands it runs; leaving it is asked for.",
                "Codex 自身的沙箱，用于它执行的命令；离开沙箱须先询问。",
            ),
        ),
    )

    def settings(self, said: Mapping[str, Any]) -> CodexConfig:
        known, sandbox = Config.read(said, program="codex"), one_of(said, "sandbox", SANDBOXES)
        if matches("apply_patch", known.deny) and sandbox != "read-only":
            raise ConfigError("config.deny names apply_patch: Codex asks before it only with config.sandbox: read-only")
        shared = {name: getattr(known, name) for name in Config.__dataclass_fields__}
        return CodexConfig(**shared, sandbox=sandbox)

    def command(self, config: Config, place: Place, session_id: str | None) -> tuple[list[str], dict[str, str]]:  # noqa: ARG002 - one shape for all
        env = {"CODEX_HOME": str(place.home / ".codex")}
        (place.home / ".codex").mkdir(exist_ok=True)
        argv = [program(config.command, place.env), "app-server"]
        if config.base_url or config.api_key:
            env |= {KEY_VARIABLE: config.api_key} if config.api_key else {}
            argv += ["-c", f'model_provider="{PROVIDER}"', "-c", f"model_providers.{PROVIDER}={_provider(config)}"]
        return [*argv, *config.args], env

    def wire(self, process: HarnessProcess, config: Config, place: Place) -> CodexWire:
        assert isinstance(config, CodexConfig)
        settings = {**QUIET, **_hidden(config.deny), **place.files.codex_config()}
        return CodexWire(process, Opening(str(place.directory), place.context, config.sandbox, config.model, settings))


def _hidden(denied: Sequence[str]) -> dict[str, Any]:
    return {key: value for name, said in HIDDEN.items() if matches(name, denied) for key, value in said.items()}


def _provider(config: Config) -> str:
    """A table in Codex's own configuration language; the key is named, never said. Who named none needs none: Codex
    would not even ask a provider whose key is missing."""
    fields = {"name": PROVIDER, "base_url": config.base_url or OPENAI, "wire_api": "responses"}
    fields |= {"env_key": KEY_VARIABLE} if config.api_key else {}
    said = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return "{" + said + ", request_max_retries = 1, stream_max_retries = 1}"
