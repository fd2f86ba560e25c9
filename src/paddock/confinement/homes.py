"""The private directories of plugins: a home for each, and beside the homes what each keeps of every conversation.

    homes/AUTHOR/NAME                       the plugin's HOME; a confined process that serves many runs writes in it
    conversations/one/AUTHOR/NAME/KEY       of one conversation, for processes that serve one run, and at L0
    conversations/many/AUTHOR/NAME          the same for confined processes that serve many runs, all of it theirs

Only the host writes in what lies above these: no plugin can put a link in the place of a directory that the host opens
or shows to a run. In a home `conversations` is a link that leads to the plugin's place; the host never follows it.
"""

import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from paddock.confinement import trees

LINK = "conversations"
"""What a plugin's home calls it; the wire's own page names it."""
ONE, MANY = "one", "many"
FIRST_UID, LAST_UID = 62_000, 62_999


class NoUserLeftError(OSError):
    """No user id is free for a new plugin."""


class Homes:
    """The homes below one directory, and the places of conversations beside it."""

    def __init__(self, homes: Path) -> None:
        self._homes = homes
        self._one_at_a_time = Lock()
        """Processes are planned in threads: two that are new at once must not get the same user, or be moved twice."""

    def home(self, author: str, name: str, *, shared: bool = False) -> Path:
        """The plugin's own directory, made when missing, closed to other users.

        `shared`: its processes are confined and serve many runs, so what an older version kept there is theirs.
        """
        homes = self._real()
        with self._one_at_a_time, trees.inside(homes, author, name, make=True) as home:
            os.fchmod(home, trees.MODE)
            self._lead_to_conversations(home, author, name, shared=shared)
        return homes / author / name

    def own_user(self, author: str, name: str) -> int:
        """The user id of a plugin. The owner of its home is the record of it; a new one gets the next free."""
        with self._one_at_a_time, trees.inside(self._real(), author, name) as home:
            owner = os.fstat(home).st_uid
            if FIRST_UID < owner <= LAST_UID:
                return owner
            chosen = self._free_user()
            trees.give(home, chosen)
            return chosen

    def place_of_one(self, author: str, name: str, conversation: str, uid: int | None) -> Path:
        """The plugin's place of one conversation, made when missing."""
        return self._place(uid, ONE, author, name, conversation)

    def place_of_many(self, author: str, name: str, uid: int | None) -> Path:
        """The plugin's place of all conversations that a shared process serves, made when missing."""
        return self._place(uid, MANY, author, name)

    def conversations(self, author: str, name: str) -> Path:
        """The path that `conversations` in the plugin's home leads to, also inside a sandbox."""
        return self._conversations() / ONE / author / name

    def forget(self, conversation: str, tell: Callable[[str], None]) -> None:
        """Remove what all plugins kept of a conversation; what cannot be removed is told by its name."""
        for names in [*self._kinds_and_plugins()]:
            with suppress(OSError), trees.inside(self._conversations(), *names) as place:
                trees.remove(place, conversation, tell)
        for author, name in [*_pairs(self._homes)]:  # of a plugin that was not started since an older version
            with suppress(OSError), trees.inside(self._homes, author, name, LINK) as old:
                trees.remove(old, conversation, tell)

    def _real(self) -> Path:
        self._homes.mkdir(mode=trees.MODE, parents=True, exist_ok=True)
        return self._homes.resolve()

    def _conversations(self) -> Path:
        return self._homes.resolve().parent / LINK

    def _place(self, uid: int | None, *names: str) -> Path:
        root = self._conversations()
        root.mkdir(mode=trees.MODE, exist_ok=True)
        with trees.inside(root, *names, make=True) as place:
            if uid is not None:
                trees.give(place, uid)
        return root.joinpath(*names)

    def _kinds_and_plugins(self) -> Iterator[tuple[str, str, str]]:
        for kind in (ONE, MANY):
            for author, name in _pairs(self._conversations() / kind):
                yield kind, author, name

    def _free_user(self) -> int:
        taken = {(self._homes / author / name).lstat().st_uid for author, name in _pairs(self._homes)}
        for uid in range(FIRST_UID + 1, LAST_UID + 1):
            if uid not in taken and _unnamed(uid):
                return uid
        raise NoUserLeftError(0, f"no user id between {FIRST_UID} and {LAST_UID} is free for a new plugin")

    def _lead_to_conversations(self, home: int, author: str, name: str, *, shared: bool) -> None:
        """Put the link into a home. What an older version kept there is moved, once: from then on a plugin that puts
        something in the link's place misleads nobody but itself."""
        root = self._conversations()
        if not (root / ONE / author / name).is_dir():
            root.mkdir(mode=trees.MODE, exist_ok=True)
            fresh = f".{name}"  # a host may die while it moves them; no plugin is called so
            with trees.inside(root, ONE, author, fresh, make=True) as of_one:
                if shared:
                    with trees.inside(root, MANY, author, name, make=True) as of_many:
                        _move(home, of_many)
                _move(home, of_one)
            with trees.inside(root, ONE, author) as beside:
                os.rename(fresh, name, src_dir_fd=beside, dst_dir_fd=beside)
        with suppress(FileExistsError):
            os.symlink(f"../../../{LINK}/{ONE}/{author}/{name}", LINK, dir_fd=home)


def _move(home: int, place: int) -> None:
    """Move the conversations that lie in a home. Only directories move; a link that lies in wait is removed."""
    try:
        old = os.open(LINK, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=home)
    except OSError:
        with suppress(OSError):
            os.unlink(LINK, dir_fd=home)
        return
    try:
        for name in os.listdir(old):  # noqa: PTH208 - of an open directory
            with suppress(OSError):
                os.rename(name, name, src_dir_fd=old, dst_dir_fd=place)
                _keep_only_a_directory(place, name)
    finally:
        os.close(old)
    with suppress(OSError):
        os.rmdir(LINK, dir_fd=home)


def _keep_only_a_directory(place: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=place)


def _pairs(root: Path) -> Iterator[tuple[str, str]]:
    for path in root.glob("*/*"):
        if not path.is_symlink() and path.is_dir():
            yield path.parent.name, path.name


def _unnamed(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return True
    return False
