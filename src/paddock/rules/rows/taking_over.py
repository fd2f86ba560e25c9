"""Rows that give what one user has to another of the same workspace: conversations one by one, then the rest."""

from paddock.rules.values import Value

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
