"""Errors with a code of a closed list. Only a door turns a code into a status or a frame."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NewType

from paddock_sdk.protocol import errors as wire


class ErrorCode(StrEnum):
    """The codes of refused host calls, and those that only the doors have."""

    UNAUTHORIZED = wire.UNAUTHORIZED
    NOT_FOUND = wire.NOT_FOUND
    INVALID_ARGUMENT = wire.INVALID_ARGUMENT
    PAYLOAD_TOO_LARGE = wire.PAYLOAD_TOO_LARGE
    RATE_LIMITED = wire.RATE_LIMITED
    DEADLINE_EXCEEDED = wire.DEADLINE_EXCEEDED
    RUNTIME_ERROR = wire.RUNTIME_ERROR
    UNAUTHENTICATED = "unauthenticated"
    CONFLICT = "conflict"
    SESSION_CLOSED = "session_closed"
    UNAVAILABLE = "unavailable"
    CURSOR_EXPIRED = "cursor_expired"


RunCode = wire.RunCode
"""Every code that a run can end with by the host's word. Where a run ends nothing else passes the type checker."""
RUN_CODES = wire.HOST_FAILURE_CODES
RunnersOwn = NewType("RunnersOwn", str)
"""A code that a runner made up for itself."""
EndCode = RunCode | RunnersOwn


class HostError(Exception):
    """A refusal with a code, a sentence for a person, and whether trying again may help.

    `message` and `details` may reach anybody: no words of libraries, of programs or of other people, no places on this
    machine. Those go to operators, as `for_operators` and in the log.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
        for_operators: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.for_operators = for_operators or message
        self.details: dict[str, Any] = dict(details or {})


class WrongParamsError(HostError):
    """The parameters of a call are not of the shape that the call has."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_ARGUMENT, message)


def exists_already(which: str) -> HostError:
    """A row is there that may be there once. Which rule of the database says so is no caller's business."""
    text = "this exists already"
    return HostError(ErrorCode.CONFLICT, text, for_operators=f"{text}: {which}")


def cannot_be_stored(why: Exception) -> HostError:
    """A value that the database does not take. Its words may quote the row, and rows of others."""
    text = "this cannot be stored"
    return HostError(ErrorCode.INVALID_ARGUMENT, text, for_operators=f"{text}: {type(why).__name__}")


def invalid(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)


def outcome_unknown(what: str, code: ErrorCode = ErrorCode.RUNTIME_ERROR) -> HostError:
    """Something was begun and nobody can say whether it was done. Trying again may do it twice."""
    text = f"{what}; whether it was done is not known: look before you ask for it again"
    return HostError(code, text, details={"outcome": "unknown"})


class StaleOwnerError(Exception):
    """Somebody else owns the session now: what this owner wanted to write was not written."""


class OwnedElsewhereError(HostError):
    """Another host works on this session now, the one with this number; 0 when only a look will tell which."""

    def __init__(self, boot: int = 0) -> None:
        super().__init__(
            ErrorCode.UNAVAILABLE, "another host works on this conversation; try again shortly", retryable=True
        )
        self.boot = boot


class StorageUnavailableError(Exception):
    """The store could not write (full or read-only disk, lost database). Nothing was acknowledged."""


class UnansweredWriteError(StorageUnavailableError):
    """The store was sent a write and did not say what became of it: it may be on record."""


class FilesUnavailableError(StorageUnavailableError):
    """The bucket with the bytes of files cannot be reached."""


# --- features whose packages are not installed with the core ---------------------------------------------------------


EXTRAS: Mapping[str, str] = {
    "asyncpg": "postgres",
    "nats": "nats",
    "obstore": "s3",
    "numpy": "knowledge",
    "pypdf": "knowledge",
    "PIL": "pictures",
    "icalendar": "calendar",
    "opentelemetry.sdk": "otel",
}
"""The extra that brings a package, by the name it is imported under."""


def _top(name: str) -> str:
    return name.partition(".")[0]


_OF_TOP = {_top(name): extra for name, extra in EXTRAS.items()}


def advice(what: str, error: ModuleNotFoundError) -> str | None:
    """The sentence that says which extra `what` needs; None when the missing module is of no extra."""
    extra = _OF_TOP.get(_top(error.name or ""))
    if extra is None:
        return None
    return f"{what} needs packages that are not installed here: pip install 'paddock[{extra}]'"


@contextmanager
def needed_for(what: str) -> Generator[None]:
    """Import packages of an extra. Raises HostError with the sentence when they are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        text = advice(what, error)
        if text is None:
            raise
        raise HostError(ErrorCode.RUNTIME_ERROR, text) from None
