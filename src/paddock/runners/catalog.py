"""Which plugins there are and what each may offer: `paddock-plugin.toml` read, manifests checked. Starts nothing.

One bad plugin or manifest never hides the others. What is wrong is said in one sentence.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import structlog
from pydantic import ValidationError

from paddock.runners.packages import InstalledPlugins
from paddock_sdk.protocol.ids import PluginId, RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions
from paddock_sdk.protocol.version import PROTOCOL_VERSION, is_compatible

PLUGIN_FILE = "paddock-plugin.toml"
MAX_FILE_BYTES = 65_536
MAX_RUNNERS = 100

Level = Literal["L0", "L1"]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PluginError(Exception):
    """A plugin directory that cannot be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin as installed, and what a person consented to."""

    author: str
    name: str
    version: str
    directory: Path
    command: tuple[str, ...]
    description: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further variables its processes get."""
    python_path: tuple[Path, ...] = ()
    ceiling: AgentRunnerPermissions = field(default_factory=AgentRunnerPermissions)
    runs_per_process: int = 0
    """How many runs one process serves before it is replaced; 0: any number, at once."""
    isolation: Level = "L0"
    network: bool = False
    """Whether it may use the network from isolation L1 up."""
    memory_mb: int = 2048
    python: Path | None = None
    """The interpreter of its own environment, when it has one."""

    @property
    def id(self) -> str:
        return f"{self.author}/{self.name}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The plugins a host may start, by author/name."""

    plugins: Mapping[str, Plugin] = field(default_factory=dict[str, Plugin])

    @classmethod
    def load(cls, *, installed: Path, further: Iterable[Path] = (), built_in: Path | None = None) -> "Catalog":
        """What is installed wins over what lies in further directories, and both over what comes with the host."""
        own = built_in or _official_runners()
        found: dict[str, Plugin] = {plugin.id: plugin for plugin in _installed(installed.parent)}
        for directory in (*further, *([own] if own else [])):
            for plugin in load_plugins(directory):
                if found.setdefault(plugin.id, plugin) is not plugin:
                    log.info("plugin.shadowed", plugin=plugin.id, directory=str(plugin.directory))
        return cls(found)


def _installed(data: Path) -> Iterator[Plugin]:
    """Installed plugins whose tree is still the one a person agreed to, with the ceiling agreed to then."""
    packages = InstalledPlugins(data)
    for entry in packages.list():
        try:
            if problem := packages.problem(entry):
                raise PluginError(problem)
            plugin = load_plugin(packages.directory(entry.plugin))
        except PluginError as problem:
            log.warning("plugin.left_out", plugin=entry.plugin, reason=str(problem))
        else:
            yield replace(plugin, ceiling=entry.asked, python=packages.python(entry))


def _official_runners() -> Path | None:
    """Where the runners that come with the host lie. They are found, never imported."""
    spec = find_spec("paddock_runners")
    return Path(spec.origin).parent if spec and spec.origin else None


def load_plugin(directory: Path) -> Plugin:
    """Read one plugin directory. Raises PluginError with a sentence."""
    file = directory / PLUGIN_FILE
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise PluginError(f"{file} is larger than {MAX_FILE_BYTES} bytes.")
        text = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise PluginError(f"{directory} is no plugin: it has no {PLUGIN_FILE}.") from None
    except (OSError, ValueError) as problem:
        raise PluginError(f"{file} cannot be read: {problem}.") from None
    return _Reader(file, text).plugin(directory.resolve())


def load_plugins(directory: Path) -> list[Plugin]:
    """Every usable plugin in this directory, up to two levels down, or being it; the rest is warned of and left out."""
    found: dict[str, Plugin] = {}
    for candidate in _candidates(directory):
        try:
            plugin = load_plugin(candidate)
            if plugin.id in found:
                raise PluginError(f"{plugin.id} is already loaded from {found[plugin.id].directory}.")
        except PluginError as problem:
            log.warning("plugin.left_out", directory=str(candidate), reason=str(problem))
        else:
            found[plugin.id] = plugin
    return list(found.values())


def _candidates(directory: Path) -> Sequence[Path]:
    if (directory / PLUGIN_FILE).exists():
        return [directory]
    depths = ("*", "*/*")
    return sorted(file.parent for depth in depths for file in directory.glob(f"{depth}/{PLUGIN_FILE}"))


