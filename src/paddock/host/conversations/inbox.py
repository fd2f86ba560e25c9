"""The way in for messages of users: accepted means on record, and the same request gets the same answer.

Also the names of threads. Inside, a thread is a UUID; clients and platforms call it as they like. A name leads to the
thread on record under it. The id of a new one is made with the cluster's secret, so that nobody who knows the name can
take the id before its owner does.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol
from uuid import UUID

from paddock.host.agents.agents import Agents
from paddock.host.cluster.forwarding import Forwarding, RequestHandlers
from paddock.host.cluster.remote_requests import AcceptRun, CancelTheRun, Done
from paddock.host.ids import id_of, keyed_id, new_id
from paddock.host.outage import Outage
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.people.users import Users
from paddock.host.runs.runs import Runs
from paddock.host.session.arrivals import Accepted, Firing, NewRun, same_answer
from paddock.host.session.loop import SessionLoop
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, PeopleRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import is_salted
from paddock.rules.log.payloads import CONTINUED, MESSAGE, is_message
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow
from paddock.rules.run.request_bodies import is_uuid
from paddock.rules.session.messages import CancelRequested
from paddock.rules.session.routing import SIGNS, leading_mention
from paddock.rules.values import replace

__all__ = ["NAMES_PURPOSE", "Accepted", "Complete", "Inbox", "NewRun", "ThreadNames", "room_name"]

Complete = Callable[[NewRun, bool], Awaitable[NewRun]]
"""Fills in what has to be looked up in the conversation, which may exist. Called once for each run."""


def _mentioning(new: NewRun, agents: Agents) -> NewRun:
    if new.agent_id is not None or not new.text.startswith(SIGNS):
        return new
    named = leading_mention(new.text, agents.for_session(new.principal.workspace_id).while_busy)
    return replace(new, agent_id=named) if named else new


def _addressed(new: NewRun, agents: Agents) -> NewRun:
    """The run with its agent: for a message the one that it names, or none, and then the session decides; for an event
    the one agent that answers it. A job's own tick needs no agent that listens to it: the job names one."""
    event_type = MESSAGE if new.event is None or new.event.event_type == CONTINUED else new.event.event_type
    if isinstance(new.cause, Firing) or (new.agent_id is None and is_message(event_type)):
        return new
    answering = agents.answering(event_type, new.principal.workspace_id, new.agent_id)
    return new if answering == new.agent_id else replace(new, agent_id=answering)


class _Records(ConversationRecords, PeopleRecords, Protocol): ...


