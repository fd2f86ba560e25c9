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
    skills_at_home: bool = False
    """It looks for skills at the root of the repository that the working directory lies in, and in its home."""


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

OPENCODE_SETTINGS = """{{
 "autoupdate": false,
 "share": "disabled",
 "model": "chosen/{model}",
 "small_model": "chosen/{model}",
 "permission": {{"edit": "ask", "bash": "ask", "webfetch": "ask"}},
 "provider": {{"chosen": {{
  "npm": "@ai-sdk/openai-compatible",
  "name": "chosen",
  "options": {{"baseURL": "{base_url}", "apiKey": "{{env:{key_env}}}"}},
  "models": {{"{model}": {{
   "attachment": true, "tool_call": true, "modalities": {{"input": ["text", "image"], "output": ["text"]}}
  }}}}
 }}}}
}}
"""
"""Any provider with an OpenAI-compatible API. It asks before it changes anything; left to itself it would not."""

GEMINI_ENV: Mapping[str, str] = {
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}
"""A second process of it would survive the first. In a directory it does not trust it uses no MCP server and no skill,
and keeps no session; the directory is the conversation's own, and what it may do there is decided by us."""

PRESETS: Mapping[str, Preset] = {
    "kimi-code": Preset(
        ("kimi", "acp"),
        "Kimi Code",
        "kimi",
        {"KIMI_CODE_HOME": "{home}/.kimi-code"},
        "PADDOCK_KIMI_API_KEY",
        files={".kimi-code/config.toml": KIMI_SETTINGS},
        address="https://api.kimi.com/coding/v1",
        skills_at_home=True,
    ),
    "opencode": Preset(
        ("opencode", "acp"),
        "opencode",
        "opencode",
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        "PADDOCK_OPENCODE_API_KEY",
        files={".config/opencode/opencode.json": OPENCODE_SETTINGS},
        address="https://api.openai.com/v1",
    ),
    "gemini": Preset(
        ("gemini", "--acp"),
        "Gemini CLI",
        "gemini",
        GEMINI_ENV,
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
