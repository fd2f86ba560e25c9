"""Arrivals of a session: a user's message, a result of the live run, or any message of the session machine.

Also how whoever waits for the answer is told.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.host.people.principals import Principal
from paddock.rules.conversations.client_history import Supplied
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import WHOLE, Row, SessionRow, View
from paddock.rules.run.context import TriggerSource
from paddock.rules.run.events import RunEvent
from paddock.rules.run.results import Result
from paddock.rules.session.decision import Decision
from paddock.rules.session.messages import Message
from paddock.rules.values import Value, nothing


class Firing(Value, frozen=True, tag=True):
    """The tick of a job that asks for a run: on record in one commit with it, so that no tick leads to two."""

    job_id: str
    tick: float
    next_at: float | None
    result: str = "fired"


class Arrived(Value, frozen=True, tag=True):
    """The event of a platform that asks for a run: on record in one commit with it, so that it is accepted once."""

    platform: str
    event_id: str
    reply_target: bytes


class NewRun(Value, frozen=True):
    """Request of a door: one message of a user, to be answered by an agent. All of `params` is untrusted."""

    principal: Principal
    thread_id: str
    client_run_id: str
    body_hash: bytes
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any] = nothing
    agent_id: str | None = None
    source: TriggerSource = "api"
    door: str = "native"
    event: RunEvent | None = None
    """What happened, when it is not a plain message of the principal's."""
    attachments: Sequence[Mapping[str, Any]] = ()
    """References to artifacts that came along."""
    locale: str | None = None
    time_zone: str | None = None
    """Both as the user set them."""
    replaces: int | None = None
    """The number of the user's item that this one takes the place of: it and what followed are left behind."""
    supplied: Sequence[Supplied] = ()
    """What the client brought along: put on record right before the message."""
    thread_name: str | None = None
    """What the client calls the thread, when it has a name of its own for it."""
    rows: Sequence[Row] = ()
    """What is written in the same commit as the input, and only then."""
    cause: Firing | Arrived | None = None
    """What outside of the conversation asks for it, and does so once."""

    @property
    def view(self) -> View:
        """Part of the history the run continues: its own subthread on a platform, else everything."""
        return View(self.event.subthread_id) if self.source == "platform" and self.event is not None else WHOLE


class Accepted(Value, frozen=True):
    """The answer to a new run; the same again for the same request."""

    task_id: str
    thread_id: str
    run_id: str
    created: bool
    first_seq: int


class RunSubmitted(msgspec.Struct, eq=False):
    """A new run on its way into the session."""

    new: NewRun
    task_id: str
    trace_id: str
    answer: asyncio.Future[Accepted]


class MessageSubmitted(msgspec.Struct, eq=False):
    """A message somebody waits for: the future is done when what follows from it is on record."""

    message: Message
    recorded: asyncio.Future[Decision]
    principal: Principal | None = None
    """Who asks, when it is a person: only whoever a session belongs to may, and an opening makes it theirs."""
    rows: tuple[Row, ...] = ()
    """What is written in the same commit."""


class ResultArrived(Value, frozen=True):
    """A result of the live turn. `scope_key` says where a state update that was allowed goes."""

    turn_id: str
    result: Result
    size: int
    scope_key: str | None = None
    rows: Sequence[Row] = ()
    """What else is written with it: the approval that an action waits for, and its audit row."""


Arrival = RunSubmitted | MessageSubmitted | ResultArrived | Message


def owns(session: SessionRow, new: NewRun) -> bool:
    return (session.workspace_id, session.user_id) == (new.principal.workspace_id, new.principal.user_id)


def same_answer(new: NewRun, answer: Accepted, *, is_same: bool) -> Accepted | HostError:
    """Answer a repeated request like the first; refuse another body under the same name."""
    if is_same:
        return answer
    text = f"runId {new.client_run_id!r} was already used in this thread with another body or agent; use a new runId"
    return HostError(ErrorCode.CONFLICT, text)


def resolve(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)


def reject(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
