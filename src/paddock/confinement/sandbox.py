"""The view of one confined process: everything it can see, which of it it can write, and its limits (bubblewrap, L1).

`Sandbox.seen` is the whole list of what is there; the command line is made from it and from nothing else. Directories
that the caller names are known by what they are (`trees.pinned`): before the command begins it is checked inside, where
nobody can change it any more, that they are the ones that were meant.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from paddock.confinement.homes import FIRST_UID
from paddock.confinement.limits import call_filter, landlock_version
from paddock.confinement.trees import Pinned
from paddock.ports import RUN_SOCKET
from paddock.ports.runners import IsolationLevel as Level

PIDS = 64
OPEN_FILES = 256
FILE_BYTES = 256 * 1024 * 1024
TMP_BYTES = 64 * 1024 * 1024
PROBE_SECONDS = 10
OTHER_DIRECTORY = 126
"""How a process ends when what it was to see was exchanged for something else on the way."""

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ca-certificates",
    "alternatives",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "mime.types",
)
ETC_FOR_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "services")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "console", "shm", "core", "fd")
"""All that may be in /dev, besides the three standard streams; a console only where the host has a terminal."""
READ_ONLY_OF_PROCESSES = ("sys", "sysrq-trigger", "irq", "bus")
"""Parts of /proc over which a read-only view lies, as far as they could be written in at all."""
PROGRAMS = ("bwrap", "prlimit", "setpriv", "env", "sh", "stat")
SCOPES_SOCKETS = 6
"""Version of Landlock that scopes abstract sockets; `runners/processes/warden.py` asks for it."""
_NO_NETWORK = "--unshare-net"
_FILTER = "@filter"
"""Stands in a command line for the open file with the filter, which has a number only when the process is started."""

Kind = Literal["read", "write", "empty", "covered", "link", "processes", "devices"]


class Seen(NamedTuple):
    """One thing that is there in a sandbox."""

    path: str
    kind: Kind
    source: str = ""
    """Where it comes from, if not from the same path; of a link, where it leads."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Everything one confined process may see and use."""

    read_only: tuple[Pinned, ...] = ()
    writable: tuple[Pinned, ...] = ()
    moved: tuple[tuple[Pinned, Path], ...] = ()
    """Writable as well, each seen at another path than its own."""
    socket: Path | None = None
    """The way to the run's own endpoint, where there is no network."""
    hidden: Path | None = None
    """The host's data directory: covered wherever it lies, but for what is named above."""
    cwd: Path | None = None
    network: bool = False
    memory_mb: int = 2048
    pids: int = PIDS
    uid: int | None = None
    """An own user, when we are root and can give one."""

    def seen(self) -> tuple[Seen, ...]:
        """Everything that is there, in the order in which it is put there: what comes later lies over the earlier."""
        seen = [*self._system(), *self._named()]
        data = self.hidden
        if data is not None and any(data.is_relative_to(one.path) for one in seen if one.kind == "read"):
            around = [one for one in seen if not Path(one.path).is_relative_to(data)]
            seen = [*around, Seen(str(data), "covered"), *(one for one in seen if one not in around)]
        return tuple(seen)

    def around(self, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs the command inside. It is started within `filtered`."""
        inside = (*self._check(), *self._limits(), *self._user(), *command)
        return (*self._namespaces(), *self._view(), "--", *inside)

    def _system(self) -> Iterator[Seen]:
        yield Seen("/usr", "read")
        yield Seen("/proc", "processes")
        yield Seen("/dev", "devices")
        yield Seen("/tmp", "empty")  # noqa: S108 - a new, empty and small one
        yield Seen("/dev/shm", "empty")  # noqa: S108 - as above
        for directory in map(Path, SYSTEM):
            if directory.is_symlink():
                yield Seen(str(directory), "link", str(directory.readlink()))
            elif directory.is_dir():
                yield Seen(str(directory), "read")
        for name in (*ETC, *(ETC_FOR_NETWORK if self.network else ())):
            if Path(f"/etc/{name}").exists():
                yield Seen(f"/etc/{name}", "read")

    def _named(self) -> Iterator[Seen]:
        yield from (Seen(str(place.path), "read") for place in sorted(self.read_only))
        yield from (Seen(str(place.path), "write") for place in sorted(self.writable))
        yield from (Seen(str(path), "write", str(place.path)) for place, path in self.moved)
        if self.socket is not None:
            yield Seen(RUN_SOCKET, "write", str(self.socket))

    def _namespaces(self) -> Iterator[str]:
        yield from ("bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
        yield from ("--hostname", "runner", "--die-with-parent", "--new-session", "--seccomp", _FILTER)
        if not self.network:
            yield _NO_NETWORK
        if self.uid is None:
            yield from ("--unshare-user", "--disable-userns")
        else:  # setpriv needs these three, and gives them up; new user namespaces are refused by the filter
            yield from ("--cap-drop", "ALL")
            yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")

    def _view(self) -> Iterator[str]:
        seen, made = self.seen(), set[Path]()
        for one in seen:
            yield from _open_way_to(Path(one.path), made)
            yield from _put(one)
        for one in seen:  # last, as some of them hold others
            if one.kind == "covered":
                yield from ("--remount-ro", one.path)
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(self.cwd or "/"))

    def _check(self) -> Iterator[str]:
        named = [(place, place.path) for place in (*self.read_only, *self.writable)] + [*self.moved]
        wanted = [(place, path) for place, path in named if place.inode]
        if wanted:
            numbers = "\n".join(f"{place.device}:{place.inode}" for place, _ in wanted)
            paths = " ".join(shlex.quote(str(path)) for _, path in wanted)
            said = "what this process was to see was exchanged for something else"
            compare = f'[ "$(stat -c %d:%i -- {paths})" = {shlex.quote(numbers)} ]'
            yield from ("sh", "-c", f'{compare} || {{ echo "{said}" >&2; exit {OTHER_DIRECTORY}; }}; exec "$@"', "sh")

    def _limits(self) -> Iterator[str]:
        yield from ("prlimit", f"--nproc={self.pids}", f"--as={self.memory_mb * 1024 * 1024}", f"--nofile={OPEN_FILES}")
        yield from (f"--fsize={FILE_BYTES}", "--core=0", "--")
        yield from ("env", "-u", "PWD")  # bubblewrap adds it; the environment is exactly what we say it is

    def _user(self) -> Iterator[str]:
        if self.uid is not None:
            yield from ("setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups")
            yield from ("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--")


def _put(one: Seen) -> Iterator[str]:
    match one.kind:
        case "read":
            yield from ("--ro-bind", one.source or one.path, one.path)
        case "write":
            yield from ("--bind", one.source or one.path, one.path)
        case "empty":
            yield from ("--size", str(TMP_BYTES), "--perms", "1777", "--tmpfs", one.path)
        case "covered":
            yield from ("--size", "65536", "--perms", "0755", "--tmpfs", one.path)
        case "link":
            yield from ("--symlink", one.source, one.path)
        case "processes":
            yield from ("--proc", one.path)
        case "devices":
            yield from ("--dev", one.path)


def _open_way_to(path: Path, made: set[Path]) -> Iterator[str]:
    """Directories above something: bubblewrap would make them for root alone."""
    for parent in reversed(path.parents[:-1]):
        if parent not in made:
            made.add(parent)
            yield from ("--perms", "0755", "--dir", str(parent))


def outermost(places: Iterable[Pinned]) -> tuple[Pinned, ...]:
    """Without what lies in another of them, or in /usr."""
    kept: list[Pinned] = []
    for place in sorted(set(places)):
        if not any(place.path.is_relative_to(other) for other in (*(one.path for one in kept), Path("/usr"))):
            kept.append(place)
    return tuple(kept)


def interpreter(program: Path, packages: Iterable[str]) -> list[Path]:
    """The environment that a Python program lies in, the installation behind it, and packages that lie elsewhere."""
    found = [program.parent.parent, program.resolve().parent.parent]
    for package in packages:
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent.parent)
    return [path.absolute() for path in found]


@contextmanager
def filtered(argv: Sequence[str]) -> Generator[tuple[tuple[str, ...], tuple[int, ...]]]:
    """A command line ready to be started while the block lasts, and the open files that must go with it."""
    calls = call_filter(unix=_has_own_network(argv) or landlock_version() >= SCOPES_SOCKETS)
    if _FILTER not in argv or calls is None:
        yield tuple(argv), ()
        return
    opened = os.memfd_create("filter")
    try:
        os.write(opened, calls)
        os.lseek(opened, 0, os.SEEK_SET)
        yield tuple(str(opened) if one == _FILTER else one for one in argv), (opened,)
    finally:
        os.close(opened)


def _has_own_network(argv: Sequence[str]) -> bool:
    """Abstract sockets belong to the network: who shares the host's must be kept from them otherwise."""
    return _FILTER not in argv or argv[argv.index(_FILTER) + 1] == _NO_NETWORK


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
    if call_filter() is None:
        return ActiveLevel("L0", "the system calls of this kind of machine are not known")
    try:
        with filtered(Sandbox(uid=FIRST_UID if os.geteuid() == 0 else None).around(("true",))) as (argv, files):
            tried = subprocess.run(argv, capture_output=True, timeout=PROBE_SECONDS, check=False, pass_fds=files)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return ActiveLevel("L0", f"bubblewrap does not work here: {problem}")
    if tried.returncode != 0:
        said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
        return ActiveLevel("L0", f"bubblewrap does not work here: {said[-1] if said else tried.returncode}")
    return ActiveLevel("L1", "bubblewrap works here")
