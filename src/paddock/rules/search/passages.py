"""Passages of documents: cut to be searched and cited, and ranked by how well they answer. Pure.

A chunk never crosses a section, ends where a paragraph, a sentence or at least a word ends, and is exactly the stretch
of the document's text that its place names.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import PurePath
from typing import TypeVar

from paddock.rules.values import Value

MAX_CHARS = 1000
MIN_CHARS = 300
OVERLAP_CHARS = 80
"""A chunk begins this much before the end of the last one, so that a sentence cut in two is whole in one of them."""
GAP = "\n\n"
"""What stands between two sections in the text of a document."""

_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?;。！？；]\s*"), re.compile(r"[\s,，、]"))
"""Good places to end, the best kind first."""


class Section(Value, frozen=True):
    """A stretch of a document with one place name: a page, or what stands under a heading."""

    text: str
    page: int | None = None
    heading: str = ""


class Chunk(Value, frozen=True):
    """One passage. `start` and `end` are characters of the document's text: all sections, with a gap between them."""

    position: int
    text: str
    start: int
    end: int
    page: int | None = None
    heading: str = ""


def chunks_of(sections: Sequence[Section]) -> list[Chunk]:
    """Return the passages of a document, in order. Blank sections give none."""
    chunks: list[Chunk] = []
    offset = 0
    for section in sections:
        for start, end in _cuts(section.text):
            text = section.text[start:end]
            if text.strip():
                place = (offset + start, offset + end)
                chunks.append(Chunk(len(chunks), text, *place, page=section.page, heading=section.heading))
        offset += len(section.text) + len(GAP)
    return chunks


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > MAX_CHARS:
        end = _end(text, start)
        yield start, end
        start = _begin_again(text, end)
    yield start, len(text)


def _end(text: str, start: int) -> int:
    """The last good place between the least and the most a chunk may have; any place when there is none."""
    for kind in _BREAKS:
        places = [found.end() for found in kind.finditer(text, start + MIN_CHARS, start + MAX_CHARS)]
        if places:
            return places[-1]
    return start + MAX_CHARS


def _begin_again(text: str, end: int) -> int:
    for kind in _BREAKS[1:]:
        found = kind.search(text, end - OVERLAP_CHARS, end - 1)
        if found:
            return found.end()
    return end


def document_names(files: Sequence[PurePath], known: Collection[str]) -> list[str]:
    """One name for each file, in their order; `known` are the names that the base has."""
    there, called = frozenset(known), defaultdict[str, set[PurePath]](set)
    for path in files:
        called[path.name].add(path)
    return [_name(path, called[path.name] - {path}, there) for path in files]


def _name(path: PurePath, namesakes: Collection[PurePath], known: Collection[str]) -> str:
    taken = {tail for one in namesakes for tail in _tails(one)}
    free = [tail for tail in _tails(path) if tail not in taken] or [path.as_posix()]
    return next((tail for tail in reversed(free) if tail in known), free[0])


def _tails(path: PurePath) -> list[str]:
    return [PurePath(*path.parts[-length:]).as_posix() for length in range(1, len(path.parts) + 1)]


B = 0.75
"""How much the length of a text counts, as in BM25."""
FUSION = 60
"""How much the first ranks count above the later ones; the usual constant of reciprocal rank fusion."""

Key = TypeVar("Key", bound=Hashable)


def fuse(*rankings: Sequence[Key]) -> list[tuple[Key, float]]:
    """Rankings merged by rank alone: scores of different kinds cannot be compared. 1.0 is first everywhere."""
    best = len(rankings) / (FUSION + 1)
    scores: dict[Key, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (FUSION + rank)
    return sorted(((key, score / best) for key, score in scores.items()), key=lambda scored: -scored[1])


def bounded(score: float) -> float:
    """A score without an upper end as one between 0 and 1, in the same order."""
    return score / (1.0 + score) if score > 0 else 0.0
