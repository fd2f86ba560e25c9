"""What a package says of itself in `paddock-plugin.toml`: who it is, how it starts, what it asks for."""

import re
import tomllib
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from paddock.runners.packages.contents import PLUGIN_FILE, PackageError
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*([<>=!~][^@;\s][^@;]*)?(;.*)?")


class _Plugin(BaseModel):
    model_config = ConfigDict(extra="allow")
    author: str
    name: str
    version: Annotated[str, Field(min_length=1, max_length=64)]
    description: str = ""
    command: Annotated[list[str], Field(min_length=1)]


class _Python(BaseModel):
    requirements: list[str] = Field(default=[], max_length=100)


class _PluginFile(BaseModel):
    model_config = ConfigDict(extra="allow")
    plugin: _Plugin
    permissions: AgentRunnerPermissions = AgentRunnerPermissions()
    python: _Python = _Python()


@dataclass(frozen=True, slots=True)
class PluginFile:
    plugin_id: PluginId
    version: str
    description: str
    command: tuple[str, ...]
    permissions: AgentRunnerPermissions
    requirements: tuple[str, ...]


def read_plugin_file(raw: bytes) -> PluginFile:
    """Raises PackageError with a sentence that names the place."""
    said = _parse(raw)
    for requirement in said.python.requirements:
        _check_requirement(requirement)
    try:
        plugin_id = PluginId(said.plugin.author, said.plugin.name)
    except ValueError as error:
        raise PackageError(f"{PLUGIN_FILE}: {error}.") from error
    return PluginFile(
        plugin_id=plugin_id,
        version=said.plugin.version,
        description=said.plugin.description,
        command=tuple(said.plugin.command),
        permissions=said.permissions,
        requirements=tuple(said.python.requirements),
    )


def _parse(raw: bytes) -> _PluginFile:
    try:
        return _PluginFile.model_validate(tomllib.loads(raw.decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PackageError(f"{PLUGIN_FILE} is not valid TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise PackageError(f"{PLUGIN_FILE}: {place}: {first['msg']}.") from error


def _check_requirement(text: str) -> None:
    """A name and versions only: an option or an address would let the package choose where code comes from."""
    if not _REQUIREMENT.fullmatch(text.strip()):
        raise PackageError(f"{PLUGIN_FILE}: python.requirements: {text!r} must be a package name with versions.")
