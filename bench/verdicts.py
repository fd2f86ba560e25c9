"""Figures of one part with their targets, as lines of text. Pure."""

from collections.abc import Sequence

import msgspec


class Line(msgspec.Struct, frozen=True):
    """A figure in words; `met` only says something where there is a target."""

    name: str
    value: str
    target: str = ""
    met: bool = True

    @property
    def verdict(self) -> str:
        return f"{self.target}  {'met' if self.met else 'MISSED'}" if self.target else ""


def shown(lines: Sequence[Line]) -> str:
    """All lines, their figures under each other."""
    names, values = max(len(line.name) for line in lines), max(len(line.value) for line in lines)
    return "\n".join(f"{line.name:{names}}  {line.value:>{values}}  {line.verdict}".rstrip() for line in lines)
