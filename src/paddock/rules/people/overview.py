"""Queries about a whole workspace, and sums for charts. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import ceil

from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import Value

MAX_LISTED = 200


class RunsQuery(Value, frozen=True):
    """Filter for runs; None or empty matches all."""

    workspace_id: str
    user_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    statuses: tuple[str, ...] = ()
    before: str | None = None
    """Ids of runs are in order of time: only runs begun before this one."""
    limit: int = 50


class AuditQuery(Value, frozen=True):
    """Filter for audit rows; None matches all."""

    workspace_id: str
    actor: str | None = None
    action: str | None = None
    """An action, or the beginning of one that ends with `*`."""
    result: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    since: float | None = None
    until: float | None = None
    before: int | None = None
    limit: int = 50
    of_hosts: bool = False
    """Also those of no workspace: what hosts decided for all."""


class AuditEntry(Value, frozen=True):
    """A decision and its number in the trail."""

    number: int
    row: AuditRow


class UsageLine(Value, frozen=True):
    """The model calls of one agent with one model in one span of time."""

    start: float
    agent_id: str
    model_id: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cost: float
    unpriced: int = 0
    """Calls that were answered by a model whose price nobody named: what they cost is not known."""


class Spender(Value, frozen=True):
    """The model calls of one person."""

    user_id: str
    calls: int
    total_tokens: int
    cost: float
    unpriced: int = 0


class Lap(Value, frozen=True):
    """One run's times."""

    created_at: float
    started_at: float | None
    ended_at: float | None
    status: str


class Pace(Value, frozen=True):
    """The runs of one span of time: how many, how they ended, and how long they took, in seconds."""

    start: float
    runs: int
    completed: int
    failed: int
    cancelled: int
    median: float | None
    slowest_twentieth: float | None
    """95 of 100 runs that completed took at most this long."""


def paces(laps: Iterable[Lap], every: int) -> Sequence[Pace]:
    """Laps added up by span, the oldest span first. Spans without runs are left out."""

    def span(lap: Lap) -> float:
        return lap.created_at // every * every

    return [pace_of(start, list(group)) for start, group in groupby(sorted(laps, key=span), key=span)]


def pace_of(start: float, laps: Sequence[Lap]) -> Pace:
    ended = {status: sum(lap.status == status for lap in laps) for status in ("completed", "failed", "cancelled")}
    took = sorted(
        lap.ended_at - (lap.started_at or lap.created_at)
        for lap in laps
        if lap.status == "completed" and lap.ended_at is not None
    )
    return Pace(start, len(laps), **ended, median=_at(took, 0.5), slowest_twentieth=_at(took, 0.95))


def _at(ordered: Sequence[float], share: float) -> float | None:
    return ordered[max(0, ceil(len(ordered) * share) - 1)] if ordered else None


def known_cost(cost: float, unpriced: int) -> float | None:
    """A cost as it is told: None when all there is was answered by models without a price. Unknown is not zero."""
    return None if unpriced and not cost else round(cost, 9)
