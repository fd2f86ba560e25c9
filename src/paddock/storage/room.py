"""How much a caller can take of a conversation, or of a scope of state, for stores that read it item by item."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from paddock.ports import ScopeState
from paddock.rules.rows.rows import TranscriptRow


def until_full(rows: Iterable[TranscriptRow], room: int | None) -> Iterator[TranscriptRow]:
    """The rows up to the one that uses up `room` bytes; None is room for all."""
    if room is None:
        yield from rows
        return
    for row in rows:
        yield row
        room -= row.stored_bytes
        if room < 0:
            return


Measured = tuple[str, str, int, bytes | None]
"""Scope, key, bytes of the value, and the value itself unless it is too large for anybody."""


def scopes_in(rows: Iterable[Measured], scope_keys: Sequence[str], max_bytes: int) -> Mapping[str, ScopeState]:
    """These scopes, out of rows in order of their keys: the values that fit one after the other into `max_bytes`."""
    sizes, left = defaultdict[str, int](int), dict.fromkeys(scope_keys, max_bytes)
    values: dict[str, dict[str, bytes]] = {scope_key: {} for scope_key in scope_keys}
    out: dict[str, list[str]] = {scope_key: [] for scope_key in scope_keys}
    for scope_key, key, size, value in rows:
        sizes[scope_key] += size
        if value is not None and size <= left[scope_key]:
            values[scope_key][key] = value
            left[scope_key] -= size
        else:
            out[scope_key].append(key)
    return {scope_key: ScopeState(sizes[scope_key], kept, tuple(out[scope_key])) for scope_key, kept in values.items()}
