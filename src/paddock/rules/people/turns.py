"""Whose turn it is: rows of many workspaces put in an order in which each has its turn. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar


class Owned(Protocol):
    @property
    def workspace_id(self) -> str: ...


Row = TypeVar("Row", bound=Owned)


def in_turn(rows: Sequence[Row]) -> list[Row]:
    """The first of each workspace, then the second of each, in the order they were given."""
    seen: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, row in enumerate(rows):
        turns.append((seen[row.workspace_id], place))
        seen[row.workspace_id] += 1
    return [rows[place] for _, place in sorted(turns)]


def next_after(workspaces: Sequence[str], last: str) -> str:
    """Of those that wait, in order of their names, the one behind the last that had its turn."""
    return min((name for name in workspaces if name > last), default=min(workspaces))
