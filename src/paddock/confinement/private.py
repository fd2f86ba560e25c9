"""Files that only their owner may read, whatever the umask is; an older data directory is repaired when it is used."""

import logging
import os
import pwd
import stat
from contextlib import suppress
from pathlib import Path

log = logging.getLogger("paddock.data")
"""The standard one: every command may say this, and few set up ours."""

DIRECTORY, FILE = 0o700, 0o600
OTHERS = 0o077
MARKS = ("paddock.db", "lock", "host-id", "plugins")
"""By one of these a directory is known to be a data directory; no other one that has something in it is changed."""


def private_directory(path: Path) -> None:
    """Make a directory, or tighten one of ours that others may look into. Raises OSError."""
    way_to(path)
    path.mkdir(mode=DIRECTORY, exist_ok=True)
    with suppress(PermissionError):
        _tighten(path)


def way_to(path: Path) -> None:
    """Make the directories above one of ours: whoever could write in them could put another one in its place."""
    for one in reversed(path.absolute().parents):
        if not one.exists():
            with suppress(FileExistsError):
                one.mkdir(mode=0o755)


def private_file(path: Path) -> None:
    """Make an empty file if there is none; one of ours that others may read is tightened. Raises OSError."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
    try:
        about = os.fstat(opened)
        if about.st_uid == os.geteuid() and about.st_mode & OTHERS:
            os.fchmod(opened, FILE)
    finally:
        os.close(opened)


def problem_with_what_lies_here(*paths: Path) -> str | None:
    """Find out whether a data directory that nobody named, but that lies where a command was typed, may be used.

    Where others may write, somebody else can have laid it there, with settings that name programs, and with the address
    of a host that would be told everything.
    """
    for path in paths:
        with suppress(OSError):
            for about in (path.lstat(), path.stat()):
                if about.st_uid not in (0, os.geteuid()):
                    return (
                        f"{path} belongs to another user ({_user(about.st_uid)}), who may have laid it there for you. "
                        "If you mean it, name the data directory with --data; else go to another directory."
                    )
    return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _tighten(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        about = os.fstat(opened)
        mode = stat.S_IMODE(about.st_mode)
        if not mode & OTHERS or mode & stat.S_ISVTX or about.st_uid != os.geteuid():
            return
        names = os.listdir(opened)  # noqa: PTH208 - by number
        if names and not any(mark in names for mark in MARKS):
            return
        os.fchmod(opened, DIRECTORY)
        for name in names:
            _tighten_file(name, opened)
    finally:
        os.close(opened)
    if names:
        text = "the data directory %s could be read by others (%04o), and is its owner's alone from now on"
        log.warning(text, path, mode, extra={"action": "data.tightened"})


def _tighten_file(name: str, directory: int) -> None:
    """Of what lies in it, plain files; directories are out of reach with it."""
    with suppress(OSError):
        about = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and about.st_mode & OTHERS:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(opened, about.st_mode & ~OTHERS & 0o700)
            finally:
                os.close(opened)
