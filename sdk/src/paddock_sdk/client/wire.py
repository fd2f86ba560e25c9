"""One call to a host, or one stream of its events. What the answers mean is not known here."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, cast
from urllib.parse import urlsplit

from paddock_sdk.causes import cause_of

CALL_SECONDS = 30.0
STREAM_SECONDS = 40.0
"""A stream that stays silent longer than this is asked for again; hosts send a comment every 15 s by default."""
MAX_LINE = 16 * 1024 * 1024
UNAVAILABLE = 503
"""What a host says that is starting, stopping or unable to write: worth another try."""


class GoneError(Exception):
    """Nobody answers, or the connection broke."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"No host answers at {url}{f' ({why})' if why else ''}. Start one with: paddock serve")
        self.why = why
        """What the system said; empty where just nobody listens."""


class RefusedError(Exception):
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
class Wire:
    """A host's address and the key to it."""

    url: str
    key: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{self.url} is no address of a host: it must look like http://127.0.0.1:8484")

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The JSON answer. Raises RefusedError for a problem, GoneError when nobody answers."""
        with closing(self._connection(CALL_SECONDS)) as connection:
            try:
                response = self._send(connection, method, path, body, {})
                raw = response.read()
            except (OSError, HTTPException) as error:
                raise GoneError(self.url, _why(error)) from error
            return _answer(response.status, raw)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Any:
        """Post a body that was encoded and signed elsewhere; no key is sent with it."""
        with closing(self._connection(CALL_SECONDS)) as connection:
            try:
                connection.request("POST", urlsplit(self.url).path.rstrip("/") + path, body, dict(headers))
                response = connection.getresponse()
                raw = response.read()
            except (OSError, HTTPException) as error:
                raise GoneError(self.url, _why(error)) from error
            return _answer(response.status, raw)

    def events(self, path: str, *, after: str = "") -> Iterator[Event]:
        """Events after a cursor until the stream ends or breaks; the reader knows which of the two it was."""
        with closing(self._connection(STREAM_SECONDS)) as connection:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            try:
                response = self._send(connection, "GET", path, None, headers)
                if response.status != 200:
                    _answer(response.status, response.read())
                yield from _parse(response)
            except (OSError, HTTPException) as error:
                raise GoneError(self.url, _why(error)) from error

    def _connection(self, timeout: float) -> HTTPConnection:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=timeout)

    def _send(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str],
    ) -> HTTPResponse:
        sent = {**headers, "Authorization": f"Bearer {self.key}"} if self.key else dict(headers)
        if body is not None:
            sent["Content-Type"] = "application/json"
        whole = urlsplit(self.url).path.rstrip("/") + path
        connection.request(method, whole, json.dumps(body) if body is not None else None, sent)
        return connection.getresponse()


def _why(error: Exception) -> str:
    return "" if isinstance(error, ConnectionRefusedError) else cause_of(error)


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
    while line := response.readline(MAX_LINE):
        name, _, value = line.decode("utf-8").rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            cursor = value
        elif name == "data":
            data.append(value)
        elif not name and not value and data:  # the empty line that ends an event; a comment has a value
            yield Event(cursor, "\n".join(data))
            data = []
