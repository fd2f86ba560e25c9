"""Isolation of runner processes, checked before it is claimed, and the launch of one: command line and environment.

L0: same user, guarded by a warden; protects against mistakes. L1: own namespaces by bubblewrap, a private view of the
file system, limits, no network unless granted; as root also an own user per plugin. A level that does not work here
is refused, never quietly lowered. What a confined process sees is listed by `confinement/sandbox.py`; here is chosen
what a plugin's process is shown of its own. Nothing here starts a runner.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddock.confinement import trees
from paddock.confinement.homes import Homes
from paddock.confinement.sandbox import PIDS, SYSTEM, ActiveLevel, Level, Sandbox, active_level, interpreter, outermost
from paddock.confinement.trees import Pinned, known, pinned
from paddock.rules.errors import RunCode
from paddock.runners.installed.plugins import OPEN, Plugin, ProcessPlace
from paddock.runners.processes.leftovers import MARK_VARIABLE
from paddock.runners.processes.process import Launch
from paddock.runners.wire.errors import StartError

__all__ = ["ActiveLevel", "Confinement", "active_level", "confine", "level_for", "sandbox_of"]

PIDS_OF_MANY = 512
"""Where each run has a process of its own, all processes of the plugin share one count."""
MEMORY_MB = 16_384
"""As much as the official harness runners ask for: programs of Node.js reserve far more than they use."""
START_FAILED: RunCode = "runner.start_failed"


async def _not_refused() -> str | None:
    return None


@dataclass(eq=False)
class Confinement:
    """How the processes of plugins are kept apart from the host and from each other."""

    home: Path
    """Holds the plugins' private directories."""
    mark: str
    """Names this data directory in the environment of every process."""
    data: Path | None = None
    """The data directory, which no confined process may see."""
    isolation: Level = "L0"
    """The least every process is kept apart."""
    env_allow: Collection[str] = ()
    memory_mb: int = MEMORY_MB
    """The most memory that a confined process may ask for."""
    run_socket: Callable[[], str | None] = lambda: None
    network_refused: Callable[[], Awaitable[str | None]] = _not_refused
    """Returns why a confined process must not have the network now, if it must not."""

    def __post_init__(self) -> None:
        self.homes = Homes(self.home)
        self._allowed = {name: os.environ[name] for name in self.env_allow if name in os.environ}

    def launch(self, plugin: Plugin, place: ProcessPlace) -> Launch:
        """Plan the start of one process of a plugin. Raises StartError when the isolation asked for cannot be had."""
        level = level_for(plugin, max(self.isolation, place.level))
        shared = level == "L1" and plugin.runs_per_process != 1 and not plugin.ceiling.working_directory
        home = self.homes.home(plugin.author, plugin.name, shared=shared)
        program, *arguments = plugin.command
        if program == "python":  # the one of its own environment, if it has one, else ours
            program = str(plugin.python or sys.executable)
        elif program == HOST_PYTHON:
            program = sys.executable
        argv = (program, *arguments)
        env = environment(plugin, home=home, mark=self.mark, allowed=self._allowed)
        if level == "L1":
            # The socket leads to the runs' own endpoints; a plugin that never asks for one does not see it.
            socket = self.run_socket() if plugin.ceiling.mcp else None
            argv = confine(plugin, argv, self, place, Path(socket) if socket else None)
        return Launch(plugin=plugin.id, argv=argv, cwd=plugin.directory, env=env)


def level_for(plugin: Plugin, wanted: Level) -> Level:
    """The stronger of what the plugin and what the operator ask for. Raises StartError when it cannot be had."""
    if "L1" not in (plugin.isolation, wanted):
        return "L0"
    offered, why = active_level()
    if offered != "L1":
        text = f"{plugin.id} must run at isolation L1, which cannot be had here"
        raise StartError(START_FAILED, text, f"{text}: {why}")
    return "L1"


def confine(
    plugin: Plugin,
    command: Sequence[str],
    ground: Confinement,
    place: ProcessPlace = OPEN,
    socket: Path | None = None,
) -> tuple[str, ...]:
    """The command of a plugin, run at L1: it sees its own directory, its home, the interpreter, what its place adds,
    and nothing else. Raises StartError."""
    if plugin.memory_mb > ground.memory_mb:
        said = f"{plugin.id} asks for {plugin.memory_mb} MiB of memory; this host gives a process at most"
        raise StartError(START_FAILED, f"{said} {ground.memory_mb} (the setting plugin_memory_mb)")
    try:
        return sandbox_of(plugin, command, ground, place, socket).around(command)
    except OSError as problem:
        said = f"{plugin.id} cannot be confined: {problem.strerror}"
        raise StartError(START_FAILED, said, f"{said} ({problem.filename or 'in its home'})") from problem


