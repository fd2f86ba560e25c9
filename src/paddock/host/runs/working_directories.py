"""Working directories of runs: one for each conversation and agent, or the one that the agent's owner names.

Only here do names become parts of a path; every path stays below the root. The files in a directory are the agent's
business. The directories of a conversation are removed with it.
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
from paddock.rules.errors import ErrorCode, HostError, RunCode
from paddock.rules.values import Value

UNUSABLE: RunCode = "agent.working_directory"
FULL: RunCode = "agent.working_directory_full"
MAX_FULL = 10_000
MODE = trees.MODE
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

log = structlog.get_logger("paddock.directories")


class WorkingDirectory(Value, frozen=True):
    path: str
    shared: bool
    """Other conversations use the same directory."""


class WorkingDirectories:
    def __init__(
        self,
        root: Path,
        *,
        apart_from: Path | None = None,
        most_bytes: int | None = None,
        homes: Homes | None = None,
    ) -> None:
        """`apart_from` is the host's own data, which no named directory may reach. `most_bytes` limits each directory
        made here. `homes` are the plugins' private directories."""
        self._root = root.absolute()
        self._homes = homes
        self._apart_from = apart_from
        self._most_bytes = most_bytes
        self._full: set[str] = set()
        """Directories over the limit when a run ended."""

    async def of(self, scope: RunScope, named: str | None) -> WorkingDirectory:
        """Return the directory of a run; make it when it is missing. Raises HostError."""
        if named is not None:
            return await asyncio.to_thread(self._named, scope.agent_id, Path(named))
        found = await asyncio.to_thread(self._own, scope)
        if found.path in self._full and not await self.measure(found.path):
            text = f"its working directory holds more than {self._most_bytes} bytes; remove something from {found.path}"
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text, details={"run_code": FULL})
        return found

    async def measure(self, path: str) -> bool:
        """Measure a working directory against its limit; after a run, not while somebody waits."""
        most = self._most_bytes
        fits = most is None or await asyncio.to_thread(self._fits, Path(path), most)
        if fits:
            self._full.discard(path)
        elif len(self._full) < MAX_FULL:
            self._full.add(path)
            log.warning("a working directory is full", action="directories.full", path=path, most_bytes=most)
        return fits

    async def forget(self, workspace_id: str, session_id: str) -> None:
        """Remove the conversation's directories, and what its runners kept in their plugins' homes."""
        await asyncio.to_thread(self._remove, plain(workspace_id), plain(session_id))
        if self._homes is not None:
            await asyncio.to_thread(self._homes.forget, conversation_key(workspace_id, session_id), _tell)

    def _own(self, scope: RunScope) -> WorkingDirectory:
        names = [plain(scope.workspace_id), plain(scope.session_id), _agent_in(scope)]
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
        if real != path.absolute():  # it had no link when it was named: somebody added it since
            raise _unusable(f"the way to the working directory of agent {agent_id!r} goes through a link", str(path))
        if self._apart_from is not None and _touch(real, self._apart_from.resolve()):
            text = f"the working directory of agent {agent_id!r} holds or lies in the host's own data"
            raise _unusable(text, str(path))
        return WorkingDirectory(str(real), shared=True)

    def _remove(self, workspace: str, conversation: str) -> None:
        with suppress(OSError), trees.inside(self._root, workspace) as folder:
            trees.remove(folder, conversation, _tell)
        with suppress(OSError), trees.inside(self._root) as root:
            os.rmdir(workspace, dir_fd=root)  # fails when the directory is not empty, as it should

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


def conversation_key(workspace_id: str, session_id: str) -> str:
    """Return the name of the conversation's directory in a plugin's home; runners know it too."""
    return sha256(f"{workspace_id}\0{session_id}".encode(errors="replace")).hexdigest()[:32]


def _agent_in(scope: RunScope) -> str:
    """Return the agent's part of a path; different for each of the platform's threads."""
    if scope.subthread_id is None:
        return plain(scope.agent_id)
    thread = sha256(scope.subthread_id.encode(errors="replace")).hexdigest()[:20]
    return f"{plain(scope.agent_id)}@{thread}"


def plain(name: str) -> str:
    """Return a name as one part of a path: itself when it is harmless, else one made of its hash."""
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
