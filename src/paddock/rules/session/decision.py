"""What follows from one message: facts to record, commands to perform, notes to audit. A value; it does nothing."""

from paddock.rules.session.commands import Command
from paddock.rules.session.facts import Fact
from paddock.rules.values import Value


class Note(Value, frozen=True):
    """Something that was heard and changed nothing, such as output that came too late. Audited, never recorded."""

    action: str
    turn_id: str | None
    reason: str


class Decision(Value, frozen=True):
    """The facts come first: commands are performed only after all of them are on record."""

    facts: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()
    notes: tuple[Note, ...] = ()


def ignored(action: str, turn_id: str | None, reason: str) -> Decision:
    return Decision((), (), (Note(action, turn_id, reason),))
