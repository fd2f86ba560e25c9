"""The part of schema step `subthreads` that SQL cannot do: what logs of platforms say about threads and speakers."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from paddock.rules.rows.rebuilding import tables_of
from paddock.rules.rows.rows import SessionRow
from paddock.storage.sqlite.connection import Connection
from paddock.storage.sqlite.reader import fact_of
from paddock.storage.sqlite.rows import FACT

_SESSIONS = """
select session_no, session_id, workspace_id, user_id, created_at from sessions
 where session_id in (select session_id from platform_conversations)"""
_FACTS = f"select {FACT} from facts where session_no = ? order by seq"
_ITEM = "update transcript set subthread_id = ?, metadata = ? where session_no = ? and seq = ?"
_RUN = "update runs set subthread_id = ? where run_id = ?"


def fill(connection: Connection) -> None:
    """Write it beside the items and runs, within the transaction of the step."""
    for number, *who in connection.execute(_SESSIONS).fetchall():
        told = tables_of(SessionRow(*who), map(fact_of, connection.execute(_FACTS, (number,)).fetchall()))
        for item in told.items.values():
            connection.execute(_ITEM, (item.subthread_id, item.metadata, number, item.seq))
        for run in told.runs.values():
            connection.execute(_RUN, (run.subthread_id, run.run_id))
