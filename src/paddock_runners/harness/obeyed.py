"""Files that harnesses obey without asking: settings, hooks, programs of git. Which a call would write."""

import os
from collections.abc import Collection, Iterable
from itertools import pairwise
from pathlib import Path

DIRECTORIES = frozenset({".claude", ".codex", ".git", ".agents", ".gemini", ".opencode", ".kimi-code"})
FILES = frozenset({".mcp.json", "opencode.json", "opencode.jsonc"})
BELOW = (".config", "opencode")


def is_obeyed(paths: Iterable[str], directory: str, more: Collection[str] = ()) -> bool:
    """Tell whether one of the paths is such a file, as it is written or through links; `directory` is where the harness
    works, `more` are names of files that this harness obeys besides.

    Some file systems find a file by any case of its name.
    """
    names = {*FILES, *more}
    return any(_is_one(parts, names) for path in paths for parts in _spellings(path, directory))


def _spellings(path: str, directory: str) -> tuple[list[str], list[str]]:
    """The parts of a path below the directory, as it is written and as it leads."""
    sayable = path.replace("\0", "").encode(errors="replace").decode()
    written = os.path.normpath(Path(directory, sayable))
    real = os.path.realpath(written)
    return _parts(written, directory), _parts(real, os.path.realpath(directory))


def _parts(path: str, directory: str) -> list[str]:
    return [part.casefold() for part in Path(os.path.relpath(path, directory)).parts]


def _is_one(parts: list[str], names: Collection[str]) -> bool:
    if not DIRECTORIES.isdisjoint(parts) or BELOW in pairwise(parts):
        return True
    return bool(parts) and parts[-1] in names
