"""Decide what follows a failure: restart a dead runner process or leave it down, ask a model again or not. Pure.

A process is shared by many workspaces, and nobody can tell whose run made it crash. So a crash counts against every
workspace that had a run in it, and each of them gets a process of its own for a while: the next crash is then surely
its own. A process that cannot be started counts against everybody.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
REST_SECONDS = 60.0
APART_SECONDS = 600.0
"""How long a workspace whose run was in a crash does not share a process with others."""
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RestartAfter:
    """Start again on the next demand, but not before `seconds` have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LeaveDown:
    """It is unhealthy. The next demand may try again when `seconds` have passed."""

    seconds: float = REST_SECONDS


@dataclass(frozen=True, slots=True)
class Failure:
    """A process that crashed, or could not be started."""

    at: float
    workspaces: frozenset[str] = NOBODY
    """Those that had a live run in it. Empty: it counts against everybody, as it could not be started."""
    reason: str = ""
    """For operators."""


def after_exit(exits: Sequence[float], *, now: float, limit: int = 5) -> RestartAfter | LeaveDown:
    """Back off 1, 2, 4... seconds; after `limit` restarts within a minute, leave it down.

    `exits` are the times of its failures, the one just seen included.
    """
    recent = sum(now - at < WINDOW_SECONDS for at in exits)
    return LeaveDown() if recent > limit else RestartAfter(2.0 ** max(recent - 1, 0))


def rest_for(failures: Sequence[Failure], workspace: str | None, *, now: float) -> RestartAfter | LeaveDown:
    """Return what a new process for this workspace has to wait for; `failures` are in order, None is any workspace.

    A workspace waits for its own failures, and for those of everybody, where all that one workspace may have caused
    count as one: they delay others by a second and never close the runner to them.
    """
    own = [each.at for each in failures if counts_against(each, workspace)]
    rests = _left(own, now), _left(_with_different_causes(failures), now)
    return max(rests, key=lambda rest: (isinstance(rest, LeaveDown), rest.seconds))


def counts_against(failure: Failure, workspace: str | None) -> bool:
    return not failure.workspaces or workspace in failure.workspaces


def apart_for(failures: Iterable[Failure], workspace: str, *, now: float) -> float:
    """Return for how many seconds more this workspace must not share a process with others; 0 when it may."""
    last = max((each.at for each in failures if workspace in each.workspaces), default=now - APART_SECONDS)
    return max(0.0, last + APART_SECONDS - now)


def _left(exits: Sequence[float], now: float) -> RestartAfter | LeaveDown:
    if not exits:
        return RestartAfter(0)
    verdict = after_exit(exits, now=exits[-1])
    left = exits[-1] + verdict.seconds - now
    return type(verdict)(left) if left > 0 else RestartAfter(0)


def _with_different_causes(failures: Sequence[Failure]) -> list[float]:
    """The times of those failures that no single workspace can explain, the newest of each, in order."""
    seen: set[str] = set()
    found: list[float] = []
    for each in reversed(failures):
        if seen.isdisjoint(each.workspaces):
            found.append(each.at)
        seen |= each.workspaces
    return found[::-1]


def left_down_for(failures: Sequence[Failure], *, now: float, limit: int = 5) -> list[str]:
    """The workspaces that the runner is left down for because of their own failures, by name."""
    starts = [each.at for each in failures if not each.workspaces]
    of_each: dict[str, list[float]] = {}
    for each in failures:
        for workspace in each.workspaces:
            of_each.setdefault(workspace, []).append(each.at)
    often = {name: sorted(starts + at) for name, at in of_each.items() if len(starts) + len(at) > limit}
    return sorted(name for name, at in often.items() if isinstance(_left(at, now), LeaveDown))


FIRST_PAUSE = 0.5
LONGEST_PAUSE = 10.0


def pause_before(attempt: int, *, retries: int, asked_for: float | None, seconds_left: float) -> float | None:
    """Seconds to wait before attempt number `attempt` + 1 (the first is 0); None: give up.

    Waits double from half a second; a provider that says how long to wait is obeyed up to ten seconds. No wait is
    begun that the run would not live to see the end of.
    """
    if attempt >= retries:
        return None
    pause = FIRST_PAUSE * 2**attempt if asked_for is None else asked_for
    if pause > LONGEST_PAUSE or pause >= seconds_left:
        return None
    return pause
