"""Who may start a run on a host that is nearly full: everybody a fair share, nobody the last seats alone. Pure."""

from collections.abc import Mapping, Sequence

KEPT_FREE = 0.1
"""The part of a host that a workspace never fills where there are several, so that the next one finds room at once."""


def admits(busy: Mapping[str, int], workspace: str, capacity: int, *, several: bool) -> bool:
    """Whether one more run of this workspace fits, `busy` being the runs that each workspace has here now. `several`:
    other workspaces are known to use this host, now or later."""
    total = sum(busy.values())
    if total >= capacity:
        return False
    alone = len(busy) <= (workspace in busy)
    others = 0 if alone else sum(1 for name, count in busy.items() if count and name != workspace)
    share = capacity / (others + 1) if others else capacity * (1 - KEPT_FREE * several)
    return busy.get(workspace, 0) < max(1, share)


def next_in_line(waiting: Sequence[str], busy: Mapping[str, int]) -> str:
    """Of those that wait, the workspace with the fewest runs; of several, the one that waits longest."""
    return min(waiting, key=lambda workspace: busy.get(workspace, 0))