def sandbox_of(
    plugin: Plugin,
    command: Sequence[str],
    ground: Confinement,
    place: ProcessPlace = OPEN,
    socket: Path | None = None,
) -> Sandbox:
    """The view of a confined process of a plugin. Raises StartError and OSError."""
    homes, owner = ground.homes, (plugin.author, plugin.name)
    home = pinned(homes.home(*owner))
    uid = homes.own_user(*owner) if os.geteuid() == 0 else None
    if place.conversation is None:  # all of the home is its own, and all that it keeps of conversations
        of_home, kept = (), [home]
        moved = [(pinned(homes.place_of_many(*owner, uid)), homes.conversations(*owner))]
    else:
        of_home, kept, moved = (home,), [pinned(homes.place_of_one(*owner, place.conversation, uid))], []
    named = [pinned(path) for path in place.visible if path.exists()]
    work = [] if place.directory is None else [_working_directory(place, uid)]
    shown = _visible(plugin, command)
    _check_apart(plugin, ground.data, [*shown, *work], named)
    return Sandbox(
        read_only=outermost([*of_home, *shown, *named]),
        writable=(*kept, *work),
        moved=tuple(moved),
        socket=None if plugin.network else socket,
        hidden=None if ground.data is None else ground.data.resolve(),
        cwd=plugin.directory,
        network=plugin.network,
        memory_mb=plugin.memory_mb,
        pids=PIDS_OF_MANY if plugin.runs_per_process else PIDS,
        uid=uid,
    )


def _working_directory(place: ProcessPlace, uid: int | None) -> Pinned:
    """The directory a run works in. One that the host made becomes its plugin's user's."""
    assert place.directory is not None
    if place.directory_is_ours and uid is not None:
        with trees.inside(place.directory.parent, place.directory.name) as folder:
            trees.give(folder, uid)
    return pinned(place.directory)


def _visible(plugin: Plugin, command: Sequence[str]) -> list[Pinned]:
    """Directories it must read to run at all; what lies in /usr is there anyway."""
    program = Path(command[0])
    shown: list[Path] = []
    if program in (plugin.python, Path(sys.executable)):
        shown = interpreter(program, ("paddock_sdk", "paddock_runners"))
    elif program.is_absolute() and not _lies_in(program, (plugin.directory, Path("/usr"), *map(Path, SYSTEM))):
        said = f"{plugin.id} starts a program that lies outside its directory and is not seen at isolation L1"
        raise StartError(START_FAILED, said, f"{said}: {program}")
    return [pinned(plugin.directory), *(known(path) for path in shown if path.exists())]


def _check_apart(plugin: Plugin, data: Path | None, shown: Iterable[Pinned], named: Iterable[Pinned]) -> None:
    """The host's data are in nothing that a confined process is shown, and nothing that an agent names is in them."""
    if data is None:
        return
    real = data.resolve()
    holding = [one.path for one in (*shown, *named) if real.is_relative_to(one.path.resolve())]
    within = [one.path for one in named if one.path.is_relative_to(real)]
    for path in (*holding, *within):
        said = f"{plugin.id} would be shown what {'holds' if path in holding else 'is part of'} this host's data"
        raise StartError(START_FAILED, said, f"{said}: {path}; move it or the data ({real}) elsewhere")


def _lies_in(path: Path, directories: Iterable[Path]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


HOST_PYTHON = "host-python"
"""Our own interpreter, for an adapter that comes with the host and starts the plugin's environment by itself."""


def environment(plugin: Plugin, *, home: Path, mark: str, allowed: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a runner process; nothing else of the host's, no secret by accident."""
    fixed = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "PADDOCK_PLUGIN": plugin.id,
        MARK_VARIABLE: mark,
    }
    if plugin.python_path:
        fixed["PYTHONPATH"] = os.pathsep.join(map(str, plugin.python_path))
    return dict(allowed) | dict(plugin.env) | fixed
