"""Claude Code in a conversation: one process for each turn, the session resumed, the person asked where it must be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from paddock_runners.claude_code.wire import ClaudeWire
from paddock_runners.harness.config import COMMAND, FORM, Config, ConfigError, one_of, select, texts
from paddock_runners.harness.place import Place, program
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.runner import HarnessRunner
from paddock_runners.toolkit.words import both
from paddock_sdk import AgentRunnerCapabilities

MODES = ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
FOREIGN = ("ListAgents", "SendMessage")
"""Tools that reach other sessions of Claude Code on the same machine."""
LATER = ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup")
"""Tools that promise something for later: the process ends with the turn, and the promise with it."""
ITS_OWN = ("Edit(**/.claude/**)", "Edit(**/.git/**)")
"""Files whose words it obeys without asking: a hook or a setting written there would run what `deny` forbids."""
NEVER = (*FOREIGN, *LATER, *ITS_OWN)
SPOKEN = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
STREAMED = ("--include-partial-messages", "--replay-user-messages", "--permission-prompt-tool", "stdio")


@dataclass(frozen=True, slots=True)
class ClaudeConfig(Config):
    mode: str = "default"
    tools: tuple[str, ...] | None = None


class ClaudeCode(HarnessRunner):
    label = "Claude Code"
    description = both(
        "Claude Code in a working directory of the conversation, resumed turn by turn.",
        "在对话自己的工作目录中运行 Claude Code，每轮接着上一轮继续。",
    )
    harness = "claude"
    title = "Claude Code"
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
            "permission_mode",
            both("Permission mode", "许可模式"),
            MODES,
            both(
                "Claude Code's own; what it then still asks, on_permission decides.",
                "Claude Code 自身的模式；其余请求由“当它请求许可时”决定。",
            ),
        ),
        {
            "name": "tools",
            "type": "json",
            "label": both("Built-in tools", "内置工具"),
            "default": None,
            "description": both(
                "Names of Claude Code's own tools; [] leaves only the host's. Empty: all of them.",
                "Claude Code 自带工具的名称；[] 表示只用主机的工具。留空表示全部。",
            ),
        },
    )

    def settings(self, said: Mapping[str, Any]) -> ClaudeConfig:
        known = Config.read(said, program="claude")
        tools = None if said.get("tools") is None else texts(said, "tools")
        if any("," in name for name in (*known.allow, *known.deny, *(tools or ()))):
            raise ConfigError("config.tools, config.allow and config.deny hold one tool in each text, without commas")
        shared = {name: getattr(known, name) for name in Config.__dataclass_fields__}
        return ClaudeConfig(**shared, mode=one_of(said, "permission_mode", MODES), tools=tools)

    def command(self, config: Config, place: Place, session_id: str | None) -> tuple[list[str], dict[str, str]]:
        assert isinstance(config, ClaudeConfig)
        said = ["--setting-sources", "project", "--strict-mcp-config", "--permission-mode", config.mode]
        said += ["--append-system-prompt-file", str(place.files.context_page)]
        if place.files.mcp_config is not None:
            said += ["--mcp-config", str(place.files.mcp_config)]
        own = [f"mcp__{server.name}" for server in place.files.servers if server.own]
        if allowed := [*own, *config.allow]:
            said += ["--allowedTools", ",".join(allowed)]
        said += ["--disallowedTools", ",".join([*NEVER, *config.deny])]
        said += ["--tools", ",".join(config.tools)] if config.tools is not None else []
        said += ["--model", config.model] if config.model else []
        said += ["--resume", session_id] if session_id else ["--session-id", str(uuid4())]
        return [program(config.command, place.env), *SPOKEN, *STREAMED, *said, *config.args], self._variables(
            config, place
        )

    def _variables(self, config: Config, place: Place) -> dict[str, str]:
        """Nothing is sent home, nothing updates itself, and a wrong key is known soon."""
        env = {
            "CLAUDE_CONFIG_DIR": str(place.home / ".claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_MAX_RETRIES": "3",
        }
        env |= {"ANTHROPIC_API_KEY": config.api_key} if config.api_key else {}
        return env | ({"ANTHROPIC_BASE_URL": config.base_url} if config.base_url else {})

    def wire(self, process: HarnessProcess, config: Config, place: Place) -> ClaudeWire:  # noqa: ARG002 - one shape for all
        return ClaudeWire(process, servers=frozenset(server.name for server in place.files.servers if server.own))
