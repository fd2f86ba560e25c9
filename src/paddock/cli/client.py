"""The command line's side of the HTTP API: the SDK's client, and what to say to a person when the host is not there.

Blocking, and standard library only: a command that has to start in an instant cannot afford to import an HTTP library.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from paddock.cli import presence
from paddock.cli.output import USAGE, CommandError, command, fails_with, harmless, harmless_in
from paddock_sdk.client import wire
from paddock_sdk.client.wire import UNAVAILABLE, Event

DEFAULT_URL = "http://127.0.0.1:8484"
UNAUTHENTICATED = 401
NOT_FOUND = 404
SESSIONS = ("agent", "sessions")
RUNS = ("agent", "runs")

__all__ = ["UNAUTHENTICATED", "UNAVAILABLE", "Event", "HostClient", "HostGoneError", "RefusedError", "at", "connect"]

ELSEWHERE = (
    "On the host's own machine, add --data DIR with its data directory; elsewhere, put your key into PADDOCK_API_KEY."
)


def at(*parts: str, **query: str | None) -> str:
    """Return a path of the API: its parts quoted, and those questions that have a value."""
    asked = urlencode({name: value for name, value in query.items() if value is not None})
    return "/".join(("/api/v1", *(quote(part, safe="") for part in parts))) + (f"?{asked}" if asked else "")


class HostGoneError(CommandError):
    """Nobody answers, or the connection broke."""


class RefusedError(CommandError):
    """The host answered with a problem; the text is its own explanation."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class HostClient:
    url: str
    token: str = ""
    start_hint: str = "paddock serve"
    unknown_hint: str = ""
    """What to do when the host does not know us."""

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, for_programs: bool = False) -> Any:
        """The JSON answer, made harmless for a terminal unless it is for programs. Raises RefusedError for a problem,
        HostGoneError when nobody answers."""
        with self._in_our_words():
            answer = self._wire().call(method, path, body)
        return answer if for_programs else harmless_in(answer)

    def events(self, path: str, *, after: str = "") -> Iterator[Event]:
        """Events after a cursor until the stream ends or breaks; the reader knows which of the two it was."""
        with self._in_our_words():
            yield from self._wire().events(path, after=after)

    def _wire(self) -> wire.Wire:
        with fails_with(ValueError, says="{}.".format, exit_code=USAGE):
            return wire.Wire(self.url, self.token)

    @contextmanager
    def _in_our_words(self) -> Generator[None]:
        try:
            yield
        except wire.RefusedError as error:
            knows_us = error.status != UNAUTHENTICATED or not self.unknown_hint
            detail = str(error) if knows_us else f"{error}. {self.unknown_hint}"
            raise RefusedError(error.status, error.code, harmless(detail)) from error
        except wire.GoneError as error:
            why = f" ({error.why})" if error.why else ""
            raise HostGoneError(f"No host answers at {self.url}{why}. Start one with: {self.start_hint}") from error


def connect(url: str | None, data: Path | None) -> HostClient:
    """Return a client of the host that was named by address or data directory, else of one that is easily found.

    A data directory that was named stands for the host that serves it and no other one.
    """
    directory = presence.data_directory(data)
    here = presence.find(directory)
    asked = (url or ("" if data else os.environ.get("PADDOCK_URL", ""))).rstrip("/")
    key = os.environ.get("PADDOCK_API_KEY", "")
    start = command("serve", data=directory if presence.asked_for(data) else None)
    if here is not None and asked in {"", here.url}:
        hint = "Check PADDOCK_API_KEY." if key else f"It does not serve {directory} (any more); start one with: {start}"
        return HostClient(here.url, token=key or here.token, start_hint=start, unknown_hint=hint)
    if not asked and presence.asked_for(data):
        raise HostGoneError(f"No host serves the data directory {directory}. Start one with: {start}")
    return HostClient(asked or DEFAULT_URL, token=key, start_hint=start, unknown_hint=ELSEWHERE)
