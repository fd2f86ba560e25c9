"""What follows from one message: facts to record, commands to perform, notes to audit. A value; it does nothing."""

from dataclasses import dataclass

from paddock.rules.session.commands import Command
from paddock.rules.session.facts import Fact


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was heard and changed nothing, such as output that came too late. Audited, never recorded."""

    action: str
    turn_id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The facts come first: commands are performed only after all of them are on record."""

    facts: tuple[Fact, ...] = ()
    commands: tuple[Command, ...] = ()
    notes: tuple[Note, ...] = ()


def ignored(action: str, turn_id: str | None, reason: str) -> Decision:
    return Decision((), (), (Note(action, turn_id, reason),))
