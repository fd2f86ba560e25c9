"""Plugins that change while the host runs: those installed on this machine, and those all hosts on one store share."""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from paddock.ports.definitions import PluginRecords
from paddock.ports.waiting import on_own_thread, rung_within
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.packages import Installed, InstalledPlugins, PackageError, unpack

AGAIN_SECONDS = 60.0
"""When what failed is tried again."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Note = Callable[[AuditRow], None]
Clock = Callable[[], float]


def _record(action: str, note: Note, clock: Clock, plugin: str, result: str, what: str) -> None:
    tell = log.info if result == "allowed" else log.warning
    tell("a plugin changed", action=action, plugin=plugin, what=what)
    note(AuditRow(clock(), "", "host", action, plugin, "", result, what[:500]))


class PluginsWatch:
    """Takes up plugins that are installed, replaced or removed while the host runs.

    Reads and checks them only when the list of installed plugins changed.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        load: Callable[[], Catalog],
        mark: Callable[[], object],
        seen: object,
        note: Note,
        clock: Clock,
    ) -> None:
        """`mark` changes when the list of installed plugins does; `seen` is what it was before they were loaded."""
        self._gateway = gateway
        self._load = load
        self._mark = mark
        self._seen = seen
        self._record = partial(_record, "plugins.reload", note, clock)
        self._left_out: dict[str, str] = {}

    async def reload_if_changed(self) -> bool:
        """Take up what changed since the last look; a change while it is read is seen by the next one. Says whether
        other plugins are there now."""
        mark = await asyncio.to_thread(self._mark)
        if mark == self._seen:
            return False
        self._seen = mark
        try:
            catalog = await asyncio.to_thread(self._load)
        except PackageError as problem:
            self._record("installed.json", "invalid", f"the plugins stay as they were: {problem}")
            return False
        return self._take_up(catalog)

    def _take_up(self, catalog: Catalog) -> bool:
        changes = self._gateway.replace_plugins(catalog)
        for plugin, what in changes.items():
            self._record(plugin, "allowed", what)
        for plugin, why in catalog.left_out.items():
            if self._left_out.get(plugin) != why:
                self._record(plugin, "invalid", why)
        self._left_out = dict(catalog.left_out)
        return bool(changes)


class SharedPlugins:
    """Installs and removes here the plugins that all hosts on one store have.

    Files whose hash is not the one agreed to are refused. A failure is logged and tried again later; it never stops
    the host. A plugin that this host has for itself alone stays, until all hosts have one of that name.
    """

    def __init__(
        self,
        plugins: InstalledPlugins,
        records: PluginRecords,
        *,
        note: Note,
        clock: Clock,
    ) -> None:
        self._plugins = plugins
        self._records = records
        self._record = partial(_record, "plugins.shared", note, clock)
        self._bell = asyncio.Event()
        self._failed: dict[str, str] = {}
        """Why each of those that could not be put in place could not, so that it is said once."""

    async def wake(self) -> None:
        """Something may have changed; looks soon, in its own time."""
        self._bell.set()

    async def run(self) -> None:
        while True:
            try:
                await self.follow()
            except (StorageUnavailableError, HostError, PackageError, OSError) as error:
                log.warning("shared plugins could not be read", action="plugins.shared", reason=str(error))
            await rung_within(self._bell, AGAIN_SECONDS)

    async def follow(self) -> None:
        """Make what is installed here what all hosts have."""
        wanted = await self._records.shared_plugins()
        here = {one.plugin: one for one in await on_own_thread("plugins", self._plugins.list)}
        for plugin, sha256 in wanted.items():
            await self._bring(plugin, sha256, here.get(plugin))
        for plugin in (one.plugin for one in here.values() if one.shared and one.plugin not in wanted):
            await on_own_thread("plugins", self._plugins.remove, plugin)
            self._record(plugin, "allowed", "taken out: it was removed for all hosts")

    async def _bring(self, plugin: str, sha256: str, present: Installed | None) -> None:
        if present is not None and present.sha256 == sha256:
            if not present.shared:
                await on_own_thread("plugins", self._plugins.mark_shared, plugin)
            return
        try:
            await self._put(plugin, sha256)
            self._failed.pop(plugin, None)
            self._record(plugin, "allowed", f"put in place as all hosts have it: {sha256}")
        except (PackageError, OSError) as error:
            if self._failed.get(plugin) != str(error):
                self._failed[plugin] = str(error)
                self._record(plugin, "invalid", f"not put in place: {error}")

    async def _put(self, plugin: str, sha256: str) -> None:
        row = await self._records.shared_plugin(plugin)
        if row is None or row.sha256 != sha256:
            return  # changed meanwhile; the next look sees how
        package = await asyncio.to_thread(unpack, row.body, sha256)
        if package.about.id != plugin:
            raise PackageError(f"It says it is {package.about.id}.")
        await on_own_thread("plugins", self._plugins.install, package, replace=True, shared=True)