class _Reader:
    """Reads the tables of one file; every complaint names the file and the field."""

    def __init__(self, file: Path, text: dict[str, Any]) -> None:
        self._file = file
        self._text = text

    def plugin(self, directory: Path) -> Plugin:
        table = self._table("plugin")
        author, name = self._string(table, "author"), self._string(table, "name")
        self._check_id(author, name)
        isolation = self._table("isolation")
        return Plugin(
            author=author,
            name=name,
            version=self._string(table, "version", "0"),
            description=self._string(table, "description", ""),
            directory=directory,
            command=self._command(table),
            ceiling=self._ceiling(),
            runs_per_process=self._number(table, "runs_per_process", 0),
            python_path=tuple(directory / path for path in self._strings(self._table("python"), "path")),
            isolation=self._level(isolation),
            network=isolation.get("network") is True,
            memory_mb=self._number(isolation, "memory_mb", 2048) or 2048,
        )

    def _fault(self, text: str) -> PluginError:
        return PluginError(f"{self._file}: {text}.")

    def _check_id(self, author: str, name: str) -> None:
        try:
            PluginId(author, name)
        except ValueError as problem:
            raise self._fault(str(problem)) from None

    def _table(self, name: str) -> dict[str, Any]:
        table = self._text.get(name, {})
        if not isinstance(table, dict):
            raise self._fault(f"[{name}] must be a table")
        return cast("dict[str, Any]", table)

    def _string(self, table: dict[str, Any], key: str, default: str | None = None) -> str:
        value = table.get(key, default)
        if not isinstance(value, str):
            raise self._fault(f"{key} must be a string" if key in table else f"[plugin] must say its {key}")
        return value

    def _strings(self, table: dict[str, Any], key: str) -> list[str]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
            raise self._fault(f"{key} must be a list of strings")
        return cast("list[str]", value)

    def _number(self, table: dict[str, Any], key: str, default: int) -> int:
        value = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._fault(f"{key} must be a whole number, 0 or more")
        return value

    def _command(self, table: dict[str, Any]) -> tuple[str, ...]:
        command = tuple(self._strings(table, "command"))
        if not command or not command[0]:
            raise self._fault("[plugin] must say its command, a list of strings")
        return command

    def _level(self, table: dict[str, Any]) -> Level:
        level = self._string(table, "level", "L0")
        if level not in ("L0", "L1"):
            raise self._fault(f'isolation level must be "L0" or "L1", not {level!r}')
        return level

    def _ceiling(self) -> AgentRunnerPermissions:
        table = self._table("permissions")
        if unknown := set(table) - set(AgentRunnerPermissions.model_fields):
            raise self._fault(f"[permissions] knows no {min(unknown)!r}")
        try:
            return AgentRunnerPermissions.model_validate(table)
        except ValidationError as problem:
            first = problem.errors()[0]
            raise self._fault(f"[permissions] {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


# --- manifests --------------------------------------------------------------------------------------------------------


def check_manifests(
    plugin: str, offered: Sequence[Any], ceiling: AgentRunnerPermissions | None
) -> dict[str, AgentRunnerManifest]:
    """The runners of a plugin that may be listed, by id. The others are warned of; `None` sets no ceiling."""
    listed: dict[str, AgentRunnerManifest] = {}
    for raw in offered[:MAX_RUNNERS]:
        try:
            manifest = _checked(plugin, raw)
        except ValueError as problem:
            log.warning("runner.not_listed", plugin=plugin, reason=str(problem)[:500])
            continue
        listed[manifest.id] = manifest if ceiling is None else _within(manifest, ceiling)
    return listed


def _checked(plugin: str, raw: Any) -> AgentRunnerManifest:
    version = cast("dict[str, Any]", raw).get("protocol_version", PROTOCOL_VERSION) if isinstance(raw, dict) else None
    if not isinstance(version, str) or not is_compatible(version):
        raise ValueError(
            f"its manifest is of protocol version {str(version)[:20]!r}, this host speaks {PROTOCOL_VERSION!r}"
        )
    manifest = AgentRunnerManifest.model_validate(_without_unknown_permissions(plugin, cast("dict[str, Any]", raw)))
    owner = str(RunnerId.parse(manifest.id).plugin)
    if owner != plugin:
        raise ValueError(f"runner id {manifest.id!r} belongs to {owner}, not to the launched plugin {plugin}")
    return manifest


def _without_unknown_permissions(plugin: str, raw: dict[str, Any]) -> dict[str, Any]:
    """A permission we do not know cannot be granted: it is dropped with a warning, the runner stays."""
    asked = raw.get("permissions")
    if not isinstance(asked, dict):
        return raw
    kept: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", asked).items():
        try:
            kept |= AgentRunnerPermissions.model_validate({key: value}).model_dump(include={key})
        except ValidationError:
            kept |= {key: _known(key, value)}
            log.warning("runner.unknown_permission", plugin=plugin, permission=key, asked=str(value)[:200])
    return raw | {"permissions": kept}


def _known(key: str, value: Any) -> list[Any]:
    def allowed(item: Any) -> bool:
        try:
            AgentRunnerPermissions.model_validate({key: [item]})
        except ValidationError:
            return False
        return True

    return [item for item in cast("list[Any]", value) if allowed(item)] if isinstance(value, list) else []


def _within(manifest: AgentRunnerManifest, ceiling: AgentRunnerPermissions) -> AgentRunnerManifest:
    """The manifest with no more permissions than a person consented to."""
    asked = manifest.permissions
    given = intersect(asked, ceiling)
    if given == asked:
        return manifest
    log.warning("runner.above_ceiling", runner_id=manifest.id, asked=asked.model_dump(), given=given.model_dump())
    return manifest.model_copy(update={"permissions": given})


def intersect(asked: AgentRunnerPermissions, ceiling: AgentRunnerPermissions) -> AgentRunnerPermissions:
    """Field by field, what both allow. Of two words the one that is not the default must be said by both."""
    allowed: dict[str, Any] = {}
    for name in AgentRunnerPermissions.model_fields:
        mine, theirs = getattr(asked, name), getattr(ceiling, name)
        if isinstance(mine, list):
            allowed[name] = [item for item in cast("list[str]", mine) if item in theirs]
        elif mine == theirs:
            allowed[name] = mine
    return AgentRunnerPermissions.model_validate(allowed)
