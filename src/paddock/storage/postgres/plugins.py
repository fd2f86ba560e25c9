"""Plugins that all hosts have: the last word on one is all that counts, and an empty body takes it away."""

from collections.abc import Mapping

from paddock.rules.rows import PluginRow
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import last_word

PLUGINS = last_word(
    "plugins",
    "plugin text, version text, sha256 text, body bytes, installed_at float, installed_by text",
    key=("plugin",),
    gone="body = ''",
)
_ONE = f"select {', '.join(PLUGINS.names)} from plugins where plugin = $1"  # noqa: S608 - our own columns


class PluginReads(HasReader):
    """Plugins, looked up."""

    async def shared_plugins(self) -> Mapping[str, str]:
        return dict(await self.reader.all("select plugin, sha256 from plugins"))

    async def shared_plugin(self, plugin: str) -> PluginRow | None:
        found = await self.reader.all(_ONE, plugin)
        return PluginRow(*found[0]) if found else None
