"""Passages of documents: cut to be searched and cited, and ranked by how well they answer. Pure.

A chunk never crosses a section, ends where a paragraph, a sentence or at least a word ends, and is exactly the stretch
of the document's text that its place names. Ranking is for the store that has no BM25 of its own.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from math import log
from pathlib import PurePath
from typing import TypeVar

from paddock.rules.search.tokens import Phrase
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


def document_text(sections: Sequence[Section]) -> str:
    return GAP.join(section.text for section in sections)


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
    """Return where the next chunk begins: after a sentence or a word close before the end."""
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
    """The name, then with its directory, and so on up to the whole path."""
    return [PurePath(*path.parts[-length:]).as_posix() for length in range(1, len(path.parts) + 1)]


# --- ranking ---------------------------------------------------------------------------------------------------------


K1, B = 1.2, 0.75
FUSION = 60
"""How much the first ranks count above the later ones; the usual constant of reciprocal rank fusion."""

Key = TypeVar("Key", bound=Hashable)


def bm25(texts: Mapping[Key, Sequence[str]], terms: Sequence[Phrase]) -> list[tuple[Key, float]]:
    """Texts, given as their tokens, that contain at least one of the terms; best first, each with its score."""
    counted = {key: Counter(tokens) for key, tokens in texts.items()}
    lengths = {key: sum(counts.values()) for key, counts in counted.items()}
    average = sum(lengths.values()) / len(lengths) if lengths else 1.0
    scores: dict[Key, float] = dict.fromkeys(texts, 0.0)
    for term in terms:
        found = {key: count for key, counts in counted.items() if (count := _count(counts, term))}
        weight = log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
        for key, count in found.items():
            scores[key] += weight * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[key] / average))
    return sorted(((key, score) for key, score in scores.items() if score), key=lambda scored: -scored[1])


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


def _count(counts: Mapping[str, int], term: Phrase) -> int:
    (token,) = term.tokens
    if not term.prefix:
        return counts.get(token, 0)
    return sum(count for other, count in counts.items() if other.startswith(token))