@dataclass(kw_only=True, eq=False)
class Inbox:
    """Accepts new runs and cancels."""

    sessions: Sessions
    runs: Runs
    agents: Agents
    records: _Records
    clock: Callable[[], float]
    users: Users
    forwarding: Forwarding = field(default_factory=Forwarding)

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {AcceptRun: lambda request: self._accept(request.new), CancelTheRun: self._cancel_for}

    @property
    def has_room(self) -> bool:
        """True when a run would be admitted without waiting."""
        return not self.runs.live.admission.full

    @property
    def closed(self) -> bool:
        """True while this host is being stopped."""
        return self.runs.live.admission.closed

    @property
    def outage(self) -> Outage:
        return self.sessions.outage

    async def accept(self, new: NewRun, complete: Complete | None = None) -> Accepted:
        """Take a user's message; returns when it is on record. Raises HostError."""
        return await self.forwarding.here_or_at_owner(
            partial(self._accept, new, complete), partial(self._sent, new, complete), Accepted
        )

    async def _sent(self, new: NewRun, complete: Complete | None) -> AcceptRun:
        """Complete a request here with what only this door knows, before it is sent to another host."""
        if complete is None or await self.records.inbox(new.session_id, new.client_run_id) is not None:
            return AcceptRun(new)
        return AcceptRun(await complete(new, (await self.sessions.view(new.session_id)).exists))

    async def _accept(self, new: NewRun, complete: Complete | None = None) -> Accepted:
        agents, workspace = self.agents, new.principal.workspace_id
        new = _mentioning(new, agents)
        if new.agent_id is not None and not agents.known(new.agent_id, workspace):
            known = ", ".join(binding.agent_id for binding in agents.list(workspace))
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {new.agent_id!r}; known are: {known}")
        try:
            new = _addressed(await self._known_by_profile(new), agents)
            session = await self.sessions.open(new.session_id)
            if session.exists and (known := await self._known(session, new)) is not None:
                return known
            await self.sessions.services.words.check(new.principal)
            if complete is not None:
                new = _mentioning(await complete(new, session.exists), agents)
            admission = self.runs.live.admission
            if not admission.has_room(workspace):
                await admission.enter(workspace)
            admission.entered(workspace)  # counted until the run itself is
            try:
                agent_id = new.agent_id or session.state.active_agent_id or agents.default_agent_id
                await self.runs.authority.prepare(agent_id, workspace, start=False)
                session = await self.sessions.open(new.session_id)
                run_id = new_id()
                return await session.submit(new, run_id, run_id.replace("-", ""))
            finally:
                admission.left(workspace)
        except HostError as error:
            await self._note(new.principal, "run.accept", new.session_id, error)
            raise

    async def _known_by_profile(self, new: NewRun) -> NewRun:
        """Fill in the language and the time zone that the user set, unless the door knows better."""
        profile = await self.users.profile(new.principal)
        if profile.locale is None and profile.time_zone is None:
            return new
        return replace(new, locale=new.locale or profile.locale, time_zone=new.time_zone or profile.time_zone)

    async def _known(self, session: SessionLoop, new: NewRun) -> Accepted | None:
        if not new.principal.owns(session.owner):
            raise no_such_thread()
        row = await self.records.inbox(session.session_id, new.client_run_id)
        run = await self.records.run(row.run_id) if row is not None else None
        if row is None or run is None:
            return None
        given = Accepted(row.run_id, session.session_id, new.client_run_id, row.opened_session, run.first_seq)
        answer = same_answer(new, given, is_same=is_salted(row.body_hash, new.body_hash))
        if isinstance(answer, HostError):
            raise answer
        return answer

    async def cancel(self, run: RunRow, principal: Principal) -> RunRow:
        """Record the wish to stop a run, once; returns the run as it is then."""
        if run.status in TERMINAL_STATUSES:
            return run
        wish = CancelTheRun(run.run_id, principal)
        await self.forwarding.here_or_at_owner(partial(self._cancel, run, principal), wish, Done)
        return await self.records.run(run.run_id) or run

    async def _cancel(self, run: RunRow, principal: Principal, reason: str = "user") -> Done:
        session = await self.sessions.open(run.session_id)
        await session.record(CancelRequested(run.run_id, principal.user_id, reason, at=self.clock()))
        return Done()

    async def _cancel_for(self, wish: CancelTheRun) -> Done:
        """Cancel for another host, which has checked whose run it is."""
        run = await self.records.run(wish.run_id)
        return Done() if run is None else await self._cancel(run, wish.principal, wish.reason)

    async def cancel_by_id(self, run_id: str, principal: Principal, reason: str) -> None:
        """Cancel a run by its id alone; one that has ended stays as it is."""
        await self.outage.outlast(partial(self._cancel_by_id, run_id, principal, reason))

    async def _cancel_by_id(self, run_id: str, principal: Principal, reason: str) -> None:
        run = await self.records.run(run_id)
        if run is None or run.status in TERMINAL_STATUSES:
            return
        wish = CancelTheRun(run_id, principal, reason)
        await self.forwarding.here_or_at_owner(partial(self._cancel, run, principal, reason), wish, Done)

    async def _note(self, principal: Principal, action: str, session_id: str, error: HostError) -> None:
        if error.code is ErrorCode.UNAVAILABLE:
            return
        row = principal.audit(action, session_id, at=self.clock(), scope=session_id, error=error)
        await self.records.write([row])


NAMES_PURPOSE = "names"
"""Purpose of the key that is derived from the cluster's secret."""
_NAMES = UUID("6f1de2a1-7c34-5f0b-9a55-3d8e6b7f0c21")
_ROOMS = UUID("2c1a7d0e-58b5-5b0e-8a3c-9f4f1d6e7b52")
"""Never change them: threads whose names are not on record have ids that were made with these."""


class ThreadNames:
    def __init__(self, records: PeopleRecords, key: bytes) -> None:
        self._records = records
        self._key = key

    async def find(self, principal: Principal, name: str) -> str:
        """The thread of a name: a UUID is itself, any other name is its user's own and always the same thread.

        A new name gets the same id for all who ask at the same moment. The name of a deleted conversation can be used
        again, for a new one.
        """
        if is_uuid(name):
            return name.lower()
        whole = f"{principal.workspace_id}\0{principal.user_id}\0{name}"
        return await self._named(principal, name, whole, id_of(whole, _NAMES))

    async def find_room(self, principal: Principal, room: str) -> str:
        """The thread of a platform's room; `room` is the name under which it is on record (`room_name`)."""
        old = id_of(f"{principal.workspace_id}\0{room}", _ROOMS)
        return await self._named(principal, room, f"{principal.workspace_id}\0{principal.user_id}\0{room}", old)

    async def _named(self, principal: Principal, name: str, whole: str, old: str) -> str:
        """`old` is the id that an earlier version gave it; used if its owner has a thread of that id."""
        first = keyed_id(whole, self._key)
        found = await self._records.thread_named(principal.workspace_id, principal.user_id, name, first, old)
        return found or await self._unused(whole)

    async def _unused(self, whole: str) -> str:
        before = 1
        while await self._records.is_buried(session_id := keyed_id(f"{whole}\0{before}", self._key)):
            before += 1
        return session_id


def room_name(platform: str, place: str) -> str:
    """Stored name of a platform's room, among the names of the platform's own user."""
    return f"{platform}\0{place}"
