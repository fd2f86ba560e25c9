"""Plugins that all hosts on a store have; this store has one host, and keeps them all the same."""

# ruff: noqa: S608 - the column list is our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from paddock.rules.rows import PluginRow
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import Reader

_COLUMNS = "plugin, version, sha256, body, installed_at, installed_by"


def _write(cursor: Cursor, row: PluginRow) -> None:
    cursor.execute("delete from plugins where plugin = ?", (row.plugin,))
    if row.body:
        values = (row.plugin, row.version, row.sha256, row.body, row.installed_at, row.installed_by)
        cursor.execute(f"insert into plugins ({_COLUMNS}) values (?, ?, ?, ?, ?, ?)", values)


PLUGIN_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {PluginRow: _write}


class PluginReads(ABC):
    """The part of the store that looks these up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def shared_plugins(self) -> Mapping[str, str]:
        return dict(self._reader.all("select plugin, sha256 from plugins", ()))

    async def shared_plugin(self, plugin: str) -> PluginRow | None:
        found = self._reader.all(f"select {_COLUMNS} from plugins where plugin = ?", (plugin,))
        return PluginRow(*found[0]) if found else None
