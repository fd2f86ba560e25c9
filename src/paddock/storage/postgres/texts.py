"""Text that PostgreSQL cannot hold, made text that it can, and back. Nothing else is ever changed.

PostgreSQL refuses the character NUL in text. People and programs send it all the same, and nothing may be lost, so NUL
is written as SUBSTITUTE + "0" and SUBSTITUTE itself as SUBSTITUTE + "1". Equal texts stay equal and different ones
different; a text with neither character, which is nearly every text, is stored as it is.
"""

from collections.abc import Sequence

_NUL, _MARK = "\x00", "\x1a"


def escaped(text: str) -> str:
    if _NUL in text or _MARK in text:
        return text.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")
    return text


def unescaped(text: str) -> str:
    if _MARK in text:
        return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK)
    return text


def escaped_column(column: Sequence[str | None]) -> Sequence[str | None]:
    """A whole column; looked through once, because hardly any holds such a character."""
    together = "".join(filter(None, column))
    if _NUL in together or _MARK in together:
        return [text and escaped(text) for text in column]
    return column


def encode(text: str) -> bytes:
    return escaped(text).encode()


def decode(stored: bytes) -> str:
    text = str(stored, "utf-8")
    return unescaped(text) if _MARK in text else text
