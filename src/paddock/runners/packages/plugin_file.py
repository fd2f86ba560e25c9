"""What a package says of itself in `paddock-plugin.toml`, as the catalog will read it once it is installed."""

import re
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from paddock.runners.packages.contents import PLUGIN_FILE, PackageError

if TYPE_CHECKING:
    from paddock.runners.installed.catalog import Plugin

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._, -]*\])?\s*([<>=!~][^@;\s][^@;]*)?(;.*)?")


def read_plugin_file(raw: bytes) -> "tuple[Plugin, tuple[str, ...]]":
    """The plugin and its Python requirements. Raises PackageError with a sentence that names the place.

    The catalog reads directories, so it is shown one that holds this file and nothing else.
    """
    from paddock.runners.installed.catalog import (  # it asks us what is installed, so not at the top
        PluginError,
        load_plugin,
    )

    with tempfile.TemporaryDirectory(prefix="paddock-") as directory:
        (Path(directory) / PLUGIN_FILE).write_bytes(raw)
        try:
            plugin = load_plugin(Path(directory))
        except PluginError as error:
            raise PackageError(str(error).replace(f"{directory}/", "")) from error
    return plugin, _requirements(raw)


def _requirements(raw: bytes) -> tuple[str, ...]:
    python: Any = tomllib.loads(raw.decode()).get("python", {})
    asked: Any = cast("dict[str, Any]", python).get("requirements", [])
    if not isinstance(asked, list) or len(cast("list[Any]", asked)) > 100:
        raise PackageError(f"{PLUGIN_FILE}: python.requirements must be a list of at most 100 requirements.")
    return tuple(_checked(one) for one in cast("list[Any]", asked))


def _checked(requirement: object) -> str:
    """A name and versions only: an option or an address would let the package choose where code comes from."""
    if not isinstance(requirement, str) or not _REQUIREMENT.fullmatch(requirement.strip()):
        raise PackageError(f"{PLUGIN_FILE}: python.requirements: {requirement!r} must be a package name with versions.")
    return requirement.strip()
