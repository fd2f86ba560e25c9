"""The version of a state value: a tag of its bytes, so that a compare-and-set needs no counter and survives a delete.

Two values with one tag are equal, so whoever compares tags loses no update. Pure.
"""

from hashlib import sha256

from paddock.rules.errors import ErrorCode, HostError

ABSENT = ""
"""The version of a value that does not exist."""


def version_of(value: bytes | None) -> str:
    return ABSENT if value is None else sha256(value).hexdigest()[:24]


def check_version(expected: str | None, value: bytes | None, key: str) -> None:
    """Raise CONFLICT when a value is not the one its writer read; None expects nothing."""
    if expected is None or expected == version_of(value):
        return
    text = f"the value of {key[:64]!r} has changed since it was read; read it again and decide anew"
    raise HostError(ErrorCode.CONFLICT, text, retryable=True, details={"version": version_of(value)})
