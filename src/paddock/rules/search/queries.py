"""Queries of searches, in one transcript or over a user's conversations, and the words shown around a hit. Pure.

Stores answer them with the tokens of `tokens.py`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, cast

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import WHOLE, SessionSummary, TranscriptRow, View
from paddock.rules.search.tokens import Phrase, contains_all, fold, phrases_of
from paddock.rules.values import Value, replace

MAX_HITS = 100
MAX_NAMES = 32
ROLES = ("user", "assistant", "tool", "system")
FILTERS = ("conversation_id", "thread_id", "event_types", "roles", "after", "before")

ITEMS_OF: Mapping[str, tuple[tuple[str, str], ...]] = {
    "message.received": (("user", "message"),),
    "message.completed": (("assistant", "message"),),
    "tool.call.started": (("assistant", "tool_call"),),
    "tool.call.completed": (("tool", "tool_result"),),
    "message": (("user", "message"), ("assistant", "message")),
    "tool_call": (("assistant", "tool_call"),),
    "tool_result": (("tool", "tool_result"),),
    "system": (("system", "system"),),
}
"""Which items (role, item type) an event type leaves in the transcript; item types are accepted as well."""


class TranscriptQuery(Value, frozen=True):
    """Items of one conversation that contain every phrase and pass every filter; None filters nothing."""

    phrases: tuple[Phrase, ...]
    limit: int = 10
    roles: frozenset[str] | None = None
    kinds: frozenset[tuple[str, str]] | None = None
    """Pairs of role and item type."""
    after: float | None = None
    before: float | None = None
    """Only items made later, or earlier, than this; epoch seconds."""
    view: View = WHOLE
    before_seq: int | None = None
    """Only items before this place: where an earlier answer ended."""

    def answered_by(self, row: TranscriptRow) -> bool:
        return (
            self.view.shows(row.subthread_id)
            and (self.before_seq is None or row.seq < self.before_seq)
            and (self.roles is None or row.role in self.roles)
            and (self.kinds is None or (row.role, row.item_type) in self.kinds)
            and (self.after is None or row.created_at > self.after)
            and (self.before is None or row.created_at < self.before)
            and contains_all(row.content, self.phrases)
        )

    def scan(self, newest_first: Iterable[TranscriptRow]) -> list[TranscriptRow]:
        """The answer, by reading item after item: the truth that an index only makes faster."""
        return list(islice(filter(self.answered_by, newest_first), self.limit))


def transcript_query(query: str, filters: Mapping[str, Any], top_k: int) -> TranscriptQuery:
    """Read a search; raises HostError(INVALID_ARGUMENT) with a sentence for what cannot be meant."""
    if not query.strip():
        raise _invalid("query is empty: name at least one word to look for")
    if not 1 <= top_k <= MAX_HITS:
        raise _invalid(f"top_k must be from 1 to {MAX_HITS}")
    unknown = next((name for name in filters if name not in FILTERS), None)
    if unknown is not None:
        raise _invalid(f"there is no filter {unknown[:64]!r}; known are {', '.join(FILTERS)}")
    kinds = _names(filters, "event_types")
    return TranscriptQuery(
        phrases=phrases_of(query),
        limit=top_k,
        roles=_roles(filters),
        kinds=None if kinds is None else frozenset(pair for kind in kinds for pair in ITEMS_OF.get(kind, ())),
        after=_seconds(filters, "after"),
        before=_seconds(filters, "before"),
    )


def conversation_of(filters: Mapping[str, Any]) -> str | None:
    """The conversation asked for, None for the run's own."""
    return _checked(filters, "conversation_id", lambda value: isinstance(value, str), "a conversation's id")


def subthread_of(filters: Mapping[str, Any]) -> str | None:
    """The platform's thread asked for, None for the run's own."""
    return _checked(filters, "thread_id", lambda value: isinstance(value, str), "a thread's id")


def _roles(filters: Mapping[str, Any]) -> frozenset[str] | None:
    roles = _names(filters, "roles")
    if roles is not None and not roles <= frozenset(ROLES):
        raise _invalid(f"filters.roles may name {', '.join(ROLES)}")
    return roles


def _names(filters: Mapping[str, Any], name: str) -> frozenset[str] | None:
    value = _checked(filters, name, _is_names, f"a list of at most {MAX_NAMES} names")
    return None if value is None else frozenset(value)


def _is_names(value: object) -> bool:
    if not isinstance(value, list):
        return False
    names = cast("Sequence[object]", value)
    return len(names) <= MAX_NAMES and all(isinstance(name, str) for name in names)


def _seconds(filters: Mapping[str, Any], name: str) -> float | None:
    return _checked(filters, name, _is_number, "a time in epoch seconds")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked(filters: Mapping[str, Any], name: str, fits: Callable[[object], bool], what: str) -> Any:
    value = filters.get(name)
    if value is not None and not fits(value):
        raise _invalid(f"filters.{name} must be {what}")
    return value


