"""Under which names files go into a knowledge base, where a name is there only once. Pure; the paths are as typed.

A file is called by its name. Files of one command that share a name are called by the shortest tails of their paths
that tell them apart. What the base already has under a tail of the path keeps that name, so that a new version takes
the place of the old one also when it comes alone.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import PurePath


def document_names(files: Sequence[PurePath], known: Collection[str]) -> list[str]:
    """One name for each file, in their order; `known` are the names that the base has."""
    there, called = frozenset(known), defaultdict[str, set[PurePath]](set)
    for path in files:
        called[path.name].add(path)
    return [_name(path, called[path.name] - {path}, there) for path in files]


def _name(path: PurePath, namesakes: Collection[PurePath], known: Collection[str]) -> str:
    taken = {tail for one in namesakes for tail in _tails(one)}
    free = [tail for tail in _tails(path) if tail not in taken] or [path.as_posix()]
    return next((tail for tail in reversed(free) if tail in known), free[0])


def _tails(path: PurePath) -> list[str]:
    """The name, then with its directory, and so on up to the whole path."""
    return [PurePath(*path.parts[-length:]).as_posix() for length in range(1, len(path.parts) + 1)]
