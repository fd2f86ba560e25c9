"""How much of a conversation a caller can take, for stores that read it item by item."""

from collections.abc import Iterable, Iterator

from paddock.rules.rows import TranscriptRow


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
