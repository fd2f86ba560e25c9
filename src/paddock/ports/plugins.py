"""Plugins that all hosts on one store have, kept with their files."""

from collections.abc import Mapping
from typing import Protocol

from paddock.rules.rows.rows import PluginRow


class PluginRecords(Protocol):
    """They are written like other rows, by `Records.write`; one with an empty body is taken away."""

    async def shared_plugins(self) -> Mapping[str, str]:
        """The hash of each, by author/name."""
        ...

    async def shared_plugin(self, plugin: str) -> PluginRow | None: ...
