"""Opens the parts of a host in order, keeps them working, and closes them again."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from paddock.compose.ground import Tasks
from paddock.compose.lifecycle import Ending, Readiness
from paddock.host.runs.surroundings import RunEndpoints
from paddock.http_api.mcp.door import McpDoor
from paddock.models.catalog import ModelCatalog
from paddock.telemetry.loop_watch import LoopWatch

Step = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of opening and closing a host, in order."""

    opening: Sequence[Step]
    recovery: Sequence[Step]
    """End what was left unfinished. The host is closed again whatever happens here."""
    working: Sequence[Callable[[], Coroutine[Any, Any, None]]]
    """Tasks that run for as long as the host is open."""
    closing: Sequence[Step]


@dataclass(frozen=True, slots=True)
class House:
    """A host: the application it serves, and how it is opened and closed."""

    app: ASGIApp
    run_door: McpDoor
    """Serves a run's own endpoint; sandboxes reach nothing else of the host."""
    run_endpoints: RunEndpoints
    models: ModelCatalog
    readiness: Readiness
    steps: Steps
    ending: Ending
    tasks: Tasks
    loop_watch: LoopWatch

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self.loop_watch.start()
        try:
            async with self._open():
                yield
        finally:
            self.loop_watch.stop()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None]:
        for step in self.steps.opening:
            await step()
        try:
            for step in self.steps.recovery:
                await step()
            for work in self.steps.working:
                self.tasks.spawn(work())
            self.readiness.opened()
            yield
        finally:
            self.readiness.closing()
            await self.ending.end_runs()
            for step in self.steps.closing:
                await step()
