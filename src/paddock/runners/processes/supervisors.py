"""One supervisor for each plugin, also when plugins come, change and go while the host runs.

New runs go to the plugin as it is now; those under way finish where they began.
"""

import asyncio
from collections.abc import Iterator, Mapping

import structlog

from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.plugins import Plugin
from paddock.runners.processes.shared import ProcessServices
from paddock.runners.processes.supervisor import Supervisor

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Supervisors:
    def __init__(self, catalog: Catalog, services: ProcessServices, *, patience: float) -> None:
        """`patience` is how long runs of a plugin that was replaced or removed may go on."""
        self._services = services
        self._patience = patience
        self.in_place = {plugin.id: Supervisor(plugin, services) for plugin in catalog.plugins.values()}
        """Those that take new runs, by plugin."""
        self._retiring: dict[Supervisor, asyncio.Task[None]] = {}

    def __iter__(self) -> Iterator[Supervisor]:
        return iter(self.in_place.values())

    def take(self, catalog: Catalog) -> Mapping[str, str]:
        """These are the plugins from now on; what became of those that changed, in words. The others keep their
        processes.
        """
        before, now = self.in_place, dict[str, Supervisor]()
        changes: dict[str, str] = {}
        for plugin in catalog.plugins.values():
            known = before.pop(plugin.id, None)
            if known is not None and known.plugin == plugin:
                now[plugin.id] = known
                continue
            changes[plugin.id] = _in_words(known.plugin if known else None, plugin)
            now[plugin.id] = Supervisor(plugin, self._services)
            if known is not None:
                self._retire(known)
        for gone in before.values():
            changes[gone.plugin.id] = f"removed {gone.plugin.version}"
            self._retire(gone)
        self.in_place = now
        return changes

    def renew(self, plugin: str) -> Supervisor | None:
        """Begin anew with a plugin as it is: new runs go to new processes, which are asked what they offer."""
        known = self.in_place.get(plugin)
        if known is None:
            return None
        self.in_place[plugin] = Supervisor(known.plugin, self._services)
        self._retire(known)
        return self.in_place[plugin]

    async def stop(self) -> None:
        """End every run and every process, and go on to the end even when the caller is cancelled."""
        stops = [asyncio.ensure_future(each.stop()) for each in (*self.in_place.values(), *self._retiring)]
        if stops:
            await asyncio.shield(asyncio.gather(*stops, *self._retiring.values(), return_exceptions=True))

    def _retire(self, supervisor: Supervisor) -> None:
        task = asyncio.get_running_loop().create_task(supervisor.retire(self._patience))
        self._retiring[supervisor] = task
        task.add_done_callback(lambda _task: self._retired(supervisor))

    def _retired(self, supervisor: Supervisor) -> None:
        task = self._retiring.pop(supervisor)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error(
                "a replaced plugin could not be stopped",
                action="plugin.retire_failed",
                plugin=supervisor.plugin.id,
                exc_info=error,
            )


def _in_words(before: Plugin | None, now: Plugin) -> str:
    return f"replaced {before.version} by {now.version}" if before is not None else f"installed {now.version}"
