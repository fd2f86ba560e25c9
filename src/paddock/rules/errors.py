"""Error codes as a closed list. Raised inside the host; only a door turns a code into a status or a frame."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    UNAUTHENTICATED = "unauthenticated"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    SESSION_CLOSED = "session_closed"
    INVALID_ARGUMENT = "invalid_argument"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    RATE_LIMITED = "rate_limited"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    RUNTIME_ERROR = "runtime_error"
    UNAVAILABLE = "unavailable"
    CURSOR_EXPIRED = "cursor_expired"


class HostError(Exception):
    """A refusal with a code, a sentence for a person, and whether trying again may help.

    `message` and `details` may reach anybody: no words of libraries, of programs or of other people, no places on this
    machine. Those go to whoever runs the host, as `for_operators` and in the log.
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
