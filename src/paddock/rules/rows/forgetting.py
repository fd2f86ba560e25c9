"""Rows that take something away: they delete, erase, or give what one user has to another of the same workspace."""

from paddock.rules.values import Value

GONE_ON = "somebody went on with this conversation while it was being forgotten; nothing was forgotten"


class SessionGone(Value, frozen=True):
    """Forget a conversation: its facts, items, runs, what it kept and was named; and these scopes of state."""

    session_id: str
    scope_keys: tuple[str, ...] = ()
    buried_at: float | None = None
    """When somebody deleted it: its id is not used again. None when its time was over, which nobody asked for."""
    epoch: int | None = None
    """The claim under which it is forgotten: a conflict when somebody has gone on with it since. None: no check."""


class LogTrimmed(Value, frozen=True):
    """Forget the beginning of a conversation: facts and items up to a number, whose digest the chain goes on from."""

    session_id: str
    through: int
    digest: bytes


class FactErased(Value, frozen=True):
    """The words of one fact are gone; these bytes take their place (`chain.erased`)."""

    session_id: str
    seq: int
    position: int
    payload: bytes
    metadata: bytes


class ItemErased(Value, frozen=True):
    """The words of one transcript item are gone."""

    session_id: str
    seq: int
    content: str
    content_json: bytes
    metadata: bytes


class CallsErased(Value, frozen=True):
    """Erase the arguments and results of a run's tool call; the call itself stays on record."""

    run_id: str
    tool_name: str


class RequestsErased(Value, frozen=True):
    """The digests of a run's request, and of those after it, are gone: clients send along what was said before."""

    session_id: str
    run_id: str
    since: float


Forgetting = SessionGone | LogTrimmed | FactErased | ItemErased | CallsErased | RequestsErased


MOVED_ON = "somebody went on with this conversation while it was being handed over; it stays where it was"


class SessionMoved(Value, frozen=True):
    """A conversation belongs to another user, with its runs, files, names and the automation that talks in it.

    It is a conflict when it is not `from_user`'s any more, or when somebody went on with it since it was claimed under
    `epoch`.
    """

    session_id: str
    workspace_id: str
    from_user: str
    to_user: str
    epoch: int


class SessionSettled(Value, frozen=True):
    """A conversation was moved: the index it is found by forgets it, and any host may go on with it."""

    session_id: str


class StateMoved(Value, frozen=True):
    """Move what runners keep about a user to another key. Values that are there already stay."""

    old_key: str
    new_key: str


class OwnershipMoved(Value, frozen=True):
    """Give a user's automations, calendar, files, time zone and language to another user."""

    workspace_id: str
    from_user: str
    to_user: str


Moving = SessionMoved | SessionSettled | StateMoved | OwnershipMoved
