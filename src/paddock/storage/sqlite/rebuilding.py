"""Compares the tables beside the log with the log, and puts them right. For a file that no host is writing, or, when
only compared, for one that is: each conversation is looked at in one state of the database.
"""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from paddock.rules.rows.rebuilding import Difference, Tables, differences, tables_of
from paddock.rules.rows.rows import RunRow, SessionRow, TranscriptRow
from paddock.storage.sqlite.connection import Connection, open_reader, open_writer
from paddock.storage.sqlite.migrate import migrate
from paddock.storage.sqlite.reader import Reader
from paddock.storage.sqlite.rows import ITEM, ITEMS, RUN, TABLES

PAGE = 500
_SESSIONS = """
select session_no, session_id, workspace_id, user_id, created_at, trimmed_seq from sessions
 where session_no > ? order by session_no limit ?"""
_ITEMS = f"select seq, {ITEM} from transcript where session_no = ? order by seq"
_RUNS = f"""
select {RUN} from runs where session_id = ?1 and last_seq > ?3 and run_id in (
  select turn_id from facts where session_no = ?2 and turn_id is not null union
  select run_id from inbox where session_no = ?2)"""
_COUNT = "update sessions set item_count = (select count(*) from transcript t where t.session_no = ?1)"


class _Place(SessionRow, frozen=True):
    """A session with its number and where its log begins."""

    session_no: int = 0
    trimmed_seq: int = 0


def compare(directory: Path) -> Iterator[Difference]:
    """Every row of the data directory that is not what the log says."""
    with closing(open_reader(directory)) as connection:
        for place in _places(connection):
            with connection:
                yield from _compared(connection, place)


def rebuild(directory: Path) -> Iterator[Difference]:
    """The same, and each conversation is put right, in one transaction, before its differences are told."""
    with closing(open_writer(directory)) as connection:
        migrate(connection)
        for place in _places(connection):
            with connection:
                found = _compared(connection, place)
                _put_right(connection, place, found)
            yield from found


def _places(connection: Connection) -> Iterator[_Place]:
    last = -1
    while rows := connection.execute(_SESSIONS, (last, PAGE)).fetchall():
        for number, *who, trimmed in rows:
            yield _Place(*who, session_no=number, trimmed_seq=trimmed)
        last = rows[-1][0]


def _compared(connection: Connection, place: _Place) -> Sequence[Difference]:
    told = tables_of(place, Reader(connection).facts_in_order(place.session_id))
    return differences(place.session_id, _stored(connection, place), told)


def _stored(connection: Connection, place: _Place) -> Tables:
    session_id, number = place.session_id, place.session_no
    items = [TranscriptRow(session_id, *row) for row in connection.execute(_ITEMS, (number,))]
    runs = [RunRow(*row) for row in connection.execute(_RUNS, (session_id, number, place.trimmed_seq))]
    return Tables({item.seq: item for item in items}, {run.run_id: run for run in runs})


def _put_right(connection: Connection, place: _Place, found: Sequence[Difference]) -> None:
    number = place.session_no
    for difference in found:
        for row in (difference.stored, difference.told):
            if isinstance(row, RunRow):
                connection.execute("delete from runs where run_id = ?", (row.run_id,))
            elif row is not None:
                connection.execute("delete from transcript where session_no = ? and seq = ?", (number, row.seq))
        told = difference.told
        if isinstance(told, RunRow):
            connection.execute(TABLES[RunRow].insert(1), TABLES[RunRow].values(told))
        elif told is not None:
            connection.execute(ITEMS.insert(1), (number, *ITEMS.values(told)))
    if any(isinstance(row, TranscriptRow) for one in found for row in (one.stored, one.told)):
        _index_again(connection, number)


def _index_again(connection: Connection, number: int) -> None:
    """The index is filled late and by itself; it only has to be told that it knows nothing of this conversation."""
    connection.execute("delete from search where rowid > ? and rowid < ?", (number << 32, (number + 1) << 32))
    connection.execute("delete from search_progress where session_no = ?", (number,))
    connection.execute("delete from thread_search where rowid >= ? and rowid < ?", (number << 32, (number + 1) << 32))
    connection.execute("delete from thread_search_progress where session_no = ?", (number,))
    connection.execute(f"{_COUNT} where session_no = ?1", (number,))
