"""The part of schema step `subthreads` that SQL cannot do: what logs of platforms say about threads and speakers."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from paddock.rules.rows.rebuilding import tables_of
from paddock.rules.rows.rows import SessionRow
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.log import FACT, fact_of

_SESSIONS = """
select session_no, session_id, workspace_id, user_id, created_at from sessions
 where session_id in (select session_id from platform_conversations)"""
_FACTS = f"select {FACT} from facts where session_no = $1 order by seq"
_ITEM = "update transcript set subthread_id = $1, metadata = $2 where session_no = $3 and seq = $4"
_RUN = "update runs set subthread_id = $1 where run_id = $2"


async def fill(connection: Connection) -> None:
    """Write it beside the items and runs, within the transaction of the step."""
    for number, *who in await connection.fetch(_SESSIONS):
        told = tables_of(SessionRow(*who), map(fact_of, await connection.fetch(_FACTS, number)))
        for item in told.items.values():
            await connection.execute(_ITEM, item.subthread_id, item.metadata, number, item.seq)
        for run in told.runs.values():
            await connection.execute(_RUN, run.subthread_id, run.run_id)
