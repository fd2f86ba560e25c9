"""The part of schema step `salted_digests` that SQL cannot do: salts for every log of the file."""

import os

from paddock.rules.log.chain import Head
from paddock.rules.log.resalting import Resalting
from paddock.storage.sqlite.connection import Connection
from paddock.storage.sqlite.reader import fact_of
from paddock.storage.sqlite.rows import FACT

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SESSIONS = "select session_no, session_id, head_seq, head_digest, trimmed_seq, trimmed_digest from sessions"
_FACTS = f"select {FACT} from facts where session_no = ? order by seq"
_FACT = "update facts set payload = ?, metadata = ?, digest = ? where session_no = ? and position = ? and seq = ?"
_ENDS = "update sessions set head_digest = ?, trimmed_digest = ? where session_no = ?"


def resalt(connection: Connection) -> None:
    """Salt everything, within the transaction of the step."""
    for number, session_id, *ends in connection.execute(_SESSIONS).fetchall():
        work = Resalting(Head(*ends[:2]), Head(*ends[2:]), os.urandom)
        facts = map(fact_of, connection.execute(_FACTS, (number,)).fetchall())
        for fact in work.facts(facts):
            place = (number, fact.position, fact.seq)
            connection.execute(_FACT, (fact.payload, fact.metadata, fact.digest, *place))
        connection.execute(_ENDS, (work.head.digest, work.trimmed.digest, number))
        _requests(connection, work, number, session_id)


def _requests(connection: Connection, work: Resalting, number: int, session_id: str) -> None:
    inbox = "select body_hash, run_id, created_at, key from inbox where session_no = ?"
    for *about, key in connection.execute(inbox, (number,)).fetchall():
        new = work.body_hash(*about)
        connection.execute("update inbox set body_hash = ? where session_no = ? and key = ?", (new, number, key))
    events = "select body_hash, run_id, received_at, platform, event_id from platform_events where session_id = ?"
    change = "update platform_events set body_hash = ? where platform = ? and event_id = ?"
    for *about, platform, event_id in connection.execute(events, (session_id,)).fetchall():
        connection.execute(change, (work.body_hash(*about), platform, event_id))
