"""Words as the demo model sees them: lower case, without the ones that say nothing; Chinese by pairs of characters."""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from math import sqrt

_TOKEN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_PIECE = re.compile(r"[\u3000-\u9fff\uff00-\uffef]{1,4}|[^\s\u3000-\u9fff\uff00-\uffef]+\s*|\s+")
_SILENT = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by call can could do does for from give has have how i in is it its me my of on or "
        "please say show tell than that the their them this to tool use was were what when where which who will with "
        "would you your",
    )
)
_IN_ENGLISH = {
    **dict.fromkeys(("几点", "时间", "几号", "日期"), "time"),
    **dict.fromkeys(("日历", "日程"), "calendar"),
    "计算": "calculate",
    "天气": "weather",
    "搜索": "search",
}
"""Tools mostly describe themselves in English, and people need not ask so."""
DIMENSIONS = 256
COUNTED = 8_000
"""Characters of a text whose words are counted one by one; behind them four characters count as a word."""


def words(text: str) -> list[str]:
    """List the words of a text in order. A run of Chinese gives its pairs of characters, or the one it has."""
    found: list[str] = []
    for token in _TOKEN.findall(text.lower().replace("_", " ")):
        if "\u3400" <= token[0] <= "\u9fff" and len(token) > 2:
            found += [token[at : at + 2] for at in range(len(token) - 1)]
        else:
            found.append(token)
    return found


def telling(text: str) -> frozenset[str]:
    """The words that say what a text is about, without the plural's s."""
    return frozenset(_IN_ENGLISH.get(word) or _singular(word) for word in words(text) if word not in _SILENT)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def likeness(query: str, document: str) -> float:
    """Return how much of the query the document covers, from 0 to 1."""
    asked = telling(query) or frozenset(words(query))
    return len(asked & (telling(document) | frozenset(words(document)))) / len(asked) if asked else 0.0


def vector(text: str) -> list[float]:
    """A bag of hashed words of length one: texts that share words are near each other. Nothing is learned."""
    values = [0.0] * DIMENSIONS
    for word in words(text):
        digest = blake2b(word.encode(), digest_size=4).digest()
        values[int.from_bytes(digest[:2], "big") % DIMENSIONS] += 1.0 if digest[2] & 1 else -1.0
    length = sqrt(sum(value * value for value in values))
    return [value / length for value in values] if length else values


def count(texts: Iterable[str]) -> int:
    """Tokens as the demo model counts them: words."""
    return sum(len(words(text[:COUNTED])) + max(0, len(text) - COUNTED) // 4 for text in texts)


def pieces(text: str) -> Iterator[str]:
    """A text in the portions it is streamed in: a word and the space after it, or a few Chinese characters."""
    return (found[0] for found in _PIECE.finditer(text))
