"""LangBot's lines: one JSON object each, a long one told in pieces. Pure; who reads and writes them is elsewhere."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from paddock_runners.toolkit.values import mapping

PIECE_BYTES = 16 * 1024
"""The other side reads lines of at most 64 KiB; escaped, a piece of this size stays below that."""
MESSAGE_BYTES = 16 * 1024 * 1024
LINE_BYTES = 1024 * 1024


class BrokenWireError(Exception):
    """Raised for frames that cannot be put together; the connection is of no more use."""


def lines_of(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The lines that say this message. Raises ValueError when nobody would read one so long."""
    text = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
    if len(text) > MESSAGE_BYTES:
        raise ValueError(f"a message of {len(text)} bytes is too long for a LangBot plugin; it reads {MESSAGE_BYTES}")
    if len(text) <= PIECE_BYTES:
        yield text.encode() + b"\n"
        return
    yield _line({"type": "chunk_start", "total_size": len(text)})
    for offset in range(0, len(text), PIECE_BYTES):
        yield _line({"type": "chunk_data", "data": text[offset : offset + PIECE_BYTES], "offset": offset})
    yield _line({"type": "chunk_end"})


def _line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


class Joiner:
    """Lines in, messages out. A line that is no JSON object is a stray print and is passed over."""

    def __init__(self) -> None:
        self._pieces: list[str] | None = None
        self._size = self._total = 0

    def feed(self, line: bytes) -> dict[str, Any] | None:
        """The message that this line completes. Raises BrokenWireError."""
        said = _object(line)
        if said is None:
            return None
        match said.get("type"):
            case "chunk_start":
                self._begin(said.get("total_size"))
            case "chunk_data":
                self._add(said)
            case "chunk_end":
                return self._end()
            case _:
                return said
        return None

    def _begin(self, total: object) -> None:
        if not isinstance(total, int) or not 0 <= total <= MESSAGE_BYTES:
            raise BrokenWireError(f"it announced a message of {total!r} bytes")
        self._pieces, self._size, self._total = [], 0, total

    def _add(self, said: Mapping[str, Any]) -> None:
        piece = said.get("data")
        if self._pieces is None or not isinstance(piece, str) or said.get("offset") != self._size:
            raise BrokenWireError("a piece of a long message is out of place")
        self._pieces.append(piece)
        self._size += len(piece.encode())
        if self._size > self._total:
            raise BrokenWireError("a long message is longer than it announced")

    def _end(self) -> dict[str, Any] | None:
        if self._pieces is None or self._size != self._total:
            raise BrokenWireError("a long message ended early")
        whole, self._pieces = "".join(self._pieces), None
        return _object(whole.encode())


def _object(line: bytes) -> dict[str, Any] | None:
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return mapping(cast("object", said)) if isinstance(said, dict) else None
