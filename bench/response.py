"""One HTTP/1.1 response read by bytes, and the check of a finished event stream. No sockets, no clock.

Just enough HTTP for the servers measured here (chunked or with a length), so that the client's own cost stays small.
"""

import re
from dataclasses import dataclass, field

from bench.scripts import TOKEN, deltas_asked

DELTA = re.compile(rb'"delta": ?"([^"\\]*)"')
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class BadResponseError(Exception):
    """The server answered something a client cannot read."""


@dataclass(slots=True)
class Response:
    """Feed it what arrives; it knows when the response is whole, and when the first event and the first text came."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False
    first_event_at: float = 0.0
    first_text_at: float = 0.0
    _raw: bytearray = field(default_factory=bytearray)
    _length: int | None = None

    def feed(self, data: bytes, now: float) -> None:
        self._raw += data
        if self.status or self._read_head():
            self._read_body()
            self._note_firsts(now)

    def _read_head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._raw[:end])
        del self._raw[: end + 4]
        self.status = int(head[9:12])
        length = LENGTH.search(head)
        self._length = int(length[1]) if length else None
        if length is None and not CHUNKED.search(head):
            raise BadResponseError(f"neither chunked nor with a length: {head[:200]!r}")
        return True

    def _read_body(self) -> None:
        if self._length is None:
            self._read_chunks()
            return
        self.body += self._raw
        self._raw.clear()
        self.complete = len(self.body) >= self._length

    def _read_chunks(self) -> None:
        raw, start = self._raw, 0
        while (line_end := raw.find(b"\r\n", start)) >= 0:
            size = int(raw[start:line_end], 16)
            end = line_end + 2 + size
            if end + 2 > len(raw):
                break
            self.body += raw[line_end + 2 : end]
            start = end + 2
            self.complete = size == 0
        del raw[:start]

    def _note_firsts(self, now: float) -> None:
        if not self.first_event_at and (start := self.body.find(b"data:")) >= 0 and b"\n\n" in self.body[start:]:
            self.first_event_at = now
        if not self.first_text_at and b'"delta"' in self.body:
            self.first_text_at = now


def problem_with(response: Response, text: str) -> str:
    """What is wrong with a finished run that was asked `text`; empty when all is as it must be."""
    if response.status != 200:
        return f"status {response.status}: {bytes(response.body[:200])!r}"
    body = response.body
    if b'"RUN_ERROR"' in body or body.count(b'"RUN_FINISHED"') != 1:
        return f"not exactly one good end: {bytes(body[-300:])!r}"
    if body.rfind(b"data:") > body.find(b'"RUN_FINISHED"'):
        return f"something came after the end: {bytes(body[-300:])!r}"
    wanted = TOKEN.encode() * deltas_asked(text)
    said = b"".join(DELTA.findall(body))
    return "" if said == wanted else f"{len(said)} bytes of text instead of {len(wanted)}, or other text"
