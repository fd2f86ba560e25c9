"""Decisions: facts to record, commands to perform, notes to audit; and one in the making."""

from collections.abc import Iterable

from paddock.rules.session.commands import Command
from paddock.rules.session.evolve import evolve, fold
from paddock.rules.session.facts import Fact
from paddock.rules.session.state import SessionState
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


class Unfolding:
    __slots__ = ("_commands", "_facts", "state")

    def __init__(self, state: SessionState, facts: Iterable[Fact] = (), commands: Iterable[Command] = ()) -> None:
        self._facts = list(facts)
        self._commands = list(commands)
        self.state = fold(state, self._facts)

    def say(self, *facts: Fact) -> None:
        for fact in facts:
            self._facts.append(fact)
            self.state = evolve(self.state, fact)

    def ask(self, *commands: Command) -> None:
        self._commands += commands

    def decision(self) -> Decision:
        return Decision(tuple(self._facts), tuple(self._commands))
