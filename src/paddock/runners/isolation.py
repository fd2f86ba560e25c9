"""How far a runner process is kept apart from the rest of the machine, said plainly and checked before it is claimed.

L0: same user, guarded by a warden; protects against mistakes. L1: own namespaces by bubblewrap, a private view of the
file system, limits, no network unless granted; as root also an own user per plugin. A level that does not work here
is refused, never quietly lowered. Nothing here starts a runner.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from paddock.ports import RUN_SOCKET
from paddock.runners.belongings import FIRST_UID, give, kept_of, own_user
from paddock.runners.errors import StartError
from paddock.runners.plugins import OPEN, Level, Place, Plugin

PIDS = 64
PIDS_OF_MANY = 512
"""Where each run has a process of its own, all processes of the plugin share one count."""
OPEN_FILES = 256
FILE_BYTES = 256 * 1024 * 1024
TMP_BYTES = 64 * 1024 * 1024
PROBE_SECONDS = 10

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl", "ca-certificates", "mime.types")
ETC_FOR_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "services")
PROGRAMS = ("bwrap", "prlimit", "setpriv", "env")


class ActiveLevel(NamedTuple):
    """The strongest level that works on this machine, and why that one."""

    level: Level
    why: str


@cache
def active_level() -> ActiveLevel:
    """Try it once: a sandbox that is installed need not be one that works."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return ActiveLevel("L0", f"{missing[0]} is not installed")
    argv = Sandbox(uid=FIRST_UID if os.geteuid() == 0 else None).around(("true",))
    try:
        tried = subprocess.run(argv, capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return ActiveLevel("L0", f"bubblewrap does not work here: {problem}")
    if tried.returncode != 0:
        said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
        return ActiveLevel("L0", f"bubblewrap does not work here: {said[-1] if said else tried.returncode}")
    return ActiveLevel("L1", "bubblewrap works here")


def level_for(plugin: Plugin, wanted: Level) -> Level:
    """The stronger of what the plugin and what the operator ask for. Raises StartError when it cannot be had."""
    if "L1" not in (plugin.isolation, wanted):
        return "L0"
    offered, why = active_level()
    if offered != "L1":
        raise StartError("runner.start_failed", f"{plugin.id} must run at isolation L1, which cannot be had: {why}")
    return "L1"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one confined process may see and use."""

    read_only: tuple[Path, ...] = ()
    home: Path | None = None
    kept: Path | None = None
    """All of the home that it may write in; what lies beside it is another conversation's, and is not there."""
    cwd: Path | None = None
    network: bool = False
    memory_mb: int = 2048
    pids: int = PIDS
    uid: int | None = None
    """An own user, when we are root and can give one."""
    writable: tuple[Path, ...] = ()
    socket: Path | None = None
    """The way to the run's own endpoint, where there is no network."""

    def around(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs the command inside."""
        return (*self._namespaces(), *self._view(), "--", *self._limits(), *self._user(), *command)

    def _namespaces(self) -> Iterable[str]:
        yield from ("bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
        yield from ("--hostname", "runner", "--die-with-parent", "--new-session")
        if not self.network:
            yield "--unshare-net"
        if self.uid is None:
            yield from ("--unshare-user", "--disable-userns")
        else:  # setpriv needs these three, and gives them up
            yield from ("--cap-drop", "ALL")
            yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")

    def _view(self) -> Iterable[str]:
        yield from ("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev")
        for empty in ("/tmp", "/dev/shm"):  # noqa: S108 - new, empty and small ones
            yield from ("--size", str(TMP_BYTES), "--perms", "1777", "--tmpfs", empty)
        yield from ("--remount-ro", "/dev")
        for directory in map(Path, SYSTEM):
            if directory.is_symlink():
                yield from ("--symlink", str(directory.readlink()), str(directory))
            elif directory.is_dir():
                yield from ("--ro-bind", str(directory), str(directory))
        yield from _open_way_to(Path("/etc/any"))
        for name in (*ETC, *(ETC_FOR_NETWORK if self.network else ())):
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        for path in self.read_only:
            yield from (*_open_way_to(path), "--ro-bind", str(path), str(path))
        if self.home is not None:
            yield from self._home(str(self.home))
        for path in self.writable:
            yield from (*_open_way_to(path), "--bind", str(path), str(path))
        if self.socket is not None:
            yield from (*_open_way_to(Path(RUN_SOCKET)), "--bind", str(self.socket), RUN_SOCKET)
        yield from ("--remount-ro", "/", "--chdir", str(self.cwd or "/"))

    def _home(self, home: str) -> Iterable[str]:
        """Its own: all of it, or to be read alone, with one conversation's things for writing and no other's at all."""
        yield from _open_way_to(Path(home))
        if self.kept is None:
            yield from ("--bind", home, home)
        else:
            beside = str(self.kept.parent)
            yield from ("--ro-bind", home, home, "--perms", "0755", "--tmpfs", beside)
            yield from ("--bind", str(self.kept), str(self.kept), "--remount-ro", beside)

    def _limits(self) -> Iterable[str]:
        yield from ("prlimit", f"--nproc={self.pids}", f"--as={self.memory_mb * 1024 * 1024}", f"--nofile={OPEN_FILES}")
        yield from (f"--fsize={FILE_BYTES}", "--core=0", "--")
        yield from ("env", "-u", "PWD")  # bubblewrap adds it; the environment is exactly what we say it is

    def _user(self) -> Iterable[str]:
        if self.uid is not None:
            yield from ("setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups")
            yield from ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--")


def _open_way_to(path: Path) -> Iterable[str]:
    """Directories above a bound one: bubblewrap would make them for root alone."""
    for parent in reversed(path.parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(parent))


def confine(
    plugin: Plugin, command: Sequence[str], home: Path, place: Place = OPEN, socket: Path | None = None
) -> tuple[str, ...]:
    """The command of a plugin, run at L1: it sees its own directory, its home, the interpreter, what its place adds,
    and nothing else."""
    uid = own_user(home) if os.geteuid() == 0 else None
    if place.directory is not None and place.directory_is_ours and uid is not None:
        give(place.directory, uid)
    sandbox = Sandbox(
        read_only=_outermost([*_visible(plugin, command), *(path for path in place.visible if path.exists())]),
        writable=() if place.directory is None else (place.directory,),
        socket=None if plugin.network else socket,
        home=home,
        kept=None if place.conversation is None else kept_of(home, place.conversation, uid),
        cwd=plugin.directory,
        network=plugin.network,
        memory_mb=plugin.memory_mb,
        pids=PIDS_OF_MANY if plugin.runs_per_process else PIDS,
        uid=uid,
    )
    return sandbox.around(command)


def _visible(plugin: Plugin, command: Sequence[str]) -> tuple[Path, ...]:
    """Directories it must read to run at all; what lies in /usr is there anyway."""
    wanted = [plugin.directory, *plugin.python_path]
    program = Path(command[0])
    if program.is_absolute() and program.exists():
        wanted.append(program.parent)
    if program in (plugin.python, Path(sys.executable)):
        wanted += _interpreter(program)
    return _outermost(path.absolute() for path in wanted if path.exists())


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Without what lies in another of them, or in /usr."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in (*kept, Path("/usr"))):
            kept.append(path)
    return tuple(kept)


def _interpreter(program: Path) -> list[Path]:
    """The environment the program lies in, the installation behind it, and where the SDK is, if elsewhere."""
    found = [program.parent.parent, program.resolve().parent.parent]
    for package in ("paddock_sdk", "paddock_runners"):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent.parent)
    return found
