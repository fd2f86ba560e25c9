"""Size limits of a document. What does not fit is cut and noted; a document is never refused for its size."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from paddock.rules.values import Value


class DocumentLimits(Value, frozen=True):
    depth: int = 6
    nodes: int = 200
    children: int = 50
    text_chars: int = 4_000
    all_chars: int = 20_000
    columns: int = 10
    rows: int = 50
    buttons: int = 6
    inputs: int = 12
    images: int = 8
    url_chars: int = 2_048
    bytes: int = 64 * 1024
    link_schemes: frozenset[str] = frozenset({"https"})
    """`mailto` and `tel` may be added."""


DEFAULT = DocumentLimits()
CARD = DocumentLimits(bytes=28 * 1024)
"""For chat platforms that cap a card."""


FORBIDDEN_KEYS = frozenset({"__proto__", "constructor", "prototype"})
MAX_NOTES = 100
READ_TIMES = 8
"""How many times the characters that may be shown are looked at: some of a text may be hidden ones."""
MAX_NUMBER = 10**15
"""Beyond it a number is not for reading, and may lose digits on its way."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (zero-width, bidirectional override), surrogate, private and unassigned characters."""
_KEPT = frozenset("\n\t\u200d")
"""Line breaks stay, and the joiner that emoji of several people are made of."""
_ONLY_TEXT: frozenset[type] = frozenset({str})

Node = dict[str, Any]


class CompileBudget:
    """Everything one compilation uses up."""

    def __init__(self, limits: DocumentLimits) -> None:
        self.limits = limits
        self.notes: list[str] = []
        self.actions: dict[str, dict[str, Any]] = {}
        self._chars = limits.all_chars
        self._text_chars = limits.text_chars
        self._left = {what: getattr(limits, what) for what in ("nodes", "buttons", "inputs", "images")}

    def note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def spend(self, what: str, where: str) -> bool:
        """Take one of something; False, and a note, when there is none left."""
        if self._left[what] <= 0:
            self.note(f"{where}: too many {what}")
            return False
        self._left[what] -= 1
        return True

    def text(self, value: object, where: str, *, limit: int | None = None) -> str | None:
        """Text as text: no hidden characters, within the limits. None when there is nothing to show."""
        if value is None:
            return None
        if not isinstance(value, str):
            value = self._written(value, where)
        room = min(limit or self._text_chars, self._chars)
        if len(value) > room * READ_TIMES:
            value = value[: room * READ_TIMES]
        cleaned = (value if value.isprintable() else clean(value)).strip()
        size = len(cleaned)
        if size > self._chars or size > (limit or self._text_chars):
            cleaned = self._cut(cleaned, min(limit or self._text_chars, self._chars), where)
            size = len(cleaned)
        self._chars -= size
        return cleaned or None

    def _cut(self, text: str, room: int, where: str) -> str:
        self.note(f"{where}: text cut at {room} characters")
        return text[:room].rstrip()

    def _written(self, value: object, where: str) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.note(f"{where}: not a text")
            return ""
        return f"{shown:.15g}" if (shown := self.number(value, where)) is not None else ""

    def one_of(self, value: object, known: frozenset[str], default: str | None, where: str) -> str | None:
        if isinstance(value, str) and value in known:
            return value
        if value is not None:
            self.note(f"{where}: not one of {', '.join(sorted(known))}")
        return default

    def mapping(self, value: object, where: str) -> dict[str, Any] | None:
        """An object with text keys, without those that harm a script that walks it."""
        if not isinstance(value, dict):
            self.note(f"{where}: not an object")
            return None
        given: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType] - a cast is a call, here hundreds
        if FORBIDDEN_KEYS.isdisjoint(given) and _ONLY_TEXT.issuperset(map(type, given)):
            return given  # most of them
        return {key: item for key, item in given.items() if isinstance(key, str) and key not in FORBIDDEN_KEYS}

    def items(self, value: Sequence[Any] | None, where: str, *, limit: int | None = None) -> list[Any]:
        """The members of a list, at most so many. It may be anything else, whatever the agent was told."""
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            self.note(f"{where}: not a list")
            return []
        room = limit if limit is not None else self.limits.children
        if len(value) > room:
            self.note(f"{where}: {len(value) - room} left out")
        return list(value[:room])

    def number(self, value: object, where: str) -> float | int | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            if value is not None:
                self.note(f"{where}: not a number")
            return None
        if not abs(value) <= MAX_NUMBER:  # also what is no number at all
            self.note(f"{where}: not a number that can be shown")
            return None
        return value

    def name(self, value: object, where: str) -> str | None:
        """An id of somebody's: plain characters only."""
        if isinstance(value, str) and NAME.fullmatch(value):
            return value
        self.note(f"{where}: not a name of letters, digits, '.', '_' and '-'")
        return None

    def link(self, value: object, where: str) -> str | None:
        """An address that may be opened: of an allowed kind, with a host, without credentials."""
        if not isinstance(value, str) or len(value) > self.limits.url_chars or clean(value) != value:
            self.note(f"{where}: not a link")
            return None
        try:
            parts = urlsplit(value)
            safe = parts.username is None and parts.password is None and (parts.scheme != "https" or parts.hostname)
        except ValueError:
            safe, parts = False, None
        if parts is None or not safe or parts.scheme not in self.limits.link_schemes or " " in value:
            self.note(f"{where}: not a link that may be opened")
            return None
        return value


def clean(text: str) -> str:
    """Without characters that cannot be seen or that turn what is seen around."""
    if text.isprintable():  # nothing hidden in it: most texts
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in text if char in _KEPT or unicodedata.category(char) not in _HIDDEN)


def host_of(link: str) -> str:
    """Return the part of a link that a person should see before opening it."""
    parts = urlsplit(link)
    return parts.hostname or parts.path
