"""The fence of every append: one row per session says who may write and where the log ends.

Batches of one session that follow each other pass as one chain. A chain whose epoch is outdated, that does not go on
from the head, or whose host was declared gone, passes not, and nothing of it is written. Rows are locked in order of
session, so that two hosts whose groups meet wait for each other and never in a circle.
"""

from collections.abc import Sequence
from typing import Any

from paddock.ports import Batch
from paddock.rules.log.chain import word_bytes
from paddock.rules.rows.rows import SessionRow, TranscriptRow
from paddock.storage.postgres.texts import escaped_column
from paddock.storage.tables.statements import Values

_ADVANCING = """
fence as (
  select * from unnest($1::int[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[],
                       $8::bigint[], $9::double precision[], $10::bigint[], $11::bytea[], $12::bigint[], $13::boolean[])
    as f (b, session_id, epoch, before, head_seq, head_digest, items, words, time, snapshot_seq, snapshot, host,
          rests)),
locked as (
  select s.session_no, f.* from sessions as s join fence as f on s.session_id = f.session_id
   order by s.session_id for update of s),
advanced as (
  update sessions as s
     set epoch = f.epoch, head_seq = f.head_seq, head_digest = f.head_digest, item_count = item_count + f.items,
         word_bytes = word_bytes + f.words,
         updated_at = coalesce(f.time, updated_at), snapshot_seq = coalesce(f.snapshot_seq, s.snapshot_seq),
         snapshot = coalesce(f.snapshot, s.snapshot), boot = case when f.rests then null else f.host end
    from locked as f where s.session_no = f.session_no and s.epoch <= f.epoch and s.head_seq = f.before
                       and (f.host is null or exists (select 1 from hosts where boot = f.host and gone is null))
  returning f.b, s.session_no)"""
_OPENING = """
opening as (
  select * from unnest({arrays})
    as o (b, session_id, workspace_id, user_id, created_at, epoch, head_seq, head_digest, items, words,
          snapshot_seq, snapshot, host, rests)),
opened as (
  insert into sessions (session_id, workspace_id, user_id, created_at, updated_at, epoch, head_seq, head_digest,
                        item_count, word_bytes, snapshot_seq, snapshot, boot)
  select session_id, workspace_id, user_id, created_at, created_at, epoch, head_seq, head_digest, items, words,
         snapshot_seq, snapshot, case when rests then null else host end from opening
   where host is null or exists (select 1 from hosts where boot = host and gone is null) order by session_id
  on conflict (session_id) do nothing returning session_id, session_no)"""
_OPENING_TYPES = (
    "int",
    "text",
    "text",
    "text",
    "double precision",
    "bigint",
    "bigint",
    "bytea",
    "bigint",
    "bigint",
    "bigint",
    "bytea",
    "bigint",
    "boolean",
)
NO_BATCH = -1
"""The place of rows that belong to no batch: they pass always."""


class Chain:
    """Batches of one session, each going on where the one before it ended: they pass the fence together."""

    def __init__(self, place: int, batch: Batch) -> None:
        self.place = place
        self.batches = [batch]
        self.opened = next((row for row in batch.rows if type(row) is SessionRow), None)

    @property
    def is_at_the_start(self) -> bool:
        return not self.batches[0].before.seq

    def takes(self, batch: Batch) -> bool:
        last = self.batches[-1]
        goes_on = batch.epoch == last.epoch and batch.before == last.after
        return goes_on and not any(type(row) is SessionRow for row in batch.rows)

    def advance(self, host: int | None) -> Values:
        first, last = self.batches[0], self.batches[-1]
        place = first.session_id, last.epoch, first.before.seq, *self._end(), self._time(), *self._snapshot()
        return *place, host, last.rests

    def open(self, row: SessionRow, host: int | None) -> Values:
        who = (row.session_id, row.workspace_id, row.user_id, row.created_at)
        seq, snapshot = self._snapshot()
        return *who, self.batches[0].epoch, *self._end(), seq or 0, snapshot or b"", host, self.batches[-1].rests

    def _end(self) -> Values:
        after = self.batches[-1].after
        items = sum(type(row) is TranscriptRow for batch in self.batches for row in batch.rows)
        return after.seq, after.digest, items, sum(word_bytes(batch.facts) for batch in self.batches)

    def _time(self) -> float | None:
        return next((batch.facts[-1].time for batch in reversed(self.batches) if batch.facts), None)

    def _snapshot(self) -> tuple[int | None, bytes | None]:
        found = next((batch for batch in reversed(self.batches) if batch.snapshot), None)
        return (found.after.seq, found.snapshot) if found else (None, None)


def fence_sql(*, advancing: bool, opening: bool) -> tuple[str, int]:
    """The beginning of the group's statement, up to `passed`, and the number of the next free parameter."""
    parts, passed, free = list[str](), [f"select {NO_BATCH}, null::bigint"], 1
    if advancing:
        parts.append(_ADVANCING)
        passed.append("select b, session_no from advanced")
        free += 13
    if opening:
        arrays = ", ".join(f"${free + index}::{kind}[]" for index, kind in enumerate(_OPENING_TYPES))
        parts.append(_OPENING.format(arrays=arrays))
        passed.append("select b, session_no from opened join opening using (session_id)")
        free += len(_OPENING_TYPES)
    parts.append(f"\npassed (b, session_no) as ({' union all '.join(passed)})")
    return ",".join(parts), free


def fence_arrays(chains: Sequence[Chain], host: int | None) -> tuple[Sequence[Sequence[Any]], bool, bool]:
    """The values of all fences, and whether there are any of either sort. `host`: the number of the one that writes."""
    advancing = [(chain.place, *chain.advance(host)) for chain in chains if chain.opened is None]
    starts = [chain for chain in chains if chain.is_at_the_start]
    opening = [(chain.place, *chain.open(chain.opened, host)) for chain in starts if chain.opened]
    return [*_columns(advancing, 2), *_columns(opening, 4)], bool(advancing), bool(opening)


def _columns(rows: Sequence[Values], texts_until: int) -> Sequence[Sequence[Any]]:
    columns = list[Sequence[Any]](zip(*rows, strict=True))
    columns[1:texts_until] = [escaped_column(column) for column in columns[1:texts_until]]
    return columns
