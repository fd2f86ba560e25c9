"""The agents file while the host runs: a change is taken up by itself, a broken edit is said and changes nothing.

The same for a Python program that defines the agents, for the models, tools and MCP servers a file names, and for the
Python files of its tools. Only new runs see the new agents: a run keeps the grant it was given.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import structlog

from paddock.host.agents.agents import Agents
from paddock.host.agents.file import AgentsFileError, Defined
from paddock.rules.agents.specs import NamedResources
from paddock.rules.rows.rows import AuditRow

log = structlog.get_logger("paddock.agents")

READ_SECONDS = 30.0
Mark = tuple[int, int, int] | None
"""What changes when a file does: time, size, which file it is. None while it is away."""
Marks = tuple[Mark, ...]
"""Of the agents file, then of the Python files of its tools."""
Read = tuple[Defined, Callable[[], None]]
Prepare = Callable[[NamedResources, bool], Callable[[], None]]
"""Makes ready what a file names, its tools anew if their files changed; what it gives puts that in force. Slow: called
on a thread. Raises AgentsFileError, and then nothing is changed."""


class AgentsWatch:
    def __init__(
        self,
        path: Path,
        agents: Agents,
        *,
        seen: Marks,
        read: Callable[[], Defined],
        resources: NamedResources,
        prepare: Prepare,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        """`seen` are the marks from before these agents were read from the file, `resources` what it named then. `read`
        is called on a thread and raises AgentsFileError."""
        self._path = path
        self._agents = agents
        self._note = note
        self._clock = clock
        self._seen = seen
        self._read_file = read
        self._prepare = prepare
        self._named = resources.tools
        """Where the last file that could be read has its tools: they are looked at also when they cannot be used."""
        self._tools = seen[1:]
        """How the files of the tools in force were."""

    async def reload_if_changed(self) -> bool:
        """Take up what changed since the last look; a change while it is read is seen by the next one. Says whether
        something is in force that was not."""
        seen = await asyncio.to_thread(marks_of, self._path, self._named)
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            async with asyncio.timeout(READ_SECONDS):  # a program may do anything while it is imported
                defined, put_in_force = await _apart(self._read)
        except AgentsFileError as error:
            self._keep_the_old(str(error))
            return False
        except TimeoutError:
            self._keep_the_old(
                f"{self._path} was not read within {READ_SECONDS:g} seconds; it must not wait for anything"
            )
            return False
        put_in_force()
        self._take_up(defined)
        return True

    def _read(self) -> Read:
        """On a thread. Raises AgentsFileError."""
        defined = self._read_file()
        self._named = defined.resources.tools
        tools = marks_of_tools(self._named)
        self._seen = (self._seen[0], *tools)
        put_in_force = self._prepare(defined.resources, tools != self._tools)
        self._tools = tools
        return defined, put_in_force

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


async def _apart(work: Callable[[], Read]) -> Read:
    """On a thread of its own, which nobody waits for when the host ends: what never comes back keeps nobody here."""
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def settle(result: Read | None, error: Exception | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(result)

    def go() -> None:
        result, problem = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            problem = error
        with suppress(RuntimeError):  # the host has ended
            loop.call_soon_threadsafe(settle, result, problem)

    Thread(target=go, name="paddock-agents-file", daemon=True).start()
    return await done


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
