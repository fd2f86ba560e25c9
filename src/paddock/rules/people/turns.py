"""Whose turn it is among several workspaces. Pure."""

from collections.abc import Sequence


def next_after(workspaces: Sequence[str], last: str) -> str:
    """Of those that wait, in order of their names, the one behind the last that had its turn."""
    return min((name for name in workspaces if name > last), default=min(workspaces))
