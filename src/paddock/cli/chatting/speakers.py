"""Who speaks in a conversation at the terminal, said whenever that changes."""

from urllib.parse import quote

from paddock.cli.chatting.answers import AnswerPrinter, JsonPrinter
from paddock.cli.chatting.members import NOT_FOUND, SESSIONS
from paddock.cli.chatting.turns import Turn
from paddock.cli.client import HostClient, RefusedError


class Speakers:
    def __init__(self, last: str = "") -> None:
        self._last = last

    def announce(self, turn: Turn, printer: AnswerPrinter | JsonPrinter) -> None:
        name = turn.agent_name()
        if name and self._last and name != self._last:
            printer.note(f"{name} speaks")
        self._last = name or self._last


def who_spoke(host: HostClient, thread_id: str) -> Speakers:
    """Those of a conversation that goes on: whoever was active there spoke last. The agent may be gone by now."""
    try:
        session = host.call("GET", f"{SESSIONS}/{quote(thread_id, safe='')}")
    except RefusedError as refused:
        if refused.status != NOT_FOUND:
            raise
        return Speakers()
    return Speakers(str(session["activeAgentId"] or ""))
