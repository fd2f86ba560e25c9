"""Skills of a run, read from where the host says they lie. Plain files only, no links, and not without end."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FILES = 500
MAX_BYTES = 10 * 1024 * 1024
MAX_DEPTH = 8
SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class SkillError(Exception):
    """A skill that is not projected; the text says why."""


@dataclass(frozen=True, slots=True)
class SkillFile:
    path: str
    content: bytes
    executable: bool


def read_skill(name: str, path: str | None) -> list[SkillFile]:
    """Its files, SKILL.md among them. Raises SkillError."""
    if not _NAME.fullmatch(name):
        raise SkillError(f"{name[:80]!r} is no name for a directory; use letters, digits, '.', '_' and '-'")
    if path is None:
        raise SkillError("the host does not say where it lies")
    root = Path(path)
    files = list(_bounded(_walk(root, "", 0)))
    if not any(file.path == SKILL_FILE for file in files):
        raise SkillError(f"{root} has no {SKILL_FILE}")
    return files


def _bounded(files: Iterator[SkillFile]) -> Iterator[SkillFile]:
    count = size = 0
    for file in files:
        count, size = count + 1, size + len(file.content)
        if count > MAX_FILES or size > MAX_BYTES:
            raise SkillError(f"it has more than {MAX_FILES} files or {MAX_BYTES} bytes")
        yield file


def _walk(folder: Path, above: str, depth: int) -> Iterator[SkillFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise SkillError(f"{folder} cannot be read: {error.strerror}") from error
    for entry in entries:
        name = f"{above}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and depth < MAX_DEPTH:
            yield from _walk(Path(entry.path), f"{name}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield _file(Path(entry.path), name)


def _file(path: Path, name: str) -> SkillFile:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SkillError(f"{name} cannot be read: {error.strerror}") from error
    return SkillFile(name, content, bool(mode & stat.S_IXUSR))
