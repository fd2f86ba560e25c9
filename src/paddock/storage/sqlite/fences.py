"""The fence of every append: one row per session says who may write and where the log ends.

All batches of a group pass in as few statements as can be, because every statement hands the interpreter to the event
loop and has to win it back. A batch whose epoch is outdated, or that does not go on from the head, passes none.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

from paddock.ports import Batch
from paddock.rules.log.chain import word_bytes
from paddock.rules.rows.rows import SessionRow, TranscriptRow
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.tables.statements import Values

SIZES = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Rows in one statement: so few sizes that all stay prepared, so many that most groups need two at most."""
_OPEN = """
insert into sessions (session_id, workspace_id, user_id, created_at, updated_at,
                      epoch, head_seq, head_digest, item_count, word_bytes, snapshot_seq, snapshot)
values {rows}
on conflict (session_id) do nothing returning session_id, session_no"""

_ADVANCE = """
with batch (session_id, epoch, before, head_seq, head_digest, items, words, time, snapshot_seq, snapshot)
  as (values {rows})
update sessions
   set epoch = batch.epoch, head_seq = batch.head_seq, head_digest = batch.head_digest,
       item_count = item_count + batch.items, word_bytes = word_bytes + batch.words,
       updated_at = coalesce(batch.time, updated_at),
       snapshot_seq = coalesce(batch.snapshot_seq, sessions.snapshot_seq),
       snapshot = coalesce(batch.snapshot, sessions.snapshot)
  from batch
 where sessions.session_id = batch.session_id and sessions.epoch <= batch.epoch and sessions.head_seq = batch.before
returning session_id, session_no"""


def chunks(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """All rows in few parts, each of a size that there is a statement for."""
    start = 0
    for size in SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def pass_fences(cursor: Cursor, batches: Sequence[Batch], owners: Mapping[str, int]) -> Sequence[int | None]:
    """The session's number for each batch that may be written, None for each that may not."""
    numbers: list[int | None] = []
    wave: dict[str, Batch] = {}
    for batch in batches:
        if batch.session_id in wave:  # its turn comes after the batch before it
            numbers += _pass_wave(cursor, wave, owners)
            wave = {}
        wave[batch.session_id] = batch
    return [*numbers, *_pass_wave(cursor, wave, owners)]


def _pass_wave(cursor: Cursor, wave: Mapping[str, Batch], owners: Mapping[str, int]) -> Sequence[int | None]:
    """At most one batch per session."""
    opening: list[Values] = []
    advancing: list[Values] = []
    for session_id, batch in wave.items():
        if owners.get(session_id, 0) > batch.epoch:
            continue
        opened, items = None, 0
        for row in batch.rows:
            if type(row) is TranscriptRow:
                items += 1
            elif type(row) is SessionRow:
                opened = row
        if opened is None:
            advancing.append(_advance(batch, items))
        elif not batch.before.seq:
            opening.append(_open(batch, opened, items))
    passed = {**_execute(cursor, _OPEN, opening), **_execute(cursor, _ADVANCE, advancing)}
    return [passed.get(session_id) for session_id in wave]


def _execute(cursor: Cursor, statement: str, rows: Sequence[Values]) -> Mapping[str, int]:
    passed: dict[str, int] = {}
    for chunk in chunks(rows):
        found = cursor.execute(_for(statement, len(chunk), len(chunk[0])), tuple(chain.from_iterable(chunk)))
        passed.update(found.fetchall())
    return passed


@cache
def _for(statement: str, count: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return statement.format(rows=", ".join([row] * count))


def _advance(batch: Batch, items: int) -> Values:
    after, time = batch.after, batch.facts[-1].time if batch.facts else None
    snapshot = (after.seq, batch.snapshot) if batch.snapshot else (None, None)
    words = word_bytes(batch.facts)
    return batch.session_id, batch.epoch, batch.before.seq, after.seq, after.digest, items, words, time, *snapshot


def _open(batch: Batch, row: SessionRow, items: int) -> Values:
    who = (row.session_id, row.workspace_id, row.user_id, row.created_at, row.created_at)
    place = (batch.epoch, batch.after.seq, batch.after.digest, items, word_bytes(batch.facts))
    return *who, *place, batch.after.seq if batch.snapshot else 0, batch.snapshot
