"""Compares a client's copy of a conversation with the stored one; `rules/conversations/client_history.py` decides."""

from collections.abc import Mapping, Sequence
from typing import Any

from paddock.ports import ConversationRecords
from paddock.rules.conversations.client_history import (
    ClientMessage,
    Merged,
    Supplied,
    Unseen,
    answer_to,
    call_id_of,
    keeping,
    merge,
    names_in,
    shows,
)
from paddock.rules.log.chain import SUPPLIED, StoredFact
from paddock.rules.log.payloads import as_object
from paddock.rules.rows.rows import WHOLE, TranscriptRow, View
from paddock.rules.run.results import Interrupt, interrupts_in, pending_in

FIRST_LOOK = 32
"""Items that are read to find the client's position; nearly always it has the newest."""
PAGE = 500
MAX_ITEMS = 10_000
LOOK_BACK = 20
"""Runs whose open calls can still be answered."""
TELLS_ALL = "ag-ui"
"""The door whose clients send the whole conversation every time."""
FINAL = "AGENT_OUTPUT:FINAL"
BROUGHT_ALONG = f"EVENT:{SUPPLIED}"
CALLS = frozenset({"tool_call", "tool_result"})
INPUTS = ("USER_INPUT", "USER_INPUT:MENTION")


class ClientHistory:
    def __init__(self, records: ConversationRecords) -> None:
        self._records = records

    async def merged(
        self, session_id: str, sent: Sequence[ClientMessage], unseen: Unseen | None = None, *, tells_all: bool = True
    ) -> Merged:
        """Find the new messages in a client's copy. `unseen` is what the client left out. A client that does not always
        send everything (`tells_all`) and shows none of our items sends only new messages."""
        merged = await self._looked_up(session_id, sent, only_new=unseen == "keep" or not tells_all)
        if unseen is None and merged.shows_nothing and not tells_all:
            unseen = "keep"
        match unseen:
            case "leave":
                return merged
            case "keep":
                return keeping(merged, max(merged.unseen, default=None))
            case _:
                return keeping(merged, await self._from_elsewhere(session_id, merged.unseen))

    async def _from_elsewhere(self, session_id: str, questions: Sequence[int]) -> int | None:
        """Return the newest of these questions that came from another kind of client."""
        for seq in questions:
            if not _told_here(await self._records.fact(session_id, seq)):
                return seq
        return None

    async def _looked_up(self, session_id: str, sent: Sequence[ClientMessage], *, only_new: bool) -> Merged:
        """Read back to the newest item that the client shows; with `only_new` a lone new message is not searched
        for."""
        names = names_in(sent)
        known = [*await self._records.transcript(session_id, limit=FIRST_LOOK)]
        more = len(known) == FIRST_LOOK and not (only_new and await self._is_new_alone(session_id, sent, names))
        while more and len(known) < MAX_ITEMS and not shows(names, known):
            page = await self._records.transcript(session_id, before=known[-1].seq, limit=PAGE)
            known += page
            more = len(page) == PAGE
        return merge(sent, known)

    async def _is_new_alone(self, session_id: str, sent: Sequence[ClientMessage], names: Mapping[str, int]) -> bool:
        if len(sent) > 1:
            return False
        return not shows(names, await self._records.transcript(session_id, limit=1, newest_first=False))

    async def answers(self, session_id: str, sent: Sequence[ClientMessage]) -> list[Supplied]:
        """Return the client's answers to open calls; a call is answered once."""
        given = {message.tool_call_id: message for message in sent if message.role == "tool"}
        if not given:
            return []
        waiting = await self._waiting(session_id)
        return [answer_to(message, waiting[name]) for name, message in given.items() if name in waiting]

    async def interrupts(self, session_id: str, view: View = WHOLE) -> tuple[list[Interrupt], Mapping[str, Any]]:
        """Return the open questions, and the end of the run that asked them. Anything later closes them."""
        last = await self.last_end(session_id, view)
        if last is None:
            return [], {}
        data = data_of(last)
        return interrupts_in(data), data

    async def last_end(self, session_id: str, view: View = WHOLE) -> StoredFact | None:
        """Return the end of the last run, if nothing followed it; with a view, in one of the platform's threads."""
        last = await self._records.events(session_id, kinds=(FINAL, *INPUTS), limit=1, view=view)
        return last[0] if last and last[0].kind == FINAL else None

    async def _waiting(self, session_id: str) -> dict[str, str]:
        ends = await self._records.events(session_id, kinds=(FINAL,), limit=LOOK_BACK)
        pending = {name for end in ends for name in pending_in(data_of(end))}
        if not pending:
            return {}
        rows = await self._records.transcript(session_id, limit=PAGE)
        newest = {(row.item_type, call_id_of(row)): row for row in reversed(rows) if row.item_type in CALLS}
        return {name: newest["tool_call", name].content for name in pending if _is_open(newest, name)}


def _told_here(fact: StoredFact | None) -> bool:
    """Tell whether a question came from a client that sends the whole history, or a part of it."""
    if fact is None:
        return False
    return fact.kind == BROUGHT_ALONG or as_object(as_object(fact.read_payload()).get("run")).get("door") == TELLS_ALL


def data_of(end: StoredFact) -> Mapping[str, Any]:
    return as_object(as_object(end.read_payload()).get("data"))


def _is_open(newest: Mapping[tuple[str, str], TranscriptRow], name: str) -> bool:
    """Tell whether a call is open. Runners may reuse a name: an answer from before the call does not count."""
    call, answer = newest.get(("tool_call", name)), newest.get(("tool_result", name))
    return call is not None and (answer is None or answer.seq < call.seq)
