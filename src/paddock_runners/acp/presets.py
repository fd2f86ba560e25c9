"""Agents known to speak the Agent Client Protocol: how each is started, and what it has to be told. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paddock_sdk.projection import Harness


@dataclass(frozen=True, slots=True)
class Preset:
    command: tuple[str, ...]
    title: str
    harness: Harness = "acp"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """`{home}` is the home directory of this conversation."""
    key_env: str = ""
    """Where it looks for its provider's key, and for its provider's address."""
    url_env: str = ""
    as_root: Mapping[str, str] = field(default_factory=dict[str, str])


PRESETS: Mapping[str, Preset] = {
    "kimi-code": Preset(("kimi", "acp"), "Kimi Code", "kimi", {"KIMI_CODE_HOME": "{home}/.kimi-code"}),
    "opencode": Preset(("opencode", "acp"), "opencode", "opencode"),
    "gemini": Preset(
        ("gemini", "--acp"),
        "Gemini CLI",
        "gemini",
        {"GEMINI_CLI_NO_RELAUNCH": "true"},  # a second process of it would survive the first
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
    ),
    "claude": Preset(
        ("claude-agent-acp",),
        "Claude Code (ACP)",
        "claude",
        {"CLAUDE_CONFIG_DIR": "{home}/.claude", "ENABLE_TOOL_SEARCH": "false"},  # else the host's tools are hidden
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        {"IS_SANDBOX": "1"},
    ),
    "codex": Preset(
        ("codex-acp",),
        "Codex (ACP)",
        "codex",
        {"CODEX_HOME": "{home}/.codex", "INITIAL_AGENT_MODE": "workspace-write"},  # else a model judges what it may do
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ),
}
