"""Plugins that all hosts on a store have. The last word on one counts; an empty body takes it away."""

from collections.abc import Mapping, Sequence

from paddock.rules.rows.rows import PluginRow
from paddock.storage.tables.statements import Change, HasEngine, Query, put

CHANGES: Mapping[type, Sequence[Change]] = {
    PluginRow: [
        put(
            "plugins",
            PluginRow,
            key="plugin",
            again=("version", "sha256", "body", "installed_at", "installed_by"),
        ),
        Change("delete from plugins where plugin = :plugin and length(body) = 0"),
    ]
}


def _pair(plugin: str, sha256: str) -> tuple[str, str]:
    return plugin, sha256


_HASHES = Query(_pair, "select plugin, sha256 from plugins")
_PLUGIN = Query(PluginRow, "select {columns} from plugins where plugin = :plugin")


class PluginReads(HasEngine):
    """The part of the store that looks plugins up."""

    async def shared_plugins(self) -> Mapping[str, str]:
        return dict(await self.engine.all(_HASHES))

    async def shared_plugin(self, plugin: str) -> PluginRow | None:
        return await self.engine.one(_PLUGIN, plugin=plugin)
