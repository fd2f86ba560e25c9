"""Rank passages by BM25 over tokens, and merge two rankings. Pure; for the store that has no BM25 of its own."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from math import log
from typing import TypeVar

from paddock.rules.search.tokens import Phrase

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
