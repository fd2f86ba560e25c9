"""Installed plugins while the host runs: what is installed, replaced or removed is taken up by itself.

Looks at the list of installed plugins and at nothing else; reads and checks the plugins only when that changed.
"""

import asyncio
from collections.abc import Callable

import structlog

from paddock.rules.rows.rows import AuditRow
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.packages import PackageError

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PluginsWatch:
    def __init__(
        self,
        gateway: Gateway,
        *,
        load: Callable[[], Catalog],
        mark: Callable[[], object],
        seen: object,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        """`mark` changes when the list of installed plugins does; `seen` is what it was before they were loaded."""
        self._gateway = gateway
        self._load = load
        self._mark = mark
        self._seen = seen
        self._note = note
        self._clock = clock
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
            self._say("installed.json", "invalid", f"the plugins stay as they were: {problem}")
            return False
        return self._take_up(catalog)

    def _take_up(self, catalog: Catalog) -> bool:
        changes = self._gateway.replace_plugins(catalog)
        for plugin, what in changes.items():
            self._say(plugin, "allowed", what)
        for plugin, why in catalog.left_out.items():
            if self._left_out.get(plugin) != why:
                self._say(plugin, "invalid", why)
        self._left_out = dict(catalog.left_out)
        return bool(changes)

    def _say(self, plugin: str, result: str, what: str) -> None:
        tell = log.info if result == "allowed" else log.warning
        tell("plugins.reload", action="plugins.reload", plugin=plugin, what=what)
        self._note(
            AuditRow(
                time=self._clock(),
                workspace_id="",
                actor="host",
                action="plugins.reload",
                resource=plugin,
                scope="",
                result=result,
                reason=what[:500],
            )
        )