def _invalid(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)


MAX_QUERY = 200
MIN_BEGINNING = 3
"""The last word of a query may be the beginning of one, from this many letters on: people look while they type."""
SNIPPET_CHARS = 160
_LEAD = 40
"""Characters shown before the first hit."""


class ThreadQuery(Value, frozen=True):
    """Conversations of one user of which the title, or one message, holds every phrase; the newest first."""

    workspace_id: str
    user_id: str
    phrases: tuple[Phrase, ...]
    before: int | None = None
    """Only conversations opened before this number."""
    archived: bool | None = None
    limit: int = 50

    def takes(self, row: SessionSummary) -> bool:
        mine = (row.workspace_id, row.user_id) == (self.workspace_id, self.user_id)
        return mine and self.archived in (None, row.archived) and (self.before is None or row.number < self.before)


class FoundThread(Value, frozen=True):
    """A conversation, and the newest message that answers; None when only the title does."""

    summary: SessionSummary
    item: TranscriptRow | None


class FoundThreads(Value, frozen=True):
    """A page of the answer. Not complete while older conversations are still on their way into the index."""

    threads: Sequence[FoundThread]
    complete: bool = True


class Piece(Value, frozen=True):
    """A stretch of text, and whether it is what was looked for."""

    text: str
    hit: bool = False


def thread_phrases(query: str) -> tuple[Phrase, ...]:
    """Read what somebody typed; raises HostError(INVALID_ARGUMENT) with a sentence for what cannot be meant."""
    if not query.strip():
        raise HostError(ErrorCode.INVALID_ARGUMENT, "query is empty: name at least one word to look for")
    if len(query) > MAX_QUERY:
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"query may have at most {MAX_QUERY} characters")
    phrases = phrases_of(query)
    last = () if query[-1].isspace() else phrases_of(query.rsplit(maxsplit=1)[-1])
    if last and len(last[0].tokens[-1]) >= MIN_BEGINNING:
        return (*(phrase for phrase in phrases if phrase != last[0]), replace(last[0], prefix=True))
    return phrases


def titled(summary: SessionSummary, phrases: Sequence[Phrase]) -> bool:
    return bool(summary.title) and contains_all(summary.title or "", phrases)


def owner_mark(workspace_id: str, user_id: str) -> str:
    """Return the token that marks every indexed text of a user. No text can contain it, because there `@` stands
    alone."""
    return "@" + blake2b(f"{workspace_id}\0{user_id}".encode(errors="surrogatepass"), digest_size=12).hexdigest()


def snippet(text: str, phrases: Sequence[Phrase]) -> tuple[Piece, ...]:
    """A line of the text around the first hit, cut into what was looked for and what stands around it."""
    line = " ".join(text.split())
    spans = _spans(line, phrases)
    start = _start(line, spans[0][0]) if spans else 0
    end = min(len(line), start + SNIPPET_CHARS)
    pieces = [Piece("…")] if start else []
    at = start
    for first, last in spans:
        if first >= end:
            break
        pieces += [Piece(line[at:first])] * (first > at)
        pieces.append(Piece(line[first : min(last, end)], hit=True))
        at = min(last, end)
    return (*pieces, *[Piece(line[at:end])] * (end > at), *[Piece("…")] * (end < len(line)))


def _start(line: str, hit: int) -> int:
    if hit <= _LEAD:
        return 0
    space = line.find(" ", hit - _LEAD, hit)
    return hit - _LEAD if space < 0 else space + 1


def _spans(line: str, phrases: Sequence[Phrase]) -> list[tuple[int, int]]:
    folded, places = _places(line)
    found = sorted(
        (places[match.start()], places[match.end() - 1] + 1)
        for pattern in _patterns(phrases)
        for match in pattern.finditer(folded)
    )
    joined: list[tuple[int, int]] = []
    for first, last in found:
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _places(line: str) -> tuple[str, Sequence[int]]:
    """The folded text, and where each of its characters comes from."""
    folded = fold(line)
    if len(folded) == len(line):
        return folded, range(len(line))
    pieces = [(fold(character), at) for at, character in enumerate(line)]
    return "".join(piece for piece, _ in pieces), [at for piece, at in pieces for _ in piece]


def _patterns(phrases: Sequence[Phrase]) -> Iterator[re.Pattern[str]]:
    for phrase in phrases:
        *first, last = phrase.tokens
        yield from (_pattern(token, whole=True) for token in first)
        yield _pattern(last, whole=not phrase.prefix)


def _pattern(token: str, *, whole: bool) -> re.Pattern[str]:
    word = token.isascii() and token.isalnum()
    before, after = ("(?<![a-z0-9])" if word else ""), ("(?![a-z0-9])" if word and whole else "")
    return re.compile(before + re.escape(token) + after)
