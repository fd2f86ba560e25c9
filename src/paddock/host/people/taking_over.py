"""Moves what belongs to `dev` to a user. A host without keys knows everybody as `dev`; once there are keys, the
conversations of that time get their owner here.

A conversation moves in one commit, fenced like every append, at the host that owns it. Busy conversations stay; they
move when the request is repeated.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Protocol

from paddock.host.cluster.forwarding import Forwarding, RequestHandlers
from paddock.host.cluster.remote_requests import Done, MoveThread
from paddock.host.conflicts import written_first
from paddock.host.people.principals import DEV, Principal
from paddock.host.session.sessions import Sessions
from paddock.host.streams.open_streams import OpenStreams
from paddock.ports import AutomationRecords, SessionRecords
from paddock.rules.access.permissions import Grant, RunScope, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.forgetting import OwnershipMoved, SessionMoved, SessionSettled, StateMoved
from paddock.rules.rows.rows import AuditRow, SessionRow, SessionSummary
from paddock.rules.values import Value

PAGE = 100
REQUEST_SECONDS = 5.0
"""How long one request works; a repeated request goes on with the rest."""
MAX_JOBS = 100
HANDED_OVER = "this conversation was handed over to another user"
ONLY_OPERATORS = (
    "only an operator can hand over what belongs to dev: on the host's own machine before there is a key, or with "
    "`paddock keys take-over`"
)


class _Records(AutomationRecords, SessionRecords, Protocol): ...


class DevOwned(Value, frozen=True):
    """Counts of what belongs to `dev`."""

    conversations: int
    automations: int


class TakeOverResult(Value, frozen=True):
    """Counts of the conversations that one request moved, and of those still with `dev`."""

    conversations: int
    busy: int
    """Those among `left` that could not be moved because they were in use."""
    left: int


@dataclass(eq=False)
class TakingOver:
    store: _Records
    sessions: Sessions
    _: KW_ONLY
    forwarding: Forwarding
    streams: OpenStreams
    clock: Callable[[], float]

    @property
    def remote_handlers(self) -> RequestHandlers:
        return {MoveThread: self._move}

    async def owned_by_dev(self, by: Principal) -> DevOwned:
        _check(by)
        jobs = await self.store.automations(DEV.workspace_id, DEV.user_id, limit=MAX_JOBS)
        return DevOwned(await self.store.count_sessions(DEV.workspace_id, DEV.user_id), len(jobs))

    async def take_over(self, by: Principal, user: str) -> TakeOverResult:
        """Move as much as there is time for. Raises HostError."""
        _check(by)
        if user == DEV.user_id:
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"user must not be {DEV.user_id}: it is the owner already")
        moved = busy = 0
        end = time.monotonic() + REQUEST_SECONDS
        async for session in self._of_dev():
            if await self._hand_over(by, session, user):
                moved += 1
            else:
                busy += 1
            if time.monotonic() >= end:
                break
        return TakeOverResult(moved, busy, await self._finish(by, user, any_moved=moved > 0))

    async def _of_dev(self) -> AsyncIterator[SessionSummary]:
        before: int | None = None
        while page := await self.store.sessions_of(DEV.workspace_id, DEV.user_id, before=before, limit=PAGE):
            for session in page:
                yield session
            before = page[-1].number

    async def _finish(self, by: Principal, user: str, *, any_moved: bool) -> int:
        """Count the conversations left; after the last one, move everything else that belongs to `dev`."""
        if any_moved:
            self.streams.end_of((DEV.workspace_id, DEV.user_id), HANDED_OVER)
        left = await self.store.count_sessions(DEV.workspace_id, DEV.user_id)
        if not left:
            rest = OwnershipMoved(DEV.workspace_id, DEV.user_id, user)
            await self.store.write([rest, self._audit(by, "user.take_over", user, DEV.workspace_id, user)])
        return left

    async def _hand_over(self, by: Principal, session: SessionSummary, user: str) -> bool:
        session_id = session.session_id
        row = SessionRow(session_id, session.workspace_id, session.user_id, session.created_at)
        request = MoveThread(row, user, self._audit(by, "session.take_over", session_id, session_id, user))
        try:
            return (await self.forwarding.here_or_at_owner(partial(self._move, request), request, Done)).done
        except HostError as error:
            if error.code is ErrorCode.UNAVAILABLE or error.code is ErrorCode.NOT_FOUND:
                return False  # its host is busy or of another release, or it was deleted a moment ago
            raise

    async def _move(self, request: MoveThread) -> Done:
        session, user = request.session, request.user
        session_id = session.session_id
        known = await self.store.agents_of_session(session_id)
        epoch = await self.sessions.let_go(session_id)
        if epoch is None:
            return Done(False)
        moved = SessionMoved(session_id, session.workspace_id, session.user_id, user, epoch)
        actors = [("user", None), ("system", "scheduler"), *(("agent", agent_id) for agent_id, _ in known)]
        state = [_state_of_actor(session, user, *agent, *actor) for agent in known for actor in actors]
        if not await written_first(self.store, [moved, SessionSettled(session_id), *state, request.audit]):
            return Done(False)  # somebody went on with it meanwhile
        self.sessions.services.words.count_again(session.workspace_id, session.user_id, user)
        return Done(True)

    def _audit(self, by: Principal, action: str, resource: str, scope: str, user: str) -> AuditRow:
        return replace(by, workspace_id=DEV.workspace_id).audit(
            action,
            resource,
            at=self.clock(),
            scope=scope,
            reason=f"from {DEV.user_id} to {user}, by an operator",
            session_id=resource if action == "session.take_over" else None,
        )


def _check(by: Principal) -> None:
    if not by.operator:
        raise HostError(ErrorCode.UNAUTHORIZED, ONLY_OPERATORS)


def _state_of_actor(
    session: SessionRow, user: str, agent_id: str, runner_id: str, actor_type: str, actor_id: str | None
) -> StateMoved:
    """Move an agent's state about the user it talks to, or about who acts for that user."""

    def key(of: str) -> str:
        scope = RunScope(
            "", session.workspace_id, of, agent_id, session.session_id, actor_type=actor_type, actor_id=actor_id
        )
        return (
            state_key("actor", Grant(runner_id, frozenset(), frozenset(), frozenset(), scope=scope, deadline_at=0.0))
            or ""
        )

    return StateMoved(key(session.user_id), key(user))
