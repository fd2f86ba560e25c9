"""The rows of automations: jobs, what became of each tick, and who sees to one that is due."""

from paddock.rules.values import Value


class AutomationRow(Value, frozen=True):
    """One job, written whole. `body` is its definition as JSON; `next_at` None means that nothing more is due."""

    job_id: str
    workspace_id: str
    user_id: str
    thread_id: str
    """The conversation its runs happen in; the job's own."""
    body: bytes
    enabled: bool
    next_at: float | None
    created_at: float
    updated_at: float


class AutomationGone(Value, frozen=True):
    """Forget a job and what became of its ticks. Its conversation stays."""

    job_id: str


class TickRow(Value, frozen=True):
    """What became of one tick of a job; written once, and the job goes on to `next_at` in the same commit.

    It is written with the run it led to, so that neither is there without the other. A second one of the same tick is
    a conflict, whoever writes it.
    """

    job_id: str
    tick: float
    result: str
    """fired, skipped, refused or manual"""
    at: float
    run_id: str | None = None
    through: float | None = None
    """The last of a stretch of ticks that were passed over together."""
    reason: str = ""
    next_at: float | None = None


class JobClaim(Value, frozen=True):
    """Somebody is about to see to a tick: others leave it alone for a while. It keeps hosts out of each other's way;
    that a tick is fired once is the tick row's business."""

    job_id: str
    tick: float
    token: str
    until: float
    now: float


class JobFreed(Value, frozen=True):
    """Whoever claimed a tick could not see to it: from then on others may."""

    job_id: str
    token: str
    at: float


class JobGoesOn(Value, frozen=True):
    """A tick of a job is over: it goes on to the next, unless somebody changed that meanwhile. The rest of the job is
    its user's."""

    job_id: str
    tick: float
    next_at: float | None


class JobMoves(Value, frozen=True):
    """The conversation of a job is gone: it goes on in another one, unless it is there already."""

    job_id: str
    thread_id: str
    new_thread_id: str


AboutJobs = AutomationRow | AutomationGone | TickRow | JobClaim | JobFreed | JobGoesOn | JobMoves
