"""Names that must be written the same everywhere: plugins and runners. Parsing only; imports nothing heavy."""

import re
from dataclasses import dataclass
from typing import Self

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_RULE = "use letters, digits, '_', '.' and '-' (the last two not in front), at most 128"
_PREFIX = "plugin:"


def _checked(kind: str, *segments: str) -> None:
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise ValueError(f"{kind}: {segment[:140]!r} is not a name; {_RULE}")


@dataclass(frozen=True, slots=True, order=True)
class PluginId:
    """A package of runners: `author/name`."""

    author: str
    name: str

    def __post_init__(self) -> None:
        _checked("plugin id", self.author, self.name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `author/name`. Raises ValueError with a sentence."""
        author, slash, name = text.partition("/")
        if not slash:
            raise ValueError(f"plugin id {text[:200]!r} is not of the form author/name")
        return cls(author, name)

    def __str__(self) -> str:
        return f"{self.author}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class RunnerId:
    """One runner of one plugin: `plugin:author/name/runner`."""

    author: str
    name: str
    runner: str

    def __post_init__(self) -> None:
        _checked("runner id", self.author, self.name, self.runner)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `plugin:author/name/runner`. Raises ValueError with a sentence."""
        segments = text.removeprefix(_PREFIX).split("/")
        if not text.startswith(_PREFIX) or len(segments) != 3:
            raise ValueError(f"runner id {text[:200]!r} is not of the form plugin:author/name/runner")
        return cls(*segments)

    @property
    def plugin(self) -> PluginId:
        return PluginId(self.author, self.name)

    def __str__(self) -> str:
        return f"{_PREFIX}{self.author}/{self.name}/{self.runner}"
