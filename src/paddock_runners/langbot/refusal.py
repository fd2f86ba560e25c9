"""Why the adapter or the host says no to a plugin, in the words that LangBot's SDK understands."""

from collections.abc import Mapping
from typing import Any

from paddock_sdk import HostCallError


class RefusedError(Exception):
    """A call that is not answered; `code` is one of the protocol's seven."""

    def __init__(self, code: str, message: str, *, retryable: bool = False, details: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.code, self.message, self.retryable = code, message, retryable
        self.details = dict(details or {})

    @property
    def data(self) -> dict[str, Any]:
        """Body of the refusal, from which LangBot's SDK makes an exception with a code."""
        error = {"code": self.code, "message": self.message, "retryable": self.retryable, "details": self.details}
        return {"error": error}


def refusal_of(error: HostCallError) -> RefusedError:
    """The gate's own words, handed on."""
    said = error.error
    return RefusedError(said.code, said.message, retryable=said.retryable, details=said.details)


def not_offered(action: str) -> RefusedError:
    return RefusedError("invalid_argument", f"this host does not offer {action[:60]!r} to runners")


def outside_a_run(action: str) -> RefusedError:
    """Nobody is told whether a run is unknown, over or another's."""
    return RefusedError("unauthorized", f"{action[:60]} is answered within a run, to that run alone")
