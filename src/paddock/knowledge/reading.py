"""What the readers of all kinds of files share."""

from collections.abc import Mapping


class UnreadableError(Exception):
    """The file cannot be read; the text is one sentence that says why and what would help."""


def trail(path: Mapping[int, str]) -> str:
    """Headings by their level, as one line."""
    return " > ".join(path[level] for level in sorted(path))
