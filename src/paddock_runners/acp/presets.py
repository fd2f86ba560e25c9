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
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings it takes only from files: path below the home, and text with `{model}`, `{base_url}` and `{key_env}`.
    Written when a key is set, and never into a home that the owner named."""
    address: str = ""
    """Of its provider, where such a file must name one."""


KIMI_SETTINGS = """default_model = "chosen"
telemetry = false

[providers.chosen]
type = "openai"
base_url = "{base_url}"
api_key_env = "{key_env}"

[models.chosen]
provider = "chosen"
model = "{model}"
max_context_size = 262144
"""

PRESETS: Mapping[str, Preset] = {
    "kimi-code": Preset(
        ("kimi", "acp"),
        "Kimi Code",
        "kimi",
        {"KIMI_CODE_HOME": "{home}/.kimi-code"},
        "PADDOCK_KIMI_API_KEY",
        files={".kimi-code/config.toml": KIMI_SETTINGS},
        address="https://api.kimi.com/coding/v1",
    ),
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
