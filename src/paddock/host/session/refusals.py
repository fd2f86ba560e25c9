"""Errors for callers that wait while a session cannot go on."""

from collections.abc import Iterable

from paddock.host.session.arrivals import Arrival, MessageSubmitted, RunSubmitted, reject
from paddock.rules.errors import (
    ErrorCode,
    HostError,
    OwnedElsewhereError,
    StaleOwnerError,
    StorageUnavailableError,
)
from paddock.rules.session.messages import CancelRequested

_UNAVAILABLE = "the store cannot write now, so nothing was accepted; try again shortly"
_UNKNOWN = "the store went away just now, and whether this was accepted is not known; "
_ASK_AGAIN = _UNKNOWN + "ask again: what has the same runId is done once"
_LOOK_FIRST = _UNKNOWN + "look at the conversation before you ask again"
_MISTAKE = "the host made a mistake and accepted nothing; its log has the details"


def unavailable() -> HostError:
    return HostError(ErrorCode.UNAVAILABLE, _UNAVAILABLE, retryable=True)


def turn_away_unsure(arrivals: Iterable[Arrival]) -> None:
    """Those who want something new and of whom nobody knows whether they have it: a run may be asked for again under
    its name, anything else has none."""
    for arrival in filter(is_new, arrivals):
        text = _ASK_AGAIN if isinstance(arrival, RunSubmitted) else _LOOK_FIRST
        turn_away([arrival], HostError(ErrorCode.UNAVAILABLE, text, retryable=True))


def told(cause: BaseException) -> HostError:
    """Error for a waiting caller. One that meets a session that moved may look where it is now."""
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
