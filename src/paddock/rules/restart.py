"""When a runner process dies: start it again, or leave it down? Pure; the supervisor obeys."""

from collections.abc import Sequence
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RestartAfter:
    """Start again on the next demand, but not before `seconds` have passed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LeaveDown:
    """It is unhealthy. The next demand may try again when `seconds` have passed."""

    seconds: float = REST_SECONDS


def after_exit(exits: Sequence[float], *, now: float, limit: int = 5) -> RestartAfter | LeaveDown:
    """Back off 1, 2, 4... seconds; after `limit` restarts within a minute, leave it down.

    `exits` are the times of its failures, the one just seen included.
    """
    recent = sum(now - at < WINDOW_SECONDS for at in exits)
    return LeaveDown() if recent > limit else RestartAfter(2.0 ** max(recent - 1, 0))
