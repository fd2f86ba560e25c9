"""Whose the files of a confined plugin are: a user of its own where we are root, and its part of each conversation."""

import os
import pwd
from pathlib import Path
from threading import Lock

from paddock.ports import KEPT_OF_CONVERSATIONS
from paddock.runners.errors import StartError

FIRST_UID, LAST_UID = 62_000, 62_999
_choosing = Lock()
"""Processes are planned in threads: two that are first confined at once must not both take the next free user."""


def own_user(home: Path) -> int:
    """The user id of this home's plugin. Who owns the directory is the record of it; a new one gets the next free."""
    with _choosing:
        return _recorded(home) or _chosen(home)


def _recorded(home: Path) -> int | None:
    owner = home.stat().st_uid
    return owner if FIRST_UID < owner <= LAST_UID else None


def _chosen(home: Path) -> int:
    taken = {other.stat().st_uid for other in home.parent.parent.glob("*/*")}
    free = next((uid for uid in range(FIRST_UID + 1, LAST_UID + 1) if uid not in taken and _unnamed(uid)), None)
    if free is None:
        raise StartError(
            "runner.start_failed", f"no user id between {FIRST_UID} and {LAST_UID} is free for a new plugin"
        )
    give(home, free)
    return free


def kept_of(home: Path, conversation: str, uid: int | None) -> Path:
    """Where the plugin keeps what it knows of this conversation; made when it is missing."""
    kept = home / KEPT_OF_CONVERSATIONS / conversation
    kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    if kept.is_symlink() or kept.parent.is_symlink():
        raise StartError("runner.start_failed", f"{kept} is a link, and a confined run is not led elsewhere by one")
    if uid is not None:
        os.chown(kept.parent, uid, uid, follow_symlinks=False)  # a process that serves many makes others beside it
        give(kept, uid)
    return kept


def give(directory: Path, uid: int) -> None:
    """A directory the host made becomes its runner's, with what is in it; once, while nobody else is in it.

    The directory itself comes last: whose it is says that all of it was given."""
    if directory.lstat().st_uid != uid:
        for path in (*directory.rglob("*"), directory):
            os.chown(path, uid, uid, follow_symlinks=False)


def _unnamed(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return True
    return False
