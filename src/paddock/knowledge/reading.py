"""Names shared by the readers of all file formats."""

from collections.abc import Mapping

from paddock.rules.search.passages import Section
from paddock.rules.values import Value


class UnreadableError(Exception):
    """The file cannot be read; the text is one sentence that says why and what would help."""


def trail(path: Mapping[int, str]) -> str:
    """Headings by their level, as one line."""
    return " > ".join(path[level] for level in sorted(path))


class Extracted(Value, frozen=True):
    media_type: str = ""
    sections: tuple[Section, ...] = ()
    problem: str = ""
