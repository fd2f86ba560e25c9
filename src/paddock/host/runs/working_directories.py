"""Where runs work on this machine: one directory for each conversation and agent, or the one the agent's owner names.

Names become parts of a path here and nowhere else; whatever they hold, they lead nowhere but under the root. What is
in a directory is its agent's business. A conversation that is forgotten takes its directories with it.
"""

import asyncio
import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import structlog

from paddock.confinement import trees
from paddock.confinement.homes import Homes
from paddock.rules.access.permissions import RunScope
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

UNUSABLE = "agent.working_directory"
FULL = "agent.working_directory_full"
MAX_FULL = 10_000
MODE = trees.MODE
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

log = structlog.get_logger("paddock.directories")


class WorkingDirectory(Value, frozen=True):
    path: str
    shared: bool
    """Other conversations use it too."""


class WorkingDirectories:
    def __init__(
        self,
        root: Path,
        *,
        apart_from: Path | None = None,
        most_bytes: int | None = None,
        homes: Homes | None = None,
    ) -> None:
        """`apart_from`: what no named directory may reach, the host's own data. `most_bytes`: of one of ours. `homes`:
        where the plugins have their private ones."""
        self._root = root.absolute()
        self._homes = homes
        self._apart_from = apart_from
        self._most_bytes = most_bytes
        self._full: set[str] = set()
        """Those that had too much in them when a run ended."""

    async def of(self, scope: RunScope, named: str | None) -> WorkingDirectory:
        """The directory of a run, made when it is missing. Raises HostError."""
        if named is not None:
            return await asyncio.to_thread(self._named, scope.agent_id, Path(named))
        found = await asyncio.to_thread(self._own, scope)
        if found.path in self._full and not await self.measure(found.path):
            text = f"its working directory holds more than {self._most_bytes} bytes; remove something from {found.path}"
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text, details={"run_code": FULL})
        return found

    async def measure(self, path: str) -> bool:
        """Tell if a working directory is within its quota; checked after a run, not while somebody waits."""
        most = self._most_bytes
        fits = most is None or await asyncio.to_thread(self._fits, Path(path), most)
        if fits:
            self._full.discard(path)
        elif len(self._full) < MAX_FULL:
            self._full.add(path)
            log.warning("a working directory is full", action="directories.full", path=path, most_bytes=most)
        return fits

    async def forget(self, workspace_id: str, conversation_id: str) -> None:
        """Remove what a conversation's agents left there, and what its runners kept of it in their plugins' homes."""
        await asyncio.to_thread(self._remove, plain(workspace_id), plain(conversation_id))
        if self._homes is not None:
            await asyncio.to_thread(self._homes.forget, conversation_key(workspace_id, conversation_id), _tell)

    # --- within

    def _own(self, scope: RunScope) -> WorkingDirectory:
        names = [plain(scope.workspace_id), plain(scope.conversation_id), _agent_in(scope)]
        path = self._root.joinpath(*names)
        try:
            self._root.mkdir(mode=MODE, parents=True, exist_ok=True)
            with trees.inside(self._root, *names, make=True):
                return WorkingDirectory(str(self._root.resolve().joinpath(*names)), shared=False)
        except OSError as error:
            raise _unusable(f"the working directory cannot be made: {error.strerror}", str(path)) from error

    def _named(self, agent_id: str, path: Path) -> WorkingDirectory:
        if not path.is_dir():
            raise _unusable(f"the working directory of agent {agent_id!r} is not there", str(path))
        real = path.resolve()
        if real != path.absolute():  # it was named without one: somebody put it there since
            raise _unusable(f"the way to the working directory of agent {agent_id!r} goes through a link", str(path))
        if self._apart_from is not None and _touch(real, self._apart_from.resolve()):
            text = f"the working directory of agent {agent_id!r} holds or lies in the host's own data"
            raise _unusable(text, str(path))
        return WorkingDirectory(str(real), shared=True)

    def _remove(self, workspace: str, conversation: str) -> None:
        with suppress(OSError), trees.inside(self._root, workspace) as folder:
            trees.remove(folder, conversation, _tell)
        with suppress(OSError), trees.inside(self._root) as root:
            os.rmdir(workspace, dir_fd=root)  # it says no when there is something in it, which is the point

    def _fits(self, path: Path, most: int) -> bool:
        root = self._root.resolve()
        names = path.relative_to(root).parts
        try:
            with trees.inside(root, *names) as folder:
                return trees.fits(folder, most)
        except FileNotFoundError:
            return True
        except OSError:
            return False


def conversation_key(workspace_id: str, conversation_id: str) -> str:
    """The directory below `conversations` in a plugin's home that is this conversation's; runners know it as well."""
    return sha256(f"{workspace_id}\0{conversation_id}".encode(errors="replace")).hexdigest()[:32]


def _agent_in(scope: RunScope) -> str:
    """The agent's part of a path, another one in each of the platform's threads."""
    if scope.subthread_id is None:
        return plain(scope.agent_id)
    thread = sha256(scope.subthread_id.encode(errors="replace")).hexdigest()[:20]
    return f"{plain(scope.agent_id)}@{thread}"


def plain(name: str) -> str:
    """A name as one part of a path: itself when it is harmless, else one made of its hash."""
    if _PLAIN.fullmatch(name) and not name.startswith("x-"):
        return name
    return f"x-{sha256(name.encode(errors='replace')).hexdigest()[:40]}"


def _touch(one: Path, other: Path) -> bool:
    return one == other or one.is_relative_to(other) or other.is_relative_to(one)


def _tell(name: str) -> None:
    log.warning("something in a working directory could not be removed", action="directories.forget", name=name)


def _unusable(text: str, where: str) -> HostError:
    details = {"run_code": UNUSABLE}
    return HostError(ErrorCode.INVALID_ARGUMENT, text, details=details, for_operators=f"{text}: {where}")
