"""The agents file while the host runs: a change is taken up by itself, a broken edit is said and changes nothing.

Only new runs see the new agents: a run keeps the grant it was given.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from paddock.host.agent_files import AgentFiles
from paddock.host.agents import Agents
from paddock.host.agents_file import AgentsFileError, Defined, read_file
from paddock.rules.named_resources import NamedResources
from paddock.rules.rows import AuditRow

log = structlog.get_logger("paddock.agents")

LOOK_SECONDS = 1.0

Mark = tuple[int, int, int] | None
"""What changes when a file does: time, size, which file it is. None while it is away."""


class AgentsWatch:
    def __init__(
        self,
        path: Path,
        agents: Agents,
        *,
        seen: Mark,
        files: AgentFiles,
        resources: NamedResources,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        """`seen` is the mark the file had before these agents were read from it, `resources` what it named then."""
        self._path = path
        self._agents = agents
        self._note = note
        self._clock = clock
        self._seen = seen
        self._files = files
        self._resources = resources

    async def run(self, changed: Callable[[], Awaitable[None]]) -> None:
        """Look every second, for as long as the house stands; `changed` is awaited when other agents are in force."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if await self.look():
                await changed()

    async def look(self) -> bool:
        """Take up what changed since the last look; a change while it is read is seen by the next one."""
        mark = await asyncio.to_thread(state_of, self._path)
        if mark == self._seen:
            return False
        self._seen = mark
        try:
            defined = await asyncio.to_thread(read_file, self._path, self._files)
        except AgentsFileError as error:
            self._keep_the_old(str(error))
            return False
        self._take_up(defined)
        return True

    def _keep_the_old(self, problem: str) -> None:
        self._agents.problem = problem
        log.warning(
            "the agents file cannot be used; the agents stay as they were", action="agents.reload", reason=problem
        )
        self._record("invalid", problem)

    def _take_up(self, defined: Defined) -> None:
        self._agents.replace(defined.bindings, defined.default_agent_id)
        self._agents.problem = None
        names = ", ".join(binding.agent_id for binding in defined.bindings)
        log.info("the agents file was changed and is in force", action="agents.reload", agents=names)
        self._record("allowed", f"in force: {names}")
        if defined.resources != self._resources:
            log.warning(
                "models, tools or mcp_servers of the agents file were changed; the host takes them up when it starts",
                action="agents.reload",
            )

    def _record(self, result: str, reason: str) -> None:
        self._note(
            AuditRow(
                time=self._clock(),
                workspace_id="",
                actor="host",
                action="agents.reload",
                resource=self._path.name,
                scope="",
                result=result,
                reason=reason[:500],
            )
        )


def state_of(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
