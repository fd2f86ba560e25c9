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


class JobsCap(Value, frozen=True):
    """A condition: with what is written beside it, one user has at most so many jobs."""

    workspace_id: str
    user_id: str
    most: int


class AutomationGone(Value, frozen=True):
    """Forget a job and what became of its ticks. Its conversation stays."""

    job_id: str


class TickRow(Value, frozen=True):
    """The outcome of one tick of a job; written once, and the job goes on to `next_at` in the same commit.

    It is written with the run it led to, so that neither is there without the other. A second one of the same tick is
    a conflict.
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
    """A claim on a tick is given up, so that others may take it from then on."""

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


AboutJobs = AutomationRow | AutomationGone | TickRow | JobClaim | JobFreed | JobGoesOn | JobMoves | JobsCap


class CalendarEventRow(Value, frozen=True):
    """One event, written whole. `body` is the event as JSON; the moments only narrow a search."""

    event_id: str
    workspace_id: str
    user_id: str
    body: bytes
    recurring: bool
    starts_at: float
    ends_at: float | None
    """The end of the last occurrence; None when nobody counted that far."""
    created_at: float
    updated_at: float


class CalendarEventGone(Value, frozen=True):
    event_id: str


class CalendarTurn(Value, frozen=True):
    """A change of a calendar that was `expected` to be at this count, which goes up by one. When it was changed
    meanwhile nothing of the same commit is written, so what was found free is still free."""

    workspace_id: str
    user_id: str
    expected: int


class CalendarState(Value, frozen=True):
    """Number of changes to a calendar, and its size."""

    turns: int = 0
    events: int = 0
    recurring: int = 0


AboutCalendars = CalendarEventRow | CalendarEventGone | CalendarTurn
