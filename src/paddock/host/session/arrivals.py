"""Arrivals of a session: a user's message, a result of the live run, or any message of the session machine.

Also how long each may wait for more, how many are taken at once, and how callers get their answer.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import field

from paddock.host.people.principals import Principal
from paddock.rules.conversations.client_history import Supplied
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    OwnedElsewhereError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.log.payloads import RunEvent
from paddock.rules.rows.rows import WHOLE, Row, View
from paddock.rules.run.results import Result
from paddock.rules.session.decision import Decision
from paddock.rules.session.messages import CancelRequested, InputAcknowledged, Message
from paddock.rules.values import Value, nothing
from paddock_sdk.protocol.run_context import TriggerSource

TAKE_MESSAGES = 256
TAKE_BYTES = 256 * 1024
QUIET_SECONDS = 0.005
"""Seconds an ack may wait for more before it is committed alone."""
PIECE_SECONDS = 0.002
"""Seconds a piece of a message may wait: the end of a short answer is right behind it, and one commit does for both."""


class Firing(Value, frozen=True, tag=True):
    """The tick of a job that asks for a run: recorded in one commit with the run, so that no tick leads to two."""

    job_id: str
    tick: float
    next_at: float | None
    result: str = "fired"


class Arrived(Value, frozen=True, tag=True):
    """The event of a platform that asks for a run: recorded in one commit with the run, so that it is accepted once."""

    platform: str
    event_id: str
    reply_target: bytes


class NewRun(Value, frozen=True):
    """A user's message that an agent is to answer. `params` is untrusted."""

    principal: Principal
    session_id: str = field(name="thread_id")
    client_run_id: str
    body_hash: bytes
    message: Mapping[str, Any]
    text: str
    params: Mapping[str, Any] = nothing
    agent_id: str | None = None
    source: TriggerSource = "api"
    door: str = "native"
    event: RunEvent | None = None
    """The event, when it is not a plain message of the principal."""
    attachments: Sequence[Mapping[str, Any]] = ()
    """References to the message's artifacts."""
    locale: str | None = None
    time_zone: str | None = None
    """Both as the user has set them."""
    replaces: int | None = None
    """The number of the user's item that this one replaces, with everything after it."""
    supplied: Sequence[Supplied] = ()
    """History that the client sent along; recorded right before the message."""
    thread_name: str | None = None
    """The client's own name of the thread, if it has one."""
    rows: Sequence[Row] = ()
    """Rows written in the same commit as the input, and only then."""
    cause: Firing | Arrived | None = None
    """The job or the platform's event that asks for the run, once."""

    @property
    def view(self) -> View:
        """The part of the history that the run continues: its subthread on a platform, else everything."""
        return View(self.event.subthread_id) if self.source == "platform" and self.event is not None else WHOLE


class Accepted(Value, frozen=True):
    """The answer to a new run; the same for every repetition of the request."""

    run_id: str = field(name="task_id")
    session_id: str = field(name="thread_id")
    client_run_id: str = field(name="run_id")
    created: bool
    first_seq: int


class RunSubmitted(msgspec.Struct, eq=False):
    """A new run on its way into the session."""

    new: NewRun
    run_id: str
    trace_id: str
    answer: asyncio.Future[Accepted]


class MessageSubmitted(msgspec.Struct, eq=False):
    """A message of the session machine whose sender waits until it is on record."""

    message: Message
    recorded: asyncio.Future[Decision]
    principal: Principal | None = None
    """The person who asks, if any. Only the session's owner may; opening a new session makes it theirs."""
    rows: tuple[Row, ...] = ()
    """Rows written in the same commit."""


class ResultArrived(Value, frozen=True):
    """A result of the live turn. `scope_key` is the key of an allowed state update."""

    run_id: str
    result: Result
    size: int
    scope_key: str | None = None
    rows: Sequence[Row] = ()
    """Rows written with it: the approval that an action waits for, and its audit row."""


Arrival = RunSubmitted | MessageSubmitted | ResultArrived | Message


# --- taking them in --------------------------------------------------------------------------------------------------


def patience_of(arrival: Arrival) -> float | None:
    """Seconds that an arrival may wait for more; None when it wakes the loop."""
    if type(arrival) is InputAcknowledged:
        return QUIET_SECONDS
    return PIECE_SECONDS if type(arrival) is ResultArrived and arrival.result.type == "message.delta" else None


def next_batch(waiting: deque[Arrival]) -> list[Arrival]:
    taken: list[Arrival] = []
    size = 0
    while waiting and len(taken) < TAKE_MESSAGES and size < TAKE_BYTES:
        arrival = waiting.popleft()
        if type(arrival) is ResultArrived:
            size += arrival.size
        taken.append(arrival)
    return taken


# --- answers ---------------------------------------------------------------------------------------------------------


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


_UNAVAILABLE = "the store cannot write now, so nothing was accepted; try again shortly"
_UNKNOWN = "the store went away just now, and whether this was accepted is not known; "
_ASK_AGAIN = _UNKNOWN + "ask again: what has the same runId is done once"
_LOOK_FIRST = _UNKNOWN + "look at the conversation before you ask again"
_MISTAKE = "the host made a mistake and accepted nothing; its log has the details"


def unavailable() -> HostError:
    return HostError(ErrorCode.UNAVAILABLE, _UNAVAILABLE, retryable=True)


def turn_away_unsure(arrivals: Iterable[Arrival]) -> None:
    """Refuse new requests of which nobody knows whether they were accepted. A run may be asked for again under its
    name; other requests have none."""
    for arrival in filter(is_new, arrivals):
        text = _ASK_AGAIN if isinstance(arrival, RunSubmitted) else _LOOK_FIRST
        turn_away([arrival], HostError(ErrorCode.UNAVAILABLE, text, retryable=True))


def error_for(cause: BaseException) -> HostError:
    """Return the error for a waiting caller. One whose session has moved may look for it at another host."""
    if isinstance(cause, HostError):
        return cause
    if isinstance(cause, StaleOwnerError):
        return OwnedElsewhereError()
    if isinstance(cause, StorageUnavailableError):
        return unavailable()
    return HostError(ErrorCode.RUNTIME_ERROR, _MISTAKE, retryable=True)


def is_new(arrival: Arrival) -> bool:
    """True for requests that start something; stopping is not new."""
    if type(arrival) is MessageSubmitted:
        return arrival.principal is not None and not isinstance(arrival.message, CancelRequested)
    return type(arrival) is RunSubmitted


def turn_away(arrivals: Iterable[Arrival], error: HostError) -> None:
    for arrival in arrivals:
        if isinstance(arrival, RunSubmitted):
            reject(arrival.answer, error)
        elif isinstance(arrival, MessageSubmitted):
            reject(arrival.recorded, error)
