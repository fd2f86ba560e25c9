"""Long answers in parts that a platform takes. Pure. Nothing is lost or added but white space at the cuts."""

from collections.abc import Callable, Mapping
from typing import Literal
from unicodedata import combining

Unit = Literal["characters", "bytes", "utf16"]
_JOINED = frozenset({"\u200d", "\ufe0e", "\ufe0f", "\u20e3"})
"""What never begins a part: it belongs to the character before it."""
_CUTS = ("\n\n", "\n", "。", ". ", "! ", "? ", " ")
"""Where to cut, the best first."""
_LEAST = 0.5
"""A cut that would leave a part shorter than this share is passed over for a worse one further on."""
_MARKS = 30
"""So far back a character that belongs together is looked for; what is longer is a heap of accents, and is cut."""

_SIZES: Mapping[Unit, Callable[[str], int]] = {
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
}


def split(text: str, limit: int | None, unit: Unit = "characters", *, most: int | None = None) -> list[str]:
    """The parts of a text, each within the limit, in order; one when it fits. An empty text has one empty part.

    With `most` there are no more parts than that, and all that is left is the last one, however long.
    """
    size = _SIZES[unit]
    parts: list[str] = []
    start = 0
    while limit is not None and len(parts) + 1 != most:
        ahead = text[start : start + limit + 1]  # never the whole rest: a long text has many parts
        if len(ahead) <= limit and size(ahead) <= limit:
            break
        end = _cut(ahead[: _fits(ahead, limit, size)])
        if part := ahead[:end].rstrip():
            parts.append(part)
        start = _past_space(text, start + end)
    if (rest := text[start:]) or not parts:
        parts.append(rest)
    return parts


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _fits(text: str, limit: int, size: Callable[[str], int]) -> int:
    """How many characters fit, at least one; found by halving."""
    low, high = 1, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= limit else (low, middle - 1)
    least = max(1, low - _MARKS)
    whole = next((at for at in range(low, least, -1) if not _joins(text, at)), least)
    return low if whole == least and low > _MARKS else whole


def _joins(text: str, at: int) -> bool:
    """Whether the character at a place belongs to the one before it."""
    if at >= len(text):
        return False
    return text[at] in _JOINED or text[at - 1] == "\u200d" or combining(text[at]) != 0


def _cut(text: str) -> int:
    """The best place to end a part of this text."""
    least = int(len(text) * _LEAST)
    for mark in _CUTS:
        found = text.rfind(mark)
        if found >= least:
            return found + len(mark)
    return len(text)
