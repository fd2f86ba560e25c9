"""The rows of calendars: events, and the count that keeps two writers of one calendar from overlooking each other."""

from paddock.rules.values import Value


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
    """Forget an event."""

    event_id: str


class CalendarTurn(Value, frozen=True):
    """A change of a calendar that was `expected` to be at this count, which goes up by one. When it was changed
    meanwhile nothing of the same commit is written, so what was found free is still free."""

    workspace_id: str
    user_id: str
    expected: int


class CalendarState(Value, frozen=True):
    """How often a calendar was changed, and how much is in it."""

    turns: int = 0
    events: int = 0
    recurring: int = 0


AboutCalendars = CalendarEventRow | CalendarEventGone | CalendarTurn
