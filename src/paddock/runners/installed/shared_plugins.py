"""Plugins that all hosts on one store have: fetched, checked, put in place here, taken out when they are gone there.

Only what was agreed to counts: files whose hash is another one are refused. A failure is said and tried again later;
it never stops the host. What a host has for itself alone is left alone, until all have one of that name.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from paddock.ports.definitions import PluginRecords
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow
from paddock.runners.packages import Installed, InstalledPlugins, PackageError, unpack

AGAIN_SECONDS = 60.0
"""When what failed is tried again."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SharedPlugins:
    def __init__(
        self,
        plugins: InstalledPlugins,
        records: PluginRecords,
        *,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        self._plugins = plugins
        self._records = records
        self._note = note
        self._clock = clock
        self._bell = asyncio.Event()
        self._failed: dict[str, str] = {}
        """Why each of those that could not be put in place could not, so that it is said once."""

    async def wake(self) -> None:
        """Something may have changed; looks soon, in its own time."""
        self._bell.set()

    async def run(self) -> None:
        """Follow for as long as the house stands."""
        while True:
            self._bell.clear()
            try:
                await self.follow()
            except (StorageUnavailableError, HostError, PackageError, OSError) as error:
                log.warning("plugins.shared", action="plugins.shared", reason=str(error))
            try:
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._bell.wait()
            except TimeoutError:
                pass

    async def follow(self) -> None:
        """Make what is installed here what all hosts have."""
        wanted = await self._records.shared_plugins()
        here = {one.plugin: one for one in await _apart(self._plugins.list)}
        for plugin, sha256 in wanted.items():
            await self._bring(plugin, sha256, here.get(plugin))
        for plugin in (one.plugin for one in here.values() if one.shared and one.plugin not in wanted):
            await _apart(self._plugins.remove, plugin)
            self._say(plugin, "allowed", "taken out: it was removed for all hosts")

    async def _bring(self, plugin: str, sha256: str, present: Installed | None) -> None:
        if present is not None and present.sha256 == sha256:
            if not present.shared:
                await _apart(self._plugins.mark_shared, plugin)
            return
        try:
            await self._put(plugin, sha256)
            self._failed.pop(plugin, None)
            self._say(plugin, "allowed", f"put in place as all hosts have it: {sha256}")
        except (PackageError, OSError) as error:
            if self._failed.get(plugin) != str(error):
                self._failed[plugin] = str(error)
                self._say(plugin, "invalid", f"not put in place: {error}")

    async def _put(self, plugin: str, sha256: str) -> None:
        row = await self._records.shared_plugin(plugin)
        if row is None or row.sha256 != sha256:
            return  # changed meanwhile; the next look sees how
        package = await asyncio.to_thread(unpack, row.body, sha256)
        if package.about.id != plugin:
            raise PackageError(f"It says it is {package.about.id}.")
        await _apart(self._plugins.install, package, replace=True, shared=True)

    def _say(self, plugin: str, result: str, what: str) -> None:
        tell = log.info if result == "allowed" else log.warning
        tell("plugins.shared", action="plugins.shared", plugin=plugin, what=what)
        row = AuditRow(self._clock(), "", "host", "plugins.shared", plugin, "", result, what[:500])
        self._note(row)


async def _apart(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """In a thread that a host which stops does not wait for: making an environment may take minutes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run(given: Mapping[str, Any]) -> None:
        result, error = None, None
        try:
            result = work(*arguments, **given)
        except Exception as problem:  # noqa: BLE001 - whoever waits for it hears it
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, args=(named,), daemon=True, name="plugins").start()
    return await done
