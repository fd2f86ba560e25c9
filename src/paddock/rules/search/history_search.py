"""Queries of a transcript search: words and filters, read from a runner's request. Pure; stores answer them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import WHOLE, TranscriptRow, View
from paddock.rules.search.tokens import Phrase, matches, phrases_of
from paddock.rules.values import Value

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
            and matches(row.content, self.phrases)
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
