"""Agents known to speak the Agent Client Protocol: how each is started, and what it has to be told. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    model_env: tuple[str, ...] = ()
    """Variables that name the model, where it would otherwise take only one of its own list."""
    as_root: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings it takes only from files: path below the home, and text with `{model}`, `{base_url}` and `{key_env}`
    (`{model_line}`: the model as a line of TOML, or nothing where none is named; `{asked}`: the tools of further MCP
    servers, to be asked about). Written when a key is set."""
    address: str = ""
    """Of its provider, where such a file must name one."""
    skills_at_home: bool = False
    """It looks for skills at the root of the repository that the working directory lies in, and in its home."""
    obeys: tuple[str, ...] = ()
    """Names of files that it obeys without asking, beside those that no harness may write."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Claude Code's own, which its adapter takes when a session begins; what the owner denies is put beside them."""


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
 "permission": {{"edit": "ask", "bash": "ask", "webfetch": "ask"{asked}}},
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
"""Any provider with an OpenAI-compatible API. It asks before it changes anything, and before it calls a tool of another
server than the host's; left to itself it would not."""

CODEX_SETTINGS = """{model_line}
model_provider = "chosen"

[model_providers.chosen]
name = "chosen"
base_url = "{base_url}"
env_key = "{key_env}"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1

[shell_environment_policy]
ignore_default_excludes = false
"""
"""Its own variable for the provider's address is no longer read. Commands it runs see no keys."""

GEMINI_ENV: Mapping[str, str] = {
    "GEMINI_CLI_NO_RELAUNCH": "true",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}
"""A second process of it would survive the first. In a directory it does not trust it uses no MCP server and no skill,
and keeps no session; the directory is the conversation's own, and what it may do there is decided by us."""

CLAUDE_ENV: Mapping[str, str] = {
    "CLAUDE_CONFIG_DIR": "{home}/.claude",
    "ENABLE_TOOL_SEARCH": "false",  # else the host's tools are hidden
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_MAX_RETRIES": "3",
}
CLAUDE_OPTIONS: Mapping[str, Any] = {
    "settingSources": ["project"],
    "strictMcpConfig": True,
    "title": "Paddock",
    "promptSuggestions": False,
}
"""Only what was laid out for the run. A model is not asked for the name of the conversation, nor for the person's next
words: nobody here would see either."""

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
        obeys=(".env",),  # variables in it say which settings it reads
    ),
    "claude": Preset(
        ("claude-agent-acp",),
        "Claude Code (ACP)",
        "claude",
        CLAUDE_ENV,
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        ("ANTHROPIC_CUSTOM_MODEL_OPTION", "ANTHROPIC_MODEL"),
        {"IS_SANDBOX": "1"},
        options=CLAUDE_OPTIONS,
    ),
    "codex": Preset(
        ("codex-acp",),
        "Codex (ACP)",
        "codex",
        {"CODEX_HOME": "{home}/.codex", "INITIAL_AGENT_MODE": "workspace-write"},  # else a model judges what it may do
        "PADDOCK_CODEX_API_KEY",
        files={".codex/config.toml": CODEX_SETTINGS},
        address="https://api.openai.com/v1",
    ),
}
