"""Controls of a session: every CONTROL of a front end, on record when it is answered.

Also its name and its place among the archived ones. Only whoever it belongs to may. Its deletion is in `keeping.py`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from paddock.host.agents.agents import Agents
from paddock.host.cluster.answering import RequestHandlers
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.cluster.remote_requests import Control
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.session.loop import SessionLoop
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, SessionRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow, SessionDetailsRow, SessionSummary
from paddock.rules.search.thread_search import FoundThreads, ThreadQuery, thread_phrases
from paddock.rules.search.tokens import Phrase
from paddock.rules.session.bus import FROM_PEOPLE, MessageItem, read
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event
from paddock.rules.session.state import SessionContext, session_context
from paddock.rules.values import Value, replace

NEEDS_AGENT = frozenset({"SWITCH_AGENT", "INVITE_AGENT", "REMOVE_AGENT"})
ADDS_WORDS = frozenset({"SESSION_OPEN", "SWITCH_AGENT", "INVITE_AGENT"})
"""What somebody without room for words may not ask for. They may stop, leave, answer and close what is there."""
MAX_TITLE = 200
SETTLE_SECONDS = 2.0
"""For a transaction to be seen to end, beyond what the manager may take."""

WHY: Mapping[str, str] = {
    "session_not_open": "this conversation is not open yet",
    "session_closed": "this conversation is closed; open it again to go on",
    "session_closing": "this conversation is being closed",
    "already_pending": "this was asked for already and is on its way",
    "already_active": "this agent is active already",
    "already_being_added": "this agent is being added already",
    "already_being_removed": "this agent is being removed already",
    "already_open": "this conversation is open already",
    "already_being_opened": "this conversation is being opened already",
    "nothing_pending": "no handover waits for an answer",
}
"""Why nothing followed from a control, for a person."""
HARMLESS = frozenset({"already_active", "already_open", "already_pending", "already_being_added"})
"""What was wanted is so, or on its way: not an error."""


class _Records(ConversationRecords, SessionRecords, Protocol):
    """The ports of the store that are used here."""


class ControlAnswer(Value, frozen=True):
    """Result of a control: its name, and the messages it caused."""

    tx_id: str
    said: tuple[str, ...]
    note: str | None = None
    turn_id: str | None = None
    """The turn that begins when a handover is confirmed and the new agent has joined."""


class SessionSnapshot(Value, frozen=True):
    """A conversation at one moment, and two places in its log."""

    summary: SessionSummary
    context: SessionContext
    head: int
    """Where a reader starts that misses nothing from this moment on."""
    since: int
    """Where a reader starts that also wants all that was said in the turns that have not ended."""


class Controls:
    def __init__(
        self,
        *,
        sessions: Sessions,
        agents: Agents,
        records: _Records,
        clock: Callable[[], float],
        forwarding: Forwarding | None = None,
    ) -> None:
        self._forwarding = forwarding or Forwarding()
        self._sessions = sessions
        self._agents = agents
        self._records = records
        self._clock = clock

    @property
    def remote_handlers(self) -> RequestHandlers:
        """How this host does it when another one asks."""
        return {Control: self._control}

    # --- controls ----------------------------------------------------------------------------------------------------

    async def open(self, principal: Principal, thread_id: str) -> ControlAnswer:
        """Open a conversation, or open a closed one again."""
        return await self.control(principal, thread_id, "SESSION_OPEN", {})

    async def control(
        self,
        principal: Principal,
        thread_id: str,
        subtype: str,
        payload: Mapping[str, Any],
        *,
        tx_id: str | None = None,
        turn_id: str | None = None,
    ) -> ControlAnswer:
        """One CONTROL of a front end; returns when what follows from it at once is on record. Raises HostError."""
        _check(subtype, payload)
        wish = Control(principal, thread_id, subtype, payload, tx_id, turn_id)
        return await self._forwarding.here_or_at_owner(partial(self._control, wish), wish, ControlAnswer)

    async def _control(self, wish: Control) -> ControlAnswer:
        principal, thread_id, subtype, payload = wish.principal, wish.thread_id, wish.subtype, wish.payload
        session = await self._sessions.open(thread_id)
        if (subtype != "SESSION_OPEN" or session.exists) and not _is_of(session, principal):
            raise no_such_thread()
        if subtype in ADDS_WORDS:
            await self._sessions.words.check(principal)
        answers = subtype.startswith("HANDOVER_")
        item = MessageItem(
            Event.CONTROL,
            subtype,
            f"user:{principal.user_id}",
            turn_id=new_id() if answers else wish.turn_id,
            tx_id=wish.tx_id if answers else new_id(),
            payload=dict(payload),
            time=self._clock(),
        )
        message = read(item, self._agents.for_session(principal.workspace_id))
        assert message is not None
        session = await self._sessions.open(thread_id)
        decision = await session.record(message, principal=principal)
        answer = _answer(item.tx_id or _tx_of(decision), decision)
        return replace(answer, turn_id=item.turn_id) if subtype == "HANDOVER_CONFIRM" else answer

    # --- looking -----------------------------------------------------------------------------------------------------

    async def find(self, principal: Principal, thread_id: str) -> SessionSummary:
        """The conversation, if it is the caller's; a foreign one looks like one that does not exist."""
        summary = await self._records.session_summary(thread_id)
        if summary is None or (summary.workspace_id, summary.user_id) != (principal.workspace_id, principal.user_id):
            raise no_such_thread()
        return summary

    async def list(
        self, principal: Principal, *, before: int | None, archived: bool | None, limit: int
    ) -> Sequence[SessionSummary]:
        """The caller's conversations, the one opened last first."""
        return await self._records.sessions_of(
            principal.workspace_id, principal.user_id, before=before, archived=archived, limit=limit
        )

    async def search(
        self, principal: Principal, query: str, *, before: int | None, archived: bool | None, limit: int
    ) -> tuple[Sequence[Phrase], FoundThreads]:
        """The caller's conversations that are called so or in which it was said, the one opened last first."""
        phrases = thread_phrases(query)
        asked = ThreadQuery(principal.workspace_id, principal.user_id, phrases, before, archived, limit)
        return phrases, await self._records.find_sessions(asked)

    async def head(self, thread_id: str) -> int:
        """The number of the last fact: a reader that starts there misses nothing that comes."""
        return (await self._sessions.view(thread_id)).head

    async def settled(self, thread_id: str, tx_id: str) -> None:
        """Wait until a transaction is over; every one is, in its time."""
        async with asyncio.timeout(self._sessions.timeouts.manager + SETTLE_SECONDS):
            while (await self._sessions.view(thread_id)).state.transaction(tx_id) is not None:
                follower = self._sessions.tails.follow(thread_id, None, await self.head(thread_id))
                try:
                    if (await self._sessions.view(thread_id)).state.transaction(tx_id) is not None:
                        await follower.next(1.0)
                finally:
                    follower.close()

    async def snapshot(self, principal: Principal, thread_id: str) -> SessionSnapshot:
        summary = await self.find(principal, thread_id)
        session = await self._sessions.view(thread_id)
        context, head = session_context(session.state), session.head
        return SessionSnapshot(summary, context, head, await self._since(context, head))

    async def _since(self, context: SessionContext, head: int) -> int:
        """Where a reader starts that wants all that was said in the turns that have not ended."""
        runs = [await self._records.run(turn_id) for turn_id in context.inflight]
        return min((run.first_seq - 1 for run in runs if run is not None), default=head)

    # --- what people set ---------------------------------------------------------------------------------------------

    async def change(
        self, principal: Principal, thread_id: str, *, title: str | None, archived: bool | None
    ) -> SessionSummary:
        await self.find(principal, thread_id)
        if title is not None and len(title) > MAX_TITLE:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"a title may have at most {MAX_TITLE} characters")
        row = SessionDetailsRow(thread_id, title=title, archived=archived)
        await self._records.write([row, self._audit(principal, "session.change", thread_id)])
        return await self.find(principal, thread_id)

    def _audit(self, principal: Principal, action: str, thread_id: str) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=principal.workspace_id,
            actor=f"user:{principal.user_id}",
            action=action,
            resource=thread_id,
            scope=thread_id,
            result="allowed",
            reason="its owner",
            session_id=thread_id,
        )


