"""The command line's side of the HTTP API: one call, or one stream of events. Blocking, and standard library only,
because a command that has to start in an instant cannot afford to import an HTTP library first.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from paddock.cli import presence
from paddock.cli.failures import USAGE, CommandError
from paddock.cli.program import command

DEFAULT_URL = "http://127.0.0.1:8484"
CALL_SECONDS = 30.0
UNAUTHENTICATED = 401
UNAVAILABLE = 503
"""What a host says that is starting, stopping or unable to write: worth another try."""
STREAM_SECONDS = 40.0
"""A stream that stays silent longer than this is asked for again; hosts send a comment every 15 s by default."""


ELSEWHERE = (
    "On the host's own machine, add --data DIR with its data directory; elsewhere, put your key into PADDOCK_API_KEY."
)


class HostGoneError(CommandError):
    """Nobody answers, or the connection broke."""


class RefusedError(CommandError):
    """The host answered with a problem; the text is its own explanation."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: the cursor to go on from, and its JSON as it came."""

    cursor: str
    data: str


@dataclass(frozen=True, slots=True)
class HostClient:
    url: str
    token: str = ""
    start_hint: str = "paddock serve"
    unknown_hint: str = ""
    """What to do when the host does not know us."""

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON answer; raises RefusedError for a problem, HostGoneError when nobody answers."""
        with closing(self._connection(CALL_SECONDS)) as connection:
            try:
                response = self._send(connection, method, path, body, {})
                raw = response.read()
            except (OSError, HTTPException) as error:
                raise self._gone(error) from error
            return self._answer(response.status, raw)

    def events(self, path: str, *, after: str = "") -> Iterator[Event]:
        """Events after a cursor until the stream ends or breaks; the reader knows which of the two it was."""
        with closing(self._connection(STREAM_SECONDS)) as connection:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            try:
                response = self._send(connection, "GET", path, None, headers)
                if response.status != 200:
                    self._answer(response.status, response.read())
                yield from _parse(response)
            except (OSError, HTTPException) as error:
                raise self._gone(error) from error

    def _connection(self, timeout: float) -> HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise CommandError(f"{self.url} is no address of a host: it must look like {DEFAULT_URL}.", exit_code=USAGE)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname, parts.port, timeout=timeout)

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        sent = {**headers, "Authorization": f"Bearer {self.token}"} if self.token else dict(headers)
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(
            method, urlsplit(self.url).path.rstrip("/") + path, json.dumps(body) if body is not None else None, sent
        )
        return connection.getresponse()

    def _answer(self, status: int, raw: bytes) -> Any:
        try:
            return _answer(status, raw)
        except RefusedError as error:
            if error.status != UNAUTHENTICATED or not self.unknown_hint:
                raise
            raise RefusedError(error.status, error.code, f"{error}. {self.unknown_hint}") from error

    def _gone(self, error: Exception) -> HostGoneError:
        why = "" if isinstance(error, ConnectionRefusedError) else f" ({error or type(error).__name__})"
        return HostGoneError(f"No host answers at {self.url}{why}. Start one with: {self.start_hint}")


def connect(url: str | None, data: Path | None) -> HostClient:
    """The host to talk to: the one asked for, by address or by data directory, else one that is easily found.

    Whoever named a data directory means the host that serves it and no other one.
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


def _answer(status: int, raw: bytes) -> Any:
    try:
        answer: Any = json.loads(raw) if raw else {}
    except ValueError:
        answer = {}
    if 200 <= status < 300:
        return answer
    problem = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    detail = problem.get("detail") or problem.get("title") or f"The host answered with status {status}."
    raise RefusedError(status, str(problem.get("code", "")), str(detail))


def _parse(response: HTTPResponse) -> Iterator[Event]:
    cursor, data = "", list[str]()
    while line := response.readline():
        name, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            cursor = value
        elif name == "data":
            data.append(value)
        elif not name and not value and data:  # the empty line that ends an event; a comment has a value
            yield Event(cursor, "\n".join(data))
            data = []
