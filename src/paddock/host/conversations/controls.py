"""Controls of a session: every CONTROL of a front end, on record when it is answered.

Also the session's title and whether it is archived. Only its owner may change them. `keeping/deletion.py` deletes it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from paddock.host.agents.agents import Agents
from paddock.host.cluster.forwarding import Forwarding, RequestHandlers
from paddock.host.cluster.remote_requests import Control
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, SessionRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import SessionDetailsRow, SessionSummary
from paddock.rules.search.queries import FoundThreads, ThreadQuery, thread_phrases
from paddock.rules.search.tokens import Phrase
from paddock.rules.session.bus import FROM_PEOPLE, MessageItem, read
from paddock.rules.session.decision import Decision
from paddock.rules.session.facts import Event
from paddock.rules.session.state import SessionContext, session_context
from paddock.rules.values import Value, replace

NEEDS_AGENT = frozenset({"SWITCH_AGENT", "INVITE_AGENT", "REMOVE_AGENT"})
ADDS_WORDS = frozenset({"SESSION_OPEN", "SWITCH_AGENT", "INVITE_AGENT"})
"""Controls refused to users who keep as many words as they may. They may stop, leave, answer and close."""
MAX_TITLE = 200
SETTLE_SECONDS = 2.0
"""Seconds for a transaction to end, beyond those of the manager."""

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
"""Sentences for people, by the reason why a control had no effect."""
HARMLESS = frozenset({"already_active", "already_open", "already_pending", "already_being_added"})
"""Reasons that are no errors: the wish is fulfilled, or about to be."""


class _Records(ConversationRecords, SessionRecords, Protocol): ...


class ControlAnswer(Value, frozen=True):
    """Result of a control: its name, and the messages it caused."""

    tx_id: str
    said: tuple[str, ...]
    note: str | None = None
    run_id: str | None = None
    """The turn that begins when a handover is confirmed and the new agent has joined."""


class SessionSnapshot(Value, frozen=True):
    """A conversation at one moment, with two positions in its log."""

    summary: SessionSummary
    context: SessionContext
    head: int
    """A reader that starts here misses nothing from this moment on."""
    since: int
    """A reader that starts here also gets all output of turns that have not ended."""


@dataclass(kw_only=True, eq=False)
class Controls:
    sessions: Sessions
    agents: Agents
    records: _Records
    clock: Callable[[], float]
    forwarding: Forwarding = field(default_factory=Forwarding)

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {Control: self._control}

    # --- controls ----------------------------------------------------------------------------------------------------

    async def open(self, principal: Principal, session_id: str) -> ControlAnswer:
        """Open a conversation, or open a closed one again."""
        return await self.control(principal, session_id, "SESSION_OPEN", {})

    async def control(
        self,
        principal: Principal,
        session_id: str,
        subtype: str,
        payload: Mapping[str, Any],
        *,
        tx_id: str | None = None,
        run_id: str | None = None,
    ) -> ControlAnswer:
        """Perform one CONTROL of a front end; returns when its direct effects are on record. Raises HostError."""
        _check(subtype, payload)
        wish = Control(principal, session_id, subtype, payload, tx_id, run_id)
        return await self.forwarding.here_or_at_owner(partial(self._control, wish), wish, ControlAnswer)

    async def _control(self, wish: Control) -> ControlAnswer:
        principal, session_id, subtype, payload = wish.principal, wish.session_id, wish.subtype, wish.payload
        session = await self.sessions.open(session_id)
        if not (principal.owns(session.owner) if session.exists else subtype == "SESSION_OPEN"):
            raise no_such_thread()
        if subtype in ADDS_WORDS:
            await self.sessions.services.words.check(principal)
        answers = subtype.startswith("HANDOVER_")
        item = MessageItem(
            Event.CONTROL,
            subtype,
            f"user:{principal.user_id}",
            turn_id=new_id() if answers else wish.run_id,
            tx_id=wish.tx_id if answers else new_id(),
            payload=dict(payload),
            time=self.clock(),
        )
        message = read(item, self.agents.for_session(principal.workspace_id))
        assert message is not None
        session = await self.sessions.open(session_id)
        decision = await session.record(message, principal=principal)
        answer = _answer(item.tx_id or next((fact.tx_id for fact in decision.facts if fact.tx_id), ""), decision)
        return replace(answer, run_id=item.turn_id) if subtype == "HANDOVER_CONFIRM" else answer

    # --- looking -----------------------------------------------------------------------------------------------------

    async def find(self, principal: Principal, session_id: str) -> SessionSummary:
        """Return the caller's conversation; a foreign one looks like one that does not exist."""
        summary = await self.records.session_summary(session_id)
        if summary is None or not principal.owns(summary):
            raise no_such_thread()
        return summary

    async def list(
        self, principal: Principal, *, before: int | None, archived: bool | None, limit: int
    ) -> Sequence[SessionSummary]:
        return await self.records.sessions_of(
            principal.workspace_id, principal.user_id, before=before, archived=archived, limit=limit
        )

    async def search(
        self, principal: Principal, query: str, *, before: int | None, archived: bool | None, limit: int
    ) -> tuple[Sequence[Phrase], FoundThreads]:
        """Find the caller's conversations by title and content, the one opened last first."""
        phrases = thread_phrases(query)
        asked = ThreadQuery(principal.workspace_id, principal.user_id, phrases, before, archived, limit)
        return phrases, await self.records.find_sessions(asked)

    async def head(self, session_id: str) -> int:
        """Return the number of the last fact: a reader that starts there misses nothing new."""
        return (await self.sessions.view(session_id)).head

    async def settled(self, session_id: str, tx_id: str) -> None:
        async with asyncio.timeout(self.sessions.timeouts.manager + SETTLE_SECONDS):
            while (await self.sessions.view(session_id)).state.transaction(tx_id) is not None:
                follower = self.sessions.tails.follow(session_id, None, await self.head(session_id))
                try:
                    if (await self.sessions.view(session_id)).state.transaction(tx_id) is not None:
                        await follower.next(1.0)
                finally:
                    follower.close()

    async def snapshot(self, principal: Principal, session_id: str) -> SessionSnapshot:
        summary = await self.find(principal, session_id)
        session = await self.sessions.view(session_id)
        context, head = session_context(session.state), session.head
        return SessionSnapshot(summary, context, head, await self._since(context, head))

    async def _since(self, context: SessionContext, head: int) -> int:
        """Return the position from which a reader gets all output of turns that have not ended."""
        runs = [await self.records.run(run_id) for run_id in context.inflight]
        return min((run.first_seq - 1 for run in runs if run is not None), default=head)

    # --- what people set ---------------------------------------------------------------------------------------------

    async def change(
        self, principal: Principal, session_id: str, *, title: str | None, archived: bool | None
    ) -> SessionSummary:
        await self.find(principal, session_id)
        if title is not None and len(title) > MAX_TITLE:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"a title may have at most {MAX_TITLE} characters")
        row = SessionDetailsRow(session_id, title=title, archived=archived)
        audit = principal.audit(
            "session.change",
            session_id,
            at=self.clock(),
            scope=session_id,
            reason="its owner",
            session_id=session_id,
        )
        await self.records.write([row, audit])
        return await self.find(principal, session_id)


def _check(subtype: str, payload: Mapping[str, Any]) -> None:
    if subtype not in FROM_PEOPLE:
        known = ", ".join(sorted(FROM_PEOPLE))
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"there is no control {subtype[:64]!r}; known are: {known}")
    agent_id = payload.get("agent_id")
    if subtype in NEEDS_AGENT and (not isinstance(agent_id, str) or not agent_id):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{subtype} needs payload.agent_id, the name of an agent")
    if not isinstance(payload.get("activate", False), bool):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "payload.activate must be true or false")


def _answer(tx_id: str, decision: Decision) -> ControlAnswer:
    """Return the answer. A control that was refused at once is an error for its sender; others see it in the stream."""
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
