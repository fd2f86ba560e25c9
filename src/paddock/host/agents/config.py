"""Settings of agents: checked and completed for their runner, with secrets looked up when a runner needs them.

Secrets are references to variables and files.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from paddock.host.agents.agents import AgentBinding
from paddock.rules.access.host_only import NOTHING_OPENED, ApiAgents, refused_over_api
from paddock.rules.agents.config import (
    Reference,
    SettingPath,
    passwords_of,
    problems,
    references,
    with_defaults,
    with_values,
)
from paddock.rules.agents.resources import AgentExtras
from paddock.rules.errors import ErrorCode, HostError, RunCode
from paddock_sdk.protocol.manifest import AgentRunnerManifest

CONFIG_INVALID: RunCode = "agent.config_invalid"
IN_FILE_ONLY = "directories of the host's machine are named in the agents file only"
OTHERS_WORDS = "agents that read everybody's conversations are written in the agents file only"
MAX_SECRET_BYTES = 64 * 1024


class SecretError(Exception):
    """A secret cannot be read; the text names the setting and the reason, never a value."""


def resolved(config: Mapping[str, Any], passwords: frozenset[str], base: Path | None, where: str) -> dict[str, Any]:
    """Replace every reference in the settings by its value; relative files are relative to `base`.

    Without a base nothing is looked up: settings that come over the network must not read the host's files.
    """
    found: dict[SettingPath, str] = {}
    for place, known in references(config, passwords):
        name = ".".join((where, *map(str, place)))
        if base is None:
            raise SecretError(f"{name}: references to secrets are read in the agents file only; write the value here")
        found[place] = _value(known, base, name)
    return with_values(config, found)


def _value(known: Reference, base: Path, name: str) -> str:
    if known.kind == "env":
        value = os.environ.get(known.name)
        if not value:
            raise SecretError(f"{name}: the host's environment has no variable {known.name}")
        return value
    try:
        with (base / Path(known.name).expanduser()).open("rb") as file:
            raw = file.read(MAX_SECRET_BYTES + 1)
        if len(raw) > MAX_SECRET_BYTES:
            raise SecretError(f"{name}: the file {known.name} is larger than {MAX_SECRET_BYTES} bytes")
        return raw.decode().rstrip("\r\n")
    except OSError as error:
        raise SecretError(f"{name}: the file {known.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecretError(f"{name}: the file {known.name} is not UTF-8 text") from error


def settle_config(
    binding: AgentBinding, manifest: AgentRunnerManifest, opened: ApiAgents = NOTHING_OPENED
) -> tuple[Mapping[str, Any], AgentExtras]:
    """Return the config for the runner: checked, with defaults and secrets filled in. Raises HostError."""
    form = manifest.config_schema
    found = problems(binding.config, form)
    if binding.origin == "api":
        found += leads_outside(binding) or refused_over_api(manifest, binding.config, binding.extras.mcp, opened)
    if found:
        raise _invalid(binding, "; ".join(found[:5]))
    try:
        config = resolved(with_defaults(binding.config, form), passwords_of(form), binding.base, "config")
        servers = resolved({"mcp": list(binding.extras.mcp)}, frozenset(), binding.base, "mcp")["mcp"]
    except SecretError as error:
        if binding.base is None:
            raise _invalid(binding, str(error)) from error
        raise _invalid(binding, "a secret that the agents file names cannot be had", str(error)) from error
    return config, msgspec.structs.replace(binding.extras, mcp=tuple(servers))


def leads_outside(binding: AgentBinding) -> list[str]:
    """Return fields that an agent of the API may not set, whatever its runner."""
    extras = binding.extras
    paths: dict[str, object] = {"working_directory": extras.working_directory, "readable": extras.readable or None}
    paths |= {f"skills.{number}.path": skill.get("path") for number, skill in enumerate(extras.skills)}
    found = [f"{name}: {IN_FILE_ONLY}" for name, path in paths.items() if path is not None]
    if binding.policy.history_scope == "workspace":
        found.append(f"history_scope: {OTHERS_WORDS}")
    return found


def _invalid(binding: AgentBinding, problem: str, for_operators: str = "") -> HostError:
    text = f"agent {binding.agent_id!r} is set up wrongly: {problem}"
    more = f"{text} ({for_operators})" if for_operators else ""
    return HostError(ErrorCode.INVALID_ARGUMENT, text, details={"run_code": CONFIG_INVALID}, for_operators=more)