def _is_of(session: SessionLoop, principal: Principal) -> bool:
    owner = session.owner
    return session.exists and (owner.workspace_id, owner.user_id) == (principal.workspace_id, principal.user_id)


def _check(subtype: str, payload: Mapping[str, Any]) -> None:
    if subtype not in FROM_PEOPLE:
        known = ", ".join(sorted(FROM_PEOPLE))
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"there is no control {subtype[:64]!r}; known are: {known}")
    agent_id = payload.get("agent_id")
    if subtype in NEEDS_AGENT and (not isinstance(agent_id, str) or not agent_id):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{subtype} needs payload.agent_id, the name of an agent")
    if not isinstance(payload.get("activate", False), bool):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "payload.activate must be true or false")


def _tx_of(decision: Decision) -> str:
    return next((fact.tx_id for fact in decision.facts if fact.tx_id), "")


def _answer(tx_id: str, decision: Decision) -> ControlAnswer:
    """A control that was refused at once is an error for whoever sent it; everybody else sees it in the stream."""
    for fact in decision.facts:
        if fact.kind.startswith("ERROR:") and fact.turn_id is None:
            code = ErrorCode.NOT_FOUND if fact.payload["code"] == "agent_not_in_session" else ErrorCode.CONFLICT
            raise HostError(code, str(fact.payload["message"]))
    if not decision.facts and decision.notes:
        reason = decision.notes[0].reason
        if reason not in HARMLESS:
            closed = reason in {"session_closed", "session_closing"}
            code = ErrorCode.SESSION_CLOSED if closed else ErrorCode.CONFLICT
            raise HostError(code, WHY.get(reason, reason))
        return ControlAnswer(tx_id, (), reason)
    return ControlAnswer(tx_id, tuple(fact.kind for fact in decision.facts))
