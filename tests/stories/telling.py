"""How a story file is read: what is sent, and what must be heard because of it, line by line.

    Given agents ada (default), bob (interrupt)
    When user:uma sends USER_INPUT turn=t1 {"text": "hello"}
    Then BROADCAST hears CONTROL:SESSION_OPENED {"members": ["ada"]}
    And agent:ada hears USER_INPUT
    Now active=ada members=ada speaking=nobody live=t1

After each `When` every message must be named, in order; of a payload only what the line shows is compared. `When the
wait for INPUT_ACK of t1 is over` lets a timer ring. `Then nothing is said (reason)` is something heard and only noted.
Lines that begin with # or a space, and headings, are for people.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddock.rules.session.bus import MessageItem, on_message
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.invariants import violations
from paddock.rules.session.messages import (
    AckTimedOut,
    Agents,
    CancelTimedOut,
    ConfirmTimedOut,
    ManagerTimedOut,
    Message,
    RunGranted,
    SteeringTaken,
)
from paddock.rules.session.state import SessionState, session_context

_SENT = re.compile(r"When (\S+) sends (\w+)(?::(\w+))?((?: \w+=\S+)*)(?: (\{.*\}))?$")
_WAIT = re.compile(r"When the wait for (\w+) of (\S+) is over$")
_LEARNED = re.compile(r"When the host learns what the runner of (\S+) asks for$")
_TAKES = re.compile(r"When the runner of (\S+) takes in (\S+)$")
_HEARS = re.compile(r"(?:Then|And) (\S+) hears (\w+)(?::(\w+))?(?: from (\S+))?(?: (\{.*\}))?$")
_NOTED = re.compile(r"Then nothing is said \((\w+)\)$")
_AGENT = re.compile(r"(\w+)(?: \(([^)]*)\))?")

TIMERS = {
    "INPUT_ACK": AckTimedOut,
    "CANCEL_ACK": CancelTimedOut,
    "MANAGER": ManagerTimedOut,
    "CONFIRM": ConfirmTimedOut,
}


class WrongStoryError(Exception):
    """The session told another story than the file."""


@dataclass
class Teller:
    """Plays one story."""

    name: str
    state: SessionState = field(default_factory=SessionState)
    agents: Agents = field(default_factory=lambda: Agents("ada", {"ada": "queue", "bob": "queue"}))
    decision: Decision = field(default_factory=Decision)
    heard: list[Fact] = field(default_factory=list)
    time: float = 0.0
    whens: int = 0

    def tell(self, text: str) -> None:
        for number, line in enumerate(text.splitlines(), 1):
            if line[:1] in {"", "#", " "}:
                continue
            try:
                self._line(line)
            except WrongStoryError as wrong:
                raise WrongStoryError(f"{self.name}, line {number}: {line}\n  {wrong}") from None
        self._all_heard()

    def _line(self, line: str) -> None:
        word = line.split(maxsplit=1)[0]
        if word == "Given":
            self.agents = _agents(line)
        elif word == "When":
            self._when(line)
        elif word == "Now":
            self._now(line)
        elif word in {"Then", "And"}:
            self._then(line)
        else:
            raise WrongStoryError("a line begins with Given, When, Then, And or Now")

    def _when(self, line: str) -> None:
        self._all_heard()
        before, self.time, self.whens = self.state, self.time + 1, self.whens + 1
        if sent := _SENT.match(line):
            item = _item(sent, self.time)
            self.state, self.decision = on_message(before, item, self.agents)
        else:
            message = self._rung(line)
            self.state, self.decision = step(before, message)
            self._check(violations(before, message, self.decision, self.state))
        self.heard = list(self.decision.facts)

    def _rung(self, line: str) -> Message:
        if wait := _WAIT.match(line):
            return TIMERS[wait[1]](wait[2], self.time)
        if takes := _TAKES.match(line):
            return SteeringTaken(takes[2], takes[1], self.time)
        if learned := _LEARNED.match(line):
            return RunGranted(learned[1], {"grant": {}}, self.time)
        raise WrongStoryError("this is no way to say what happens")

    def _then(self, line: str) -> None:
        if noted := _NOTED.match(line):
            reasons = [note.reason for note in self.decision.notes]
            if self.decision.facts or noted[1] not in reasons:
                raise WrongStoryError(f"it was: {_said(self.heard)}, noted {reasons}")
            return
        wanted = _HEARS.match(line)
        if wanted is None:
            raise WrongStoryError("this is no way to say what is heard")
        if not self.heard:
            raise WrongStoryError("nothing more was said")
        fact = self.heard.pop(0)
        payload = json.loads(wanted[5]) if wanted[5] else None
        if not _is_said(fact, wanted) or not (payload is None or _shows(fact.payload, payload)):
            raise WrongStoryError(f"it was: {_said([fact])}")

    def _now(self, line: str) -> None:
        context = session_context(self.state)
        live = [turn.turn_id for turn in context.inflight.values() if turn.status != "QUEUED"]
        waiting = [turn.turn_id for turn in context.inflight.values() if turn.status == "QUEUED"]
        facts = {
            "active": context.active_agent_id or "nobody",
            "members": ",".join(context.agents_in_session) or "nobody",
            "speaking": context.speaking_agent_id or "nobody",
            "live": ",".join(live) or "nothing",
            "line": ",".join(waiting) or "nothing",
            "open": "no" if context.closed or not context.opened else "yes",
            "transactions": ",".join(context.transactions) or "none",
        }
        for name, value in (part.split("=") for part in line.split()[1:]):
            if facts[name] != value:
                raise WrongStoryError(f"{name} is {facts[name]}")

    def _all_heard(self) -> None:
        if self.heard:
            raise WrongStoryError(f"also said, and not told: {_said(self.heard)}")

    def _check(self, broken: Sequence[str]) -> None:
        if broken:
            raise WrongStoryError("; ".join(broken))


def _agents(line: str) -> Agents:
    default, busy = None, {}
    for name, about in _AGENT.findall(line.removeprefix("Given agents ")):
        words = [word.strip() for word in about.split(",") if word.strip()]
        default = name if "default" in words else default
        busy[name] = next((word for word in words if word != "default"), "queue")
    return Agents(default, busy)


def _item(sent: re.Match[str], time: float) -> MessageItem:
    names = dict(part.split("=") for part in (sent[4] or "").split())
    ids: dict[str, Any] = {"turn_id": names.get("turn"), "tx_id": names.get("tx")}
    payload = json.loads(sent[5]) if sent[5] else None
    trace = f"trace-{names['turn']}" if "turn" in names else None
    return MessageItem(
        Event(sent[2]), sent[3] or "", sent[1], Target.SYSTEM, **ids, trace_id=trace, payload=payload, time=time
    )


def _is_said(fact: Fact, wanted: re.Match[str]) -> bool:
    who = f"agent:{fact.target_id}" if fact.target is Target.AGENT else fact.target.value
    return (
        who == wanted[1]
        and (fact.event, fact.subtype) == (wanted[2], wanted[3] or "")
        and (wanted[4] in (None, fact.sender))
    )


def _shows(payload: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(payload, dict) and all(_shows(payload.get(key), value) for key, value in wanted.items())
    return payload == wanted


def _said(facts: Sequence[Fact]) -> str:
    return "; ".join(f"{fact.target_id or fact.target} {fact.kind} {fact.payload}" for fact in facts) or "nothing"


def kinds_in(text: str) -> Iterator[str]:
    """Every (event, subtype) that a story names, sent or heard."""
    yield from re.findall(r"(?:sends|hears) (\w+(?::\w+)?)", text)
