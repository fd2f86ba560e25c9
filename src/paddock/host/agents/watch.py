"""Watches the agents file while the host runs: puts changes in force, and reports a broken edit without effect.

It also watches a Python program that defines the agents, and the Python files of tools. Models, tools and MCP servers
of the file change with it. Only new runs see the new agents: a run keeps its grant.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from pathlib import Path

import structlog

from paddock.host.agents.agents import Agents
from paddock.host.agents.file import AgentsFileError, Defined
from paddock.host.audit import by_host
from paddock.ports.waiting import on_own_thread
from paddock.rules.agents.specs import NamedResources
from paddock.rules.rows.rows import AuditRow

log = structlog.get_logger("paddock.agents")

READ_SECONDS = 30.0
Mark = tuple[int, int, int] | None
"""Changes when a file changes: its time, size and inode. None while there is no file."""
Marks = tuple[Mark, ...]
"""The mark of the agents file, then those of the Python files of its tools."""
Read = tuple[Defined, Callable[[], None]]
Prepare = Callable[[NamedResources, bool], Callable[[], None]]
"""Loads the resources that a file names, its tools again if True; calling the result puts them in force. Slow: called
on a thread. Raises AgentsFileError, and then nothing has changed."""


@dataclass(eq=False)
class AgentsWatch:
    path: Path
    agents: Agents
    _: KW_ONLY
    seen: Marks
    """The marks taken before the agents were read, then those of the last look."""
    read: Callable[[], Defined]
    """Called on a thread. Raises AgentsFileError."""
    resources: InitVar[NamedResources]
    """What the file named when it was read."""
    prepare: Prepare
    note: Callable[[AuditRow], None]
    clock: Callable[[], float]

    def __post_init__(self, resources: NamedResources) -> None:
        self._named = resources.tools
        """The tools named by the last readable agents file; watched even while they cannot be used."""
        self._tools = self.seen[1:]
        """The marks of the tools in force."""

    async def reload_if_changed(self) -> bool:
        """Put changes since the last call in force; return True when there were any."""
        seen = await asyncio.to_thread(marks_of, self.path, self._named)
        if seen == self.seen:
            return False
        self.seen = seen
        try:
            async with asyncio.timeout(READ_SECONDS):  # a program may do anything while it is imported
                defined, put_in_force = await on_own_thread("paddock-agents-file", self._read)
        except AgentsFileError as error:
            self._refuse(str(error))
            return False
        except TimeoutError:
            self._refuse(f"{self.path} was not read within {READ_SECONDS:g} seconds; it must not wait for anything")
            return False
        put_in_force()
        self._replace_agents(defined)
        return True

    def _read(self) -> Read:
        defined = self.read()
        self._named = defined.resources.tools
        tools = marks_of_tools(self._named)
        self.seen = (self.seen[0], *tools)
        put_in_force = self.prepare(defined.resources, tools != self._tools)
        self._tools = tools
        return defined, put_in_force

    def _refuse(self, problem: str) -> None:
        self.agents.problem = problem
        log.warning(
            "the agents file cannot be used; the agents stay as they were", action="agents.reload", reason=problem
        )
        self._record("invalid", problem)

    def _replace_agents(self, defined: Defined) -> None:
        self.agents.replace(defined.bindings, defined.default_agent_id)
        self.agents.problem = None
        names = ", ".join(binding.agent_id for binding in defined.bindings)
        log.info("the agents file was changed and is in force", action="agents.reload", agents=names)
        self._record("allowed", f"in force: {names}")

    def _record(self, result: str, reason: str) -> None:
        self.note(by_host("agents.reload", self.path.name, at=self.clock(), result=result, reason=reason[:500]))


def marks_of(path: Path, tools: Sequence[str]) -> Marks:
    return (state_of(path), *marks_of_tools(tools))


def marks_of_tools(tools: Sequence[str]) -> Marks:
    return tuple(state_of(Path(place)) for place in tools if place.endswith(".py"))


def state_of(path: Path) -> Mark:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
