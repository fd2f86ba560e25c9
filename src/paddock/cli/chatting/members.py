"""Members of a conversation at the terminal: invite, switch, remove, hand over, and who speaks. The host does it
all."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from paddock.cli.chatting.answers import DIM, AnswerPrinter, JsonPrinter, painted
from paddock.cli.chatting.turns import ChatTurn
from paddock.cli.client import NOT_FOUND, RUNS, SESSIONS, HostClient, RefusedError, at
from paddock.cli.output import CommandError, harmless

SETTLE_SECONDS = 15.0
"""A little longer than a host takes to answer for certain."""
PAUSE = 0.1
HELP = (
    "/who shows who takes part, @NAME at the beginning asks one of them, /invite NAME, /switch NAME, /remove NAME; "
    "/handover answers an agent that wants another one to go on."
)
COMMANDS = {"/invite": "INVITE_AGENT", "/switch": "SWITCH_AGENT", "/remove": "REMOVE_AGENT"}


@dataclass(frozen=True, slots=True)
class Members:
    """The agents of one conversation."""

    connect: Callable[[], HostClient]
    thread_id: str
    colours: bool

    def handles(self, text: str) -> bool:
        return text.split(maxsplit=1)[0] in {*COMMANDS, "/who", "/handover"} if text.startswith("/") else False

    def obey(self, text: str) -> str | None:
        """Do what was typed; the turn to follow, when somebody took over."""
        word, _, name = text.partition(" ")
        if word == "/who":
            self._show(self._session())
        elif word == "/handover":
            return self.answer_handover()
        elif not name.strip():
            raise CommandError(f"Name an agent: {word} NAME")
        else:
            self._change(word, name.strip())
        return None

    def _change(self, word: str, name: str) -> None:
        try:
            self._ask(COMMANDS[word], {"agent_id": name})
        except RefusedError as refused:
            if word != "/switch" or refused.status != NOT_FOUND or name in self._session()["agentsInSession"]:
                raise
            cure = (
                f"{refused} /invite {name} brings it in."
                if name in agent_names(self.connect())
                else self._why_not(name)
            )
            raise CommandError(cure) from refused
        session = self._settled()
        if word == "/invite" and name not in session["agentsInSession"]:
            raise CommandError(self._why_not(name))
        self._show(session)

    def _why_not(self, name: str) -> str:
        """Find out why an agent did not join; the host's own word in the stream is over by now."""
        known = agent_names(self.connect())
        if name in known:
            return f"{harmless(name)} did not join; the host's log says why"
        return f"there is no agent {harmless(name)!r}; known are: {', '.join(known)}"

    def answer_handover(self) -> str | None:
        """Ask about the handover that waits for a word, if one does; the turn of whoever took over."""
        for found in self._handovers(self._session()):
            self._say(f"{found['fromAgentId']} would like {found['agentId']} to go on. {found['reason']}".strip())
            if found["summary"]:
                self._say(found["summary"])
            return self._decide(found, yes=_yes(f"Hand over to {harmless(str(found['agentId']))}? [y/N] "))
        self._say("no handover waits for an answer")
        return None

    def _decide(self, found: Mapping[str, Any], *, yes: bool) -> str | None:
        told = self._ask("HANDOVER_CONFIRM" if yes else "HANDOVER_REJECT", {}, txId=found["txId"])
        return self._turn_of(str(told.get("turnId")), str(found["agentId"])) if yes else None

    def _turn_of(self, turn_id: str, agent_id: str) -> str | None:
        """The turn that was handed over to; it begins when the new agent has joined, and may be over soon."""
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            under_way = any(True for _ in _values(self._session(), "transactions"))
            if self._is_there(turn_id):
                self._say(f"{agent_id} takes over")
                return turn_id
            if not under_way:
                break
            time.sleep(PAUSE)
        self._say("the handover did not happen")
        return None

    def _is_there(self, turn_id: str) -> bool:
        try:
            self.connect().call("GET", at(*RUNS, turn_id))
        except RefusedError as refused:
            if refused.status == NOT_FOUND:
                return False
            raise
        return True

    def _settled(self) -> Mapping[str, Any]:
        end = time.monotonic() + SETTLE_SECONDS
        while _values(session := self._session(), "transactions") and time.monotonic() < end:
            if any(True for _ in self._handovers(session)):
                break
            time.sleep(PAUSE)
        return session

    def _handovers(self, session: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        yield from (found for found in _values(session, "transactions") if found["waiting"] == "CONFIRM")

    def _ask(self, subtype: str, payload: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
        body = {"subtype": subtype, "payload": payload, **more}
        return cast("Mapping[str, Any]", self.connect().call("POST", at(*SESSIONS, self.thread_id, "control"), body))

    def _session(self) -> Mapping[str, Any]:
        return cast("Mapping[str, Any]", self.connect().call("GET", at(*SESSIONS, self.thread_id)))

    def _show(self, session: Mapping[str, Any]) -> None:
        active = session["activeAgentId"]
        names = [f"{name} (active)" if name == active else str(name) for name in session["agentsInSession"]]
        self._say("here are: " + (", ".join(names) or "nobody"))

    def _say(self, text: str) -> None:
        sys.stderr.write(painted(f"[{harmless(text)}]", DIM, on=self.colours) + "\n")
        sys.stderr.flush()


def agent_names(host: HostClient) -> list[str]:
    """Those that a host has."""
    return [str(agent["agentId"]) for agent in host.call("GET", at("agents"))["agents"]]


def _values(session: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return list(cast("Mapping[str, Mapping[str, Any]]", session[name]).values())


def _yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in {"y", "yes"}
    except (EOFError, KeyboardInterrupt):
        return False


class Speakers:
    def __init__(self, last: str = "") -> None:
        self._last = last

    def announce(self, turn: ChatTurn, printer: AnswerPrinter | JsonPrinter) -> None:
        name = turn.agent_name()
        if name and self._last and name != self._last:
            printer.note(f"{name} speaks")
        self._last = name or self._last


def who_spoke(host: HostClient, thread_id: str) -> Speakers:
    """Those of a conversation that goes on: whoever was active there spoke last. The agent may be gone by now."""
    try:
        session = host.call("GET", at(*SESSIONS, thread_id))
    except RefusedError as refused:
        if refused.status != NOT_FOUND:
            raise
        return Speakers()
    return Speakers(str(session["activeAgentId"] or ""))
