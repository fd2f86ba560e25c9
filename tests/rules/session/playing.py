"""How the tests of the session talk to it: play messages, look at what was said and asked for."""

from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from paddock.rules.session.commands import Command, EndRun
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Note
from paddock.rules.session.facts import Fact, OutputKind
from paddock.rules.session.invariants import violations
from paddock.rules.session.messages import Agents, Message, OutputReceived, UserInput
from paddock.rules.session.state import SessionState

spec = pytest.mark.spec

T1, T2, T3, T4 = "t1", "t2", "t3", "t4"
A, B = "ada", "bob"


@dataclass(frozen=True, slots=True)
class Session:
    """The state after a play, and what the messages of that play led to."""

    state: SessionState
    facts: tuple[Fact, ...]
    commands: tuple[Command, ...]
    notes: tuple[Note, ...]

    @property
    def said(self) -> list[str]:
        """Every fact as `kind>TARGET`."""
        return [f"{fact.kind}>{fact.target}" for fact in self.facts]

    @property
    def ends(self) -> list[EndRun]:
        return [command for command in self.commands if isinstance(command, EndRun)]

    @property
    def last(self) -> Fact:
        return self.facts[-1]


def play(*messages: Message, after: Session | SessionState | None = None) -> Session:
    """Step through the messages. Every step keeps every promise, whatever the test is about."""
    state = after.state if isinstance(after, Session) else after or SessionState()
    facts: list[Fact] = []
    commands: list[Command] = []
    notes: list[Note] = []
    for message in messages:
        before = state
        state, decision = step(state, message)
        assert violations(before, message, decision, state) == []
        facts.extend(decision.facts)
        commands.extend(decision.commands)
        notes.extend(decision.notes)
    return Session(state, tuple(facts), tuple(commands), tuple(notes))


def agents(default: str | None = A, *, max_queue: int = 100, **while_busy: str) -> Agents:
    return Agents(default, {A: "queue", B: "queue", **while_busy}, max_queue)


def says(
    turn_id: str, text: Any = "hi", *, to: str | None = None, among: Agents | None = None, at: float = 0.0
) -> UserInput:
    return UserInput(turn_id, f"trace-{turn_id}", "uma", text, {"lang": "en"}, among or agents(), to, at)


def output(
    kind: OutputKind, turn_id: str = T1, agent_id: str = A, payload: Any = "word", at: float = 0.0
) -> OutputReceived:
    return OutputReceived(turn_id, agent_id, kind, payload, {"n": next(_numbers)}, at)


_numbers = count()
