"""The tables beside the log compared with the log and put right: works on whole conversations, for commands that look
over a database.
"""

from collections.abc import Sequence

from msgspec.structs import asdict

from paddock.rules.log.chain import Damage
from paddock.rules.log.projection import Difference, Tables, differences, tables_of
from paddock.rules.rows.rows import RunRow, SessionRow, TranscriptRow
from paddock.storage.tables.conversations import ITEMS, RUNS, TURNS
from paddock.storage.tables.forgetting import FORGET_WORDS
from paddock.storage.tables.log import checked, facts_in_order
from paddock.storage.tables.statements import Query, Work, ask, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
PAGE = 500
_SESSIONS = "select session_no from sessions where session_no > :after order by session_no limit :limit"
_PLACE = """
select session_id, workspace_id, user_id, created_at, trimmed_seq from sessions where session_no = :number
/*postgres for update*/"""
_ITEMS = f"select {ITEMS.columns} from transcript where session_no = :number order by seq"
_RUNS = Query(
    RunRow,
    f"""
select {{columns}} from runs
 where session_id = :session_id and last_seq > :trimmed and run_id in ({TURNS.format(number=":number")})""",
)
_ADD_ITEM = f"""
insert into transcript (session_no, {ITEMS.columns}) values (:number, :{ITEMS.columns.replace(", ", ", :")})"""
_ADD_RUN = f"insert into runs ({RUNS.columns}) values (:{RUNS.columns.replace(', ', ', :')})".replace(
    ':"grant"', ":grant"
)
_INDEX_AGAIN = (
    """
delete from search where
 /*sqlite rowid > :number << 32 and rowid < (:number + 1) << 32*/ /*postgres session_no = :number*/""",
    "delete from search_progress where session_no = :number",
    *FORGET_WORDS,
    """
update sessions set item_count = (select count(*) from transcript where session_no = :number)
 where session_no = :number""",
)
"""The index is filled late and by itself; it only has to be told that it knows nothing of this conversation."""
NEEDED = Query(
    value,
    """
select sha256 from (select sha256 from artifacts union select sha256 from storage) as kept
 where sha256 > :after order by sha256 limit :limit""",
)
"""The hashes of all bytes that rows name."""


def session_numbers(after: int) -> Work[Sequence[int]]:
    return [number for (number,) in (yield ask(_SESSIONS, after=after, limit=PAGE))]


def looked_at(number: int) -> Work[tuple[str, Damage | None] | None]:
    """A conversation, with the first damage of its log or None. None when it was deleted since it was listed."""
    found = yield ask("select session_id from sessions where session_no = :number", number=number)
    if not found:
        return None
    return found[0][0], (yield from checked(found[0][0]))


def compared(number: int) -> Work[Sequence[Difference]]:
    """Every row of a conversation that is not what the log says."""
    found = yield ask(_PLACE.replace("for update", ""), number=number)
    if not found:
        return ()
    *who, trimmed = found[0]
    session = SessionRow(*who)
    told = tables_of(session, (yield from facts_in_order(session.session_id)))
    stored = yield from _stored(session.session_id, number, trimmed)
    return differences(session.session_id, stored, told)


def _stored(session_id: str, number: int, trimmed: int) -> Work[Tables]:
    items = [TranscriptRow(session_id, *row) for row in (yield ask(_ITEMS, number=number))]
    runs = [RunRow(*row) for row in (yield _RUNS(session_id=session_id, number=number, trimmed=trimmed))]
    return Tables({item.seq: item for item in items}, {run.run_id: run for run in runs})


def put_right(number: int) -> Work[Sequence[Difference]]:
    yield ask(_PLACE, number=number)  # held until the end
    found = yield from compared(number)
    for difference in found:
        for row in (difference.stored, difference.told):
            if isinstance(row, RunRow):
                yield ask("delete from runs where run_id = :run_id", run_id=row.run_id)
            elif row is not None:
                yield ask(
                    "delete from transcript where session_no = :number and seq = :seq", number=number, seq=row.seq
                )
        told = difference.told
        if isinstance(told, RunRow):
            yield ask(_ADD_RUN, **asdict(told))
        elif told is not None:
            yield ask(_ADD_ITEM, number=number, **asdict(told))
    if any(isinstance(row, TranscriptRow) for one in found for row in (one.stored, one.told)):
        for sql in _INDEX_AGAIN:
            yield ask(sql, number=number)
    return found
