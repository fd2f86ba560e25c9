"""The part of schema step `salted_digests` that SQL cannot do: salts for every log of the database."""

import os

from paddock.rules.log.chain import Head
from paddock.rules.log.resalting import Resalting
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.log import FACT, fact_of
from paddock.storage.postgres.ownership import keep_hosts_out

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SESSIONS = "select session_no, session_id, head_seq, head_digest, trimmed_seq, trimmed_digest from sessions"
_FACTS = f"select {FACT} from facts where session_no = $1 order by seq"
_FACT = "update facts set payload = $1, metadata = $2, digest = $3 where session_no = $4 and position = $5 and seq = $6"
_ENDS = "update sessions set head_digest = $1, trimmed_digest = $2 where session_no = $3"


async def resalt(connection: Connection) -> None:
    """Salt everything, within the transaction of the step. Raises StorageUnavailableError while hosts serve it."""
    await keep_hosts_out(connection)
    for number, session_id, *ends in await connection.fetch(_SESSIONS):
        work = Resalting(Head(*ends[:2]), Head(*ends[2:]), os.urandom)
        facts = map(fact_of, await connection.fetch(_FACTS, number))
        for fact in work.facts(facts):
            place = (number, fact.position, fact.seq)
            await connection.execute(_FACT, fact.payload, fact.metadata, fact.digest, *place)
        await connection.execute(_ENDS, work.head.digest, work.trimmed.digest, number)
        await _requests(connection, work, number, session_id)


async def _requests(connection: Connection, work: Resalting, number: int, session_id: str) -> None:
    inbox = "select body_hash, run_id, created_at, key from inbox where session_no = $1"
    for *about, key in await connection.fetch(inbox, number):
        change = "update inbox set body_hash = $1 where session_no = $2 and key = $3"
        await connection.execute(change, work.body_hash(*about), number, key)
    events = "select body_hash, run_id, received_at, platform, event_id from platform_events where session_id = $1"
    for *about, platform, event_id in await connection.fetch(events, session_id):
        change = "update platform_events set body_hash = $1 where platform = $2 and event_id = $3"
        await connection.execute(change, work.body_hash(*about), platform, event_id)
