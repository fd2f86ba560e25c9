"""Cut text into search tokens: one tokenizer for every store, so that all give equal answers.

Scripts written without spaces (Chinese, Japanese, Korean, Thai, ...) become overlapping pairs of characters, and the
last character of each run once more alone, so that every stretch of them can be found, a single character too. Other
scripts become words, symbols stand alone. Case, width and accents make no difference. Pure.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from unicodedata import category, combining, normalize

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

MAX_TOKEN_CHARS = 64
"""A longer word becomes several pieces in a row: nothing is cut off, and no piece is too long for a database."""
MAX_QUERY_CHARS = 1000
MAX_QUERY_PHRASES = 32

ASCII_SYMBOLS = "$+<=>|~%#@&"
"""Symbols that can be searched for. Other ASCII punctuation only separates."""
_SYMBOLS = frozenset({"So", "Sm", "Sc"})
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"  # Thai, Lao, Myanmar, Hangul letters, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
"""Signs that are part of a word although they are no letters: Hebrew, Arabic, and the scripts of India."""
_unspaced = re.compile(f"[{_UNSPACED}]")
_pieces = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+|\S")
_ascii_pieces = re.compile(f"[a-z0-9]+|[{re.escape(ASCII_SYMBOLS)}]")
_accents = re.compile("[\u0300-\u036f]")
MAX_MARKS = 30
"""Signs over and under one letter that count, as in Unicode's stream-safe text: sorting more takes their square."""
_heaps = re.compile(rf"[^\w\s\x00-\x7f]{{{MAX_MARKS + 1},}}")
"""Stretches that may be heaps of such signs: none of them is a letter."""


class Phrase(Value, frozen=True):
    """Tokens that must follow each other. With `prefix`, the last one need only begin so."""

    tokens: tuple[str, ...]
    prefix: bool = False


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, in order: the place in this list is the token's position."""
    folded = fold(text)
    if folded.isascii():
        return [part for word in _ascii_pieces.findall(folded) for part in _bounded(word)]
    return [token for piece in _pieces.findall(folded) for token in _tokens(piece)]


def phrases_of(query: str) -> tuple[Phrase, ...]:
    """Return the phrases that a matching text must contain, in any order.

    Nothing in a query is an operator. What stands together must be found together; spaces separate. A query of
    nothing but punctuation has no phrases, and nothing answers it.
    """
    if len(query) > MAX_QUERY_CHARS:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"a query may have at most {MAX_QUERY_CHARS} characters")
    found = (_phrase(part) for part in fold(query).split())
    phrases = tuple(dict.fromkeys(phrase for phrase in found if phrase is not None))
    if len(phrases) > MAX_QUERY_PHRASES:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"a query may have at most {MAX_QUERY_PHRASES} words")
    return phrases


def terms_of(query: str) -> tuple[Phrase, ...]:
    """The single words of a question, each a phrase of its own: the more of them a text has, the better it answers."""
    words = (
        Phrase((token,), prefix=phrase.prefix and at == len(phrase.tokens) - 1)
        for part in fold(query[:MAX_QUERY_CHARS]).split()
        if (phrase := _phrase(part)) is not None
        for at, token in enumerate(phrase.tokens)
    )
    return tuple(dict.fromkeys(words))[:MAX_QUERY_PHRASES]


def contains_all(text: str, phrases: Sequence[Phrase]) -> bool:
    """Does the text answer the query? What a store with an index must answer too."""
    folded = fold(text)
    if not phrases or any(token not in folded for phrase in phrases for token in phrase.tokens):
        return False  # every token is a stretch of the folded text, so most texts need not be cut at all
    tokens = tokens_of(text)
    return all(_stands_in(tokens, phrase) for phrase in phrases)


def fold(text: str) -> str:
    """Without the differences that do not matter: case, width, accents over letters."""
    if text.isascii():
        return text.lower()
    text = _heaps.sub(_without_heaps, text)
    plain = normalize("NFKC", normalize("NFKC", text).casefold())
    decomposed = normalize("NFD", plain)
    return normalize("NFC", _accents.sub("", decomposed)) if _accents.search(decomposed) else plain


def _without_heaps(stretch: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in stretch[0]:
        marks = marks + 1 if combining(character) else 0
        if marks <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def _tokens(piece: str) -> Iterator[str]:
    if _unspaced.match(piece):
        return _pairs(piece)
    if len(piece) == 1 and not piece.isalnum() and not _is_symbol(piece):
        return iter(())
    return _bounded(piece)


def _pairs(run: str) -> Iterator[str]:
    yield from (run[at : at + 2] for at in range(len(run) - 1))
    yield run[-1]


def _bounded(word: str) -> Iterator[str]:
    return (word[at : at + MAX_TOKEN_CHARS] for at in range(0, len(word), MAX_TOKEN_CHARS))


@lru_cache(maxsize=1024)
def _is_symbol(character: str) -> bool:
    return character in ASCII_SYMBOLS if character.isascii() else category(character) in _SYMBOLS


def _phrase(part: str) -> Phrase | None:
    tokens = tokens_of(part)
    if not tokens:
        return None
    if not _unspaced.match(tokens[-1]):
        return Phrase(tuple(tokens))
    if len(tokens) > 1 and len(tokens[-2]) == 2 and _unspaced.match(tokens[-2]):
        return Phrase(tuple(tokens[:-1]))  # in the text the run may go on, so its end is not asked for
    return Phrase(tuple(tokens), prefix=True)


def _stands_in(tokens: Sequence[str], phrase: Phrase) -> bool:
    *first, last = phrase.tokens
    width = len(first)
    for at in range(len(tokens) - width):
        end = tokens[at + width]
        if (end == last or (phrase.prefix and end.startswith(last))) and list(tokens[at : at + width]) == first:
            return True
    return False


LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with `prefix`; None when nothing comes after them."""
    kept = prefix.rstrip(chr(LAST))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)
