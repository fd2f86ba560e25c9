"""Catalog of the plugins this host may start: installed, from further directories, and the official ones.

One bad plugin never hides the others. Starts nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import structlog

from paddock.runners.installed.plugins import Plugin, PluginError, load_plugin, load_plugins
from paddock.runners.packages import InstalledPlugins

__all__ = ["Catalog", "Plugin", "PluginError", "load_plugin", "load_plugins"]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The plugins a host may start, by author/name."""

    plugins: Mapping[str, Plugin] = field(default_factory=dict[str, Plugin])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Installed plugins that must not be loaded, and why."""

    @classmethod
    def load(cls, *, installed: Path, further: Iterable[Path] = (), built_in: Path | None = None) -> "Catalog":
        """Load all plugins. Installed ones win over further directories, and both over the official ones.

        Raises PackageError when the list of installed plugins cannot be read.
        """
        own = built_in or _official_runners()
        left_out: dict[str, str] = {}
        found: dict[str, Plugin] = {plugin.id: plugin for plugin in _installed(installed.parent, left_out)}
        for directory in (*further, *([own] if own else [])):
            for plugin in load_plugins(directory):
                if found.setdefault(plugin.id, plugin) is not plugin:
                    log.info(
                        "a plugin is hidden by another one of its name",
                        action="plugin.shadowed",
                        plugin=plugin.id,
                        directory=str(plugin.directory),
                    )
        return cls(found, left_out)


def _installed(data: Path, left_out: dict[str, str]) -> Iterator[Plugin]:
    """Installed plugins whose tree is still the one a person agreed to, with the ceiling agreed to then."""
    packages = InstalledPlugins(data)
    for entry in packages.list():
        try:
            if problem := packages.problem(entry):
                raise PluginError(problem)
            plugin = load_plugin(packages.directory(entry.plugin))
        except PluginError as problem:
            log.warning("a plugin is left out", action="plugin.left_out", plugin=entry.plugin, reason=str(problem))
            left_out[entry.plugin] = str(problem)
        else:
            python = packages.python(entry)
            yield replace(plugin, ceiling=entry.asked, python=python, installed_at=entry.installed_at)


def not_installed(plugin: str, further: Iterable[Path]) -> Path | None:
    """The directory of the plugin that an installed one of this name would hide: a further one, or an official one."""
    own = _official_runners()
    found = (one for place in (*further, *([own] if own else [])) for one in load_plugins(place))
    return next((one.directory for one in found if one.id == plugin), None)


def _official_runners() -> Path | None:
    """Return the directory of the official runners. They are found, never imported."""
    spec = find_spec("paddock_runners")
    return Path(spec.origin).parent if spec and spec.origin else None
