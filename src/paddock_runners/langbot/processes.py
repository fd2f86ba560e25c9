"""The processes of one LangBot plugin: one for each set of plugin settings in use, started when a run needs it, put
aside when one of its runs will not stop.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paddock_runners.langbot import callbacks
from paddock_runners.langbot.callbacks import Asking
from paddock_runners.langbot.callbacks.history import VERSION
from paddock_runners.langbot.process import LangBotProcess, StartError
from paddock_runners.langbot.refusal import outside_a_run

log = logging.getLogger("paddock.langbot")

MAX_PROCESSES = 8
Data = dict[str, Any]
NEEDS_NO_RUN = frozenset({"get_langbot_version"})


class Desk:
    """Answers what one process asks: for its own live runs, and for nobody else."""

    def __init__(self) -> None:
        self.runs: dict[str, Asking] = {}

    def answer(self, action: str, data: Data) -> Awaitable[Data] | AsyncIterator[Data]:
        """Raises RefusedError. A call without a run gets no access: there is no other path."""
        run = self.runs.get(str(data.get("run_id")))
        if run is None and action not in NEEDS_NO_RUN:
            raise outside_a_run(action)
        return callbacks.answer(run, action, data) if run else _version()


async def _version() -> Data:
    return {"version": VERSION, "api_features": []}


class Served:
    """One process and the runs it works on."""

    def __init__(self, process: LangBotProcess, desk: Desk) -> None:
        self.process, self.desk = process, desk
        self.put_aside = False

    async def leave(self, run_id: str, *, stopped: bool) -> None:
        """A run is over. One that will not stop takes its process along, as soon as no other run is in it."""
        self.desk.runs.pop(run_id, None)
        self.put_aside = self.put_aside or not stopped
        if self.put_aside and not self.desk.runs:
            await self.process.end(at_once=True)


class Processes:
    """Hands out the process that a run is to be given to."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        self._command, self._cwd = command, cwd
        self._served: dict[str, Served] = {}
        self._starting = asyncio.Lock()

    async def ready(self, settings: Mapping[str, Any]) -> Served:
        """A live process with these settings; started when there is none. Raises StartError."""
        key = json.dumps(settings, sort_keys=True)
        async with self._starting:
            served = self._served.get(key)
            if served is None or served.put_aside or not served.process.alive:
                await self._make_room(key)
                served = self._served[key] = await self._start(settings)
            return served

    async def end(self) -> None:
        """End them all."""
        served, self._served = [*self._served.values()], {}
        for one in served:
            await one.process.end()

    async def _start(self, settings: Mapping[str, Any]) -> Served:
        desk = Desk()
        process = await LangBotProcess.start(self._command, settings, desk.answer, cwd=self._cwd)
        log.info("langbot: process %d is ready with %s", process.pid, ", ".join(process.offered) or "no runner")
        return Served(process, desk)

    async def _make_room(self, key: str) -> None:
        """Settings nobody uses at the moment make room; nobody is interrupted."""
        self._served.pop(key, None)
        if len(self._served) < MAX_PROCESSES:
            return
        idle = next((one for one, served in self._served.items() if not served.desk.runs), None)
        if idle is None:
            raise StartError(f"it runs with {MAX_PROCESSES} different settings already")
        await self._served.pop(idle).process.end()
