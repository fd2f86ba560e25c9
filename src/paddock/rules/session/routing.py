"""Route a turn: a leading `@name`, the agent that answers, and the queue. One turn is live at a time."""

from collections.abc import Iterable
from typing import Any
from unicodedata import normalize

from paddock.rules.session import wording
from paddock.rules.session.commands import AwaitAck, Command, StartRun
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import Agents, UserInput
from paddock.rules.session.state import QueuedTurn, SessionState

SIGNS = ("@", "＠")
_BETWEEN = " \t\r\n\u3000,:，：、"
"""What may stand between a mention and the words for whom it is."""
_CJK = 0x2E80
"""From here on letters are of scripts that put no space between words: none of them goes on a name of other letters."""


def leading_mention(text: str, agents: Iterable[str]) -> str | None:
    """Find the agent that a text begins by calling: the longest name that fits, its own spelling before another."""
    if not text.startswith(SIGNS):
        return None
    said = text[1:]
    fitting = [name for name in agents if name and _calls(said, name)]
    longest = max(map(len, fitting), default=0)
    fitting = [name for name in fitting if len(name) == longest]
    exact = [name for name in fitting if said.startswith(name)]
    found = exact or fitting
    return found[0] if len(found) == 1 else None


def without_mention(text: str, agent_id: str) -> str:
    """Cut the leading mention of this agent off a text; one that says nothing else stays as it is."""
    if leading_mention(text, [agent_id]) is None:
        return text
    return text[1 + len(agent_id) :].lstrip(_BETWEEN) or text


def _calls(said: str, name: str) -> bool:
    return _folded(said[: len(name)]) == _folded(name) and not _goes_on(said[len(name) :], name)


def _folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


def _goes_on(rest: str, name: str) -> bool:
    """Return true if the rest continues the name: `ada` is not called by `@adam`, `@ada-2` or `@ada@example.org`."""
    if rest[:1] == "@":
        return True
    letters = rest[1:] if rest[:1] in ("-", ".") else rest
    if letters[:1] == "_":
        return True
    return letters[:1].isalnum() and (ord(letters[0]) < _CJK) and ord(name[-1]) < _CJK


def route(state: SessionState, message: UserInput) -> str | None:
    """The agent asked for, else the active one, else the default; None when it does not exist."""
    if message.agent_id is not None:
        found = configured(message.agents, message.agent_id)
    else:
        found = configured(message.agents, state.active_agent_id) or configured(
            message.agents, message.agents.default_agent_id
        )
    if state.transactions and found is not None and state.is_leaving(found):
        return found if state.turn is not None and message.agent_id is None else None
    return found


def configured(agents: Agents, agent_id: str | None) -> str | None:
    return agent_id if agent_id in agents.while_busy else None


def opening(message: UserInput) -> Fact:
    """The first input opens the session with the agent that answers it; with the default when that one is unknown."""
    first = configured(message.agents, message.agent_id) or configured(message.agents, message.agents.default_agent_id)
    payload = {"members": [first] if first else [], "active_agent_id": first, "implicit": True}
    return _broadcast("SESSION_OPENED", message.turn_id, message.trace_id, payload, message.at)


def dispatch(state: SessionState, turn: QueuedTurn, agent_id: str, at: float) -> tuple[list[Fact], tuple[Command, ...]]:
    """Hand the turn to its agent, who joins and becomes active first if need be."""
    facts: list[Fact] = []
    if agent_id not in state.members:
        facts.append(wording.to_frontend(Event.EVENT, "AGENT_ADDED", turn, {"agent_id": agent_id}, at))
    if agent_id != state.active_agent_id:
        reason = "mention" if turn.asked else "default_agent"
        payload = {"from": state.active_agent_id, "to": agent_id, "reason": reason, "trigger": "USER_INPUT"}
        facts.append(_broadcast("SWITCH_AGENT", turn.turn_id, turn.trace_id, payload, at))
    facts.append(wording.to_agent(Event.USER_INPUT, "", turn, agent_id, None, at, sender=turn.requested_by))
    facts.append(wording.to_frontend(Event.EVENT, "TURN_ACCEPTED", turn, {"agent_id": agent_id}, at))
    return facts, (StartRun(turn.turn_id, agent_id), AwaitAck(turn.turn_id))


def _broadcast(subtype: str, turn_id: str, trace_id: str, payload: Any, at: float) -> Fact:
    return Fact(
        Event.CONTROL,
        subtype,
        Target.BROADCAST,
        turn_id=turn_id,
        trace_id=trace_id,
        payload=payload,
        metadata=wording.NOTHING,
        time=at,
    )


def next_agent(state: SessionState, turn: QueuedTurn) -> str | None:
    """Return the agent that was asked for; else the active one, because the conversation may have moved on since."""
    if turn.asked:
        return turn.agent_id
    if state.active_agent_id is not None:
        return state.active_agent_id
    likely = turn.agent_id if turn.agent_id in state.members else turn.default_agent_id
    return None if likely is None or state.is_leaving(likely) else likely
