"""Any agent that speaks the Agent Client Protocol: one of the presets, or whatever command line the owner gives."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock_runners.acp.gemini import set_aside
from paddock_runners.acp.opening import Opening
from paddock_runners.acp.presets import PRESETS, Preset
from paddock_runners.acp.wire import AcpWire
from paddock_runners.claude_code import NEVER
from paddock_runners.harness.config import FORM, Config, ConfigError, one_of, select, text, texts
from paddock_runners.harness.place import Place, program
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.runner import HarnessRunner
from paddock_runners.toolkit.words import both
from paddock_sdk.projection import Harness

CUSTOM = "custom"
SKILLS = ".agents/skills"


@dataclass(frozen=True, slots=True)
class AcpConfig(Config):
    preset: Preset = field(default_factory=lambda: Preset((), "ACP agent"))
    line: tuple[str, ...] = ()
    mode: str = ""
    auth: str = ""

    @property
    def writes_settings(self) -> bool:
        """Never into a home that the owner named."""
        return bool(self.preset.files and self.api_key and not self.home)

    @property
    def model_to_choose(self) -> str:
        """Model to ask for in the session; empty when a file or a variable names it already."""
        return "" if self.writes_settings or self.preset.model_env else self.model


class Acp(HarnessRunner):
    label = both("ACP agent", "ACP 智能体")
    description = both(
        "An agent that speaks the Agent Client Protocol, resumed turn by turn.",
        "任何支持 Agent Client Protocol 的智能体，每轮接着上一轮继续。",
    )
    harness = "acp"
    title = "ACP agent"
    config_schema = (
        select(
            "preset",
            both("Agent", "智能体"),
            (CUSTOM, *PRESETS),
            both("A known agent, or custom with a command.", "已知的智能体，或 custom 加命令行。"),
        ),
        {
            "name": "command",
            "type": "json",
            "label": both("Command line", "命令行"),
            "default": [],
            "host_only": True,
            "description": both(
                "Program and arguments, such as [kimi, acp]; needed for custom.",
                "程序及参数，例如 [kimi, acp]；选择 custom 时必填。",
            ),
        },
        *FORM,
        {
            "name": "mode",
            "type": "string",
            "label": both("Session mode", "会话模式"),
            "default": "",
            "description": both("The agent's own name.", "智能体自己使用的名称。"),
        },
        {"name": "auth", "type": "string", "label": both("Authentication method", "认证方式"), "default": ""},
    )

    def settings(self, said: Mapping[str, Any]) -> AcpConfig:
        chosen, line = one_of(said, "preset", (CUSTOM, *PRESETS)), texts(said, "command")
        if chosen == CUSTOM and not line:
            raise ConfigError("config.command must be the command line of an ACP agent, such as [kimi, acp]")
        known = Config.read({**said, "command": None}, program="")
        shared = {name: getattr(known, name) for name in Config.__dataclass_fields__}
        preset = PRESETS.get(chosen) or Preset(line, Path(line[0]).name)
        return AcpConfig(
            **shared, preset=preset, line=line or preset.command, mode=text(said, "mode"), auth=text(said, "auth")
        )

    def harness_of(self, config: Config) -> Harness:
        assert isinstance(config, AcpConfig)
        return config.preset.harness

    def title_of(self, config: Config) -> str:
        assert isinstance(config, AcpConfig)
        return config.preset.title

    def command(self, config: Config, place: Place, session_id: str | None) -> tuple[list[str], dict[str, str]]:
        assert isinstance(config, AcpConfig)
        if config.preset.harness == "gemini" and session_id:
            set_aside(place.home, session_id)
        preset, (name, *rest) = config.preset, config.line
        env = {key: value.format(home=place.home) for key, value in preset.env.items()}
        env |= preset.as_root if os.geteuid() == 0 else {}
        given = {preset.key_env: config.api_key, preset.url_env: config.base_url}
        given |= dict.fromkeys(preset.model_env, config.model)
        env |= {key: value for key, value in given.items() if key and value}
        for directory in (value for value in env.values() if value.startswith(f"{place.home}/")):
            Path(directory).mkdir(parents=True, exist_ok=True)
        if config.writes_settings:
            _write_settings(config, place)
        if config.preset.skills_at_home and not config.home:
            _show_skills(place)
        return [program(name, place.env), *rest, *config.args], env

    def wire(self, process: HarnessProcess, config: Config, place: Place) -> AcpWire:
        assert isinstance(config, AcpConfig)
        token = place.endpoint.token if place.endpoint else None
        servers = place.files.acp_servers(token)
        opening = Opening(
            str(place.directory),
            servers,
            place.context,
            _extensions(config),
            config.model_to_choose,
            config.mode,
            config.auth,
            imported=place.imported,
            obeys=config.preset.obeys,
        )
        return AcpWire(process, opening)


def _extensions(config: AcpConfig) -> dict[str, Any]:
    """Hide tools that are not allowed from the model: this agent does not ask before every use."""
    if not config.preset.options:
        return {}
    return {"claudeCode": {"options": {**config.preset.options, "disallowedTools": [*NEVER, *config.deny]}}}


def _show_skills(place: Place) -> None:
    """The conversation's own home leads to what was laid out in its directory, and to nothing when that is gone."""
    seen = place.home / SKILLS
    seen.parent.mkdir(exist_ok=True)
    if seen.is_symlink():
        seen.unlink()  # it may lead to where the agent worked before
    with suppress(FileExistsError):
        seen.symlink_to(place.directory / SKILLS)


def _write_settings(config: AcpConfig, place: Place) -> None:
    """The key itself is in no file, only the name of the variable that holds it."""
    preset = config.preset
    said = {"model": config.model, "base_url": config.base_url or preset.address, "key_env": preset.key_env}
    if any(character in value for value in said.values() for character in '"\\\n'):
        raise ConfigError("config.model and config.base_url must be plain text, without quotes or backslashes")
    said["model_line"] = f'model = "{config.model}"' if config.model else ""
    said["asked"] = "".join(f', "{server.name}_*": "ask"' for server in place.files.servers if not server.own)
    for name, template in preset.files.items():
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(template.format(**said), "utf-8")
