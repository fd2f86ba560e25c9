"""A decision in the making: what was said so far, and what that has made of the state. Used where one step leads to
the next; from outside it is still one pure function from a message to a decision.
"""

from collections.abc import Iterable

from paddock.rules.session.commands import Command
from paddock.rules.session.decision import Decision
from paddock.rules.session.evolve import evolve, fold
from paddock.rules.session.facts import Fact
from paddock.rules.session.state import SessionState


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
