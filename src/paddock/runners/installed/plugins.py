"""One plugin as its `paddock-plugin.toml` describes it. Starts nothing; what is wrong is said in one sentence."""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_args

import structlog
from pydantic import ValidationError

from paddock.confinement.sandbox import Level
from paddock_sdk.causes import complaint_of
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

PLUGIN_FILE = "paddock-plugin.toml"
MAX_FILE_BYTES = 65_536

TABLES: Mapping[str, frozenset[str]] = {
    "plugin": frozenset({"author", "name", "version", "description", "command", "runs_per_process", "needs_settings"}),
    "permissions": frozenset(AgentRunnerPermissions.model_fields),
    "python": frozenset({"path", "requirements"}),
    "isolation": frozenset({"level", "network", "memory_mb"}),
}
"""All that a plugin file may say. A word that means nothing here was meant to mean something."""

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
    needs_settings: bool = False
    """Whether its runners answer only for an agent with settings, and so not under their own name."""
    isolation: Level = "L0"
    network: bool = False
    """Whether it may use the network from isolation L1 up."""
    memory_mb: int = 2048
    python: Path | None = None
    """The interpreter of its own environment, when it has one."""
    installed_at: float = 0.0
    """When it was put in its place, if it was: installed again, it is another one."""

    @property
    def id(self) -> str:
        return f"{self.author}/{self.name}"


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """A process's isolation level and what it sees besides its own. Only runs with equal places share a process."""

    level: Level = "L0"
    directory: Path | None = None
    directory_is_ours: bool = False
    visible: tuple[Path, ...] = ()
    conversation: str | None = None
    """The one whose things in the plugin's home it sees; None where a process serves many."""
    apart: str | None = None
    """The one workspace that it serves, where that one must not share a process with others."""


OPEN = ProcessPlace()
"""At L0 nothing is hidden, so there is only one."""


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
            log.warning("a plugin is left out", action="plugin.left_out", directory=str(candidate), reason=str(problem))
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
        self._check_words()
        table = self._table("plugin")
        author, name = self._string(table, "author"), self._string(table, "name")
        try:
            PluginId(author, name)
        except ValueError as problem:
            raise self._fault(str(problem)) from None
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
            needs_settings=self._flag(table, "needs_settings"),
            python_path=self._python_path(directory),
            isolation=self._level(isolation),
            network=self._flag(isolation, "network"),
            memory_mb=self._number(isolation, "memory_mb", 2048) or 2048,
        )

    def _fault(self, text: str) -> PluginError:
        return PluginError(f"{self._file}: {text}.")

    def _check_words(self) -> None:
        for name in self._text:
            if name not in TABLES:
                what = f"[{name}] is no table of a plugin file" if self._is_table(name) else f"{name} is in no table"
                raise self._fault(what + _meant(name, TABLES))
        for name, known in TABLES.items():
            for key in self._table(name):
                if key not in known:
                    raise self._fault(f"[{name}] knows no {key!r}{_meant(key, known)}")

    def _is_table(self, name: str) -> bool:
        return isinstance(self._text[name], dict)

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

    def _flag(self, table: dict[str, Any], key: str) -> bool:
        value = table.get(key, False)
        if not isinstance(value, bool):
            raise self._fault(f"{key} must be true or false")
        return value

    def _command(self, table: dict[str, Any]) -> tuple[str, ...]:
        command = tuple(self._strings(table, "command"))
        if not command or not command[0]:
            raise self._fault("[plugin] must say its command, a list of strings")
        return command

    def _python_path(self, directory: Path) -> tuple[Path, ...]:
        """Directories to import from. They are shown to a confined process, so they are the plugin's own."""
        named = self._strings(self._table("python"), "path")
        for path in named:
            if Path(path).is_absolute() or not (directory / path).resolve().is_relative_to(directory.resolve()):
                raise self._fault(f"[python] path names {path!r}, which lies outside the plugin's directory")
        return tuple(directory / path for path in named)

    def _level(self, table: dict[str, Any]) -> Level:
        level = self._string(table, "level", "L0")
        if level not in get_args(Level):
            raise self._fault(f'isolation level must be "L0" or "L1", not {level!r}')
        return cast("Level", level)

    def _ceiling(self) -> AgentRunnerPermissions:
        table = self._table("permissions")
        try:
            return AgentRunnerPermissions.model_validate(table)
        except ValidationError as problem:
            first = problem.errors()[0]
            raise self._fault(f"[permissions] {'.'.join(map(str, first['loc']))}: {complaint_of(first)}") from None


def _meant(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f" (did you mean {near[0]}?)" if near else f" (known are {', '.join(sorted(known))})"
