"""Where runs work on this machine: one directory for each conversation and agent, or the one the agent's owner names.

Names become parts of a path here and nowhere else; whatever they hold, they lead nowhere but under the root. What is
in a directory is its agent's business. A conversation that is forgotten takes its directories with it.
"""

import asyncio
import os
import re
import shutil
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import structlog

from paddock.ports import KEPT_OF_CONVERSATIONS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.permissions import RunScope
from paddock.rules.values import Value

UNUSABLE = "agent.working_directory"
FULL = "agent.working_directory_full"
MAX_FULL = 10_000
MODE = 0o700
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
        homes: Path | None = None,
    ) -> None:
        """`apart_from`: what no named directory may reach, the host's own data. `most_bytes`: of one of ours. `homes`:
        where the plugins have their private ones."""
        self._root = root
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
        if found.path in self._full and not await self.look(found.path):
            text = f"its working directory holds more than {self._most_bytes} bytes; remove something from {found.path}"
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, text, details={"run_code": FULL})
        return found

    async def look(self, path: str) -> bool:
        """Whether there is room left in one of ours; asked when a run has ended, not while somebody waits."""
        most = self._most_bytes
        fits = most is None or await asyncio.to_thread(_fits, Path(path), most)
        if fits:
            self._full.discard(path)
        elif len(self._full) < MAX_FULL:
            self._full.add(path)
            log.warning("a working directory is full", action="directories.full", path=path, most_bytes=most)
        return fits

    async def forget(self, workspace_id: str, conversation_id: str) -> None:
        """Remove what a conversation's agents left there, and what its runners kept of it in their plugins' homes."""
        await asyncio.to_thread(self._remove, self._root / plain(workspace_id) / plain(conversation_id))
        for home in self._homes.glob("*/*") if self._homes is not None else ():
            kept = home / KEPT_OF_CONVERSATIONS
            if not kept.is_symlink():
                await asyncio.to_thread(self._remove, kept / conversation_key(workspace_id, conversation_id))

    # --- within

    def _own(self, scope: RunScope) -> WorkingDirectory:
        path = self._root
        try:
            path.mkdir(mode=MODE, parents=True, exist_ok=True)
            for name in (scope.workspace_id, scope.conversation_id, scope.agent_id):
                path = path / plain(name)
                _folder(path)
        except OSError as error:
            raise _unusable(f"the working directory {path} cannot be made: {error.strerror}") from error
        return WorkingDirectory(str(path), shared=False)

    def _named(self, agent_id: str, path: Path) -> WorkingDirectory:
        if not path.is_dir():
            raise _unusable(f"the working directory of agent {agent_id!r} is not there: {path}")
        real = path.resolve()
        if self._apart_from is not None and _touch(real, self._apart_from.resolve()):
            raise _unusable(f"the working directory of agent {agent_id!r} holds or lies in the host's own data: {path}")
        return WorkingDirectory(str(real), shared=True)

    def _remove(self, folder: Path) -> None:
        if folder.is_symlink() or not folder.is_dir():
            return
        shutil.rmtree(folder, onerror=_tell)
        _remove_empty(folder.parent)


def _fits(folder: Path, most: int) -> bool:
    """Whether its files have no more bytes than that; stops counting when they have."""
    total, waiting = 0, [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
                if total > most:
                    return False
    return True


def conversation_key(workspace_id: str, conversation_id: str) -> str:
    """The directory below `conversations` in a plugin's home that is this conversation's; runners know it as well."""
    return sha256(f"{workspace_id}\0{conversation_id}".encode(errors="replace")).hexdigest()[:32]


def plain(name: str) -> str:
    """A name as one part of a path: itself when it is harmless, else one made of its hash."""
    if _PLAIN.fullmatch(name) and not name.startswith("x-"):
        return name
    return f"x-{sha256(name.encode(errors='replace')).hexdigest()[:40]}"


def _folder(path: Path) -> None:
    """Make it if it is missing; a link in its place is not followed."""
    try:
        path.mkdir(mode=MODE)
    except FileExistsError:
        if not stat.S_ISDIR(path.lstat().st_mode):
            raise NotADirectoryError(0, "something else is in its place") from None


def _touch(one: Path, other: Path) -> bool:
    return one == other or one.is_relative_to(other) or other.is_relative_to(one)


def _tell(_function: object, path: str, _error: object) -> None:
    log.warning("something in a working directory could not be removed", action="directories.forget", path=path)


def _remove_empty(folder: Path) -> None:
    try:
        os.rmdir(folder)  # noqa: PTH106 - it says no when there is something in it, which is the point
    except OSError:
        return


def _unusable(text: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, text, details={"run_code": UNUSABLE})
