"""Handing what `dev` said to a user: a host begins without keys, and whoever was `dev` is somebody once there is one.

A conversation is handed over in one commit, fenced like every append, by the host that has it. One in which something
goes on stays; asked again, what is left follows.
"""

import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Protocol

from paddock.host.cluster.answering import RequestHandlers
from paddock.host.cluster.forwarding import Forwarding
from paddock.host.cluster.remote_requests import Moved, MoveThread
from paddock.host.people.principals import DEV, Principal
from paddock.host.session.sessions import Sessions
from paddock.host.streams.open_streams import OpenStreams
from paddock.ports import AutomationRecords, SessionRecords
from paddock.rules.access.permissions import Grant, RunScope, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow, SessionRow, SessionSummary
from paddock.rules.rows.taking_over import OwnershipMoved, SessionMoved, SessionSettled, StateMoved
from paddock.rules.values import Value

PART = 100
AT_ONCE_SECONDS = 5.0
"""So long one request hands over; what is left then follows with the next."""
MAX_JOBS = 100
HANDED_OVER = "this conversation was handed over to another user"
ONLY_OPERATORS = (
    "only whoever runs the host hands over what dev said: on its own machine before there is a key, or with "
    "`paddock keys take-over`"
)


class _Records(AutomationRecords, SessionRecords, Protocol):
    """The ports of the store that are used here."""


class Waiting(Value, frozen=True):
    """Counts of what belongs to `dev`."""

    conversations: int
    automations: int


class Taken(Value, frozen=True):
    """Counts of what one request moved, and what is still `dev`'s."""

    conversations: int
    busy: int
    """Of those that are left: in which something went on when they were to be handed over."""
    left: int


class TakingOver:
    def __init__(
        self,
        store: _Records,
        sessions: Sessions,
        *,
        forwarding: Forwarding,
        streams: OpenStreams,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._forwarding = forwarding
        self._streams = streams
        self._clock = clock

    @property
    def remote_handlers(self) -> RequestHandlers:
        """How this host does it when another one asks."""
        return {MoveThread: self._move}

    async def waiting(self, by: Principal) -> Waiting:
        _check(by)
        jobs = await self._store.automations(DEV.workspace_id, DEV.user_id, limit=MAX_JOBS)
        return Waiting(await self._store.count_sessions(DEV.workspace_id, DEV.user_id), len(jobs))

    async def take_over(self, by: Principal, user: str) -> Taken:
        """Hand over as much as there is time for. Raises HostError."""
        _check(by)
        if user == DEV.user_id:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"user must be another than {DEV.user_id}, whose it is already")
        taken = busy = 0
        end = time.monotonic() + AT_ONCE_SECONDS
        async for session in self._of_dev():
            if await self._hand_over(by, session, user):
                taken += 1
            else:
                busy += 1
            if time.monotonic() >= end:
                break
        return Taken(taken, busy, await self._finished(by, user, any_taken=taken > 0))

    async def _of_dev(self) -> AsyncIterator[SessionSummary]:
        """The conversations of `dev`, the one opened last first."""
        before: int | None = None
        while page := await self._store.sessions_of(DEV.workspace_id, DEV.user_id, before=before, limit=PART):
            for session in page:
                yield session
            before = page[-1].number

    async def _finished(self, by: Principal, user: str, *, any_taken: bool) -> int:
        """How many conversations are left; when none is, what is beside them follows."""
        if any_taken:
            self._streams.end_of((DEV.workspace_id, DEV.user_id), HANDED_OVER)
        left = await self._store.count_sessions(DEV.workspace_id, DEV.user_id)
        if not left:
            rest = OwnershipMoved(DEV.workspace_id, DEV.user_id, user)
            await self._store.write([rest, self._audit(by, "user.take_over", user, DEV.workspace_id, user)])
        return left

    async def _hand_over(self, by: Principal, session: SessionSummary, user: str) -> bool:
        thread_id = session.session_id
        row = SessionRow(thread_id, session.workspace_id, session.user_id, session.created_at)
        request = MoveThread(row, user, self._audit(by, "session.take_over", thread_id, thread_id, user))
        try:
            return (await self._forwarding.here_or_at_owner(partial(self._move, request), request, Moved)).it_is
        except HostError as error:
            if error.code is ErrorCode.UNAVAILABLE or error.code is ErrorCode.NOT_FOUND:
                return False  # its host is busy or of another release, or it was deleted a moment ago
            raise

    async def _move(self, request: MoveThread) -> Moved:
        session, user = request.session, request.user
        thread_id = session.session_id
        known = await self._store.agents_of_session(thread_id)
        epoch = await self._sessions.let_go(thread_id)
        if epoch is None:
            return Moved(False)
        moved = SessionMoved(thread_id, session.workspace_id, session.user_id, user, epoch)
        state = [_state_of_actor(session, user, agent_id, runner_id) for agent_id, runner_id in known]
        try:
            await self._store.write([moved, SessionSettled(thread_id), *state, request.audit])
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            return Moved(False)  # somebody went on with it meanwhile
        self._sessions.words.count_again(session.workspace_id, session.user_id, user)
        return Moved(True)

    def _audit(self, by: Principal, action: str, resource: str, scope: str, user: str) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=DEV.workspace_id,
            actor=f"user:{by.user_id}",
            action=action,
            resource=resource,
            scope=scope,
            result="allowed",
            reason=f"from {DEV.user_id} to {user}, by whoever runs the host",
            session_id=resource if action == "session.take_over" else None,
        )


def _check(by: Principal) -> None:
    if not by.operator:
        raise HostError(ErrorCode.UNAUTHORIZED, ONLY_OPERATORS)


def _state_of_actor(session: SessionRow, user: str, agent_id: str, runner_id: str) -> StateMoved:
    """Move an agent's memory about the person who talks to it."""

    def key(of: str) -> str:
        scope = RunScope("", session.workspace_id, of, agent_id, session.session_id)
        return state_key("actor", Grant(scope, runner_id, frozenset(), frozenset(), frozenset(), 0.0)) or ""

    return StateMoved(key(session.user_id), key(user))
