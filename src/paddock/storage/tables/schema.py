"""The schema: steps shipped with this program, files named `0001_what_it_does.sql` in one folder per dialect, and what
some of them do that SQL cannot.
"""

import os
from collections.abc import Sequence
from importlib import resources

from paddock.rules.log.chain import Head, Resalting
from paddock.rules.log.projection import tables_of
from paddock.rules.rows.migrations import Migration
from paddock.rules.rows.rows import SessionRow
from paddock.storage.tables.log import facts_in_order
from paddock.storage.tables.statements import Work, ask
from paddock.storage.tables.whose_state import give_to_owners


def shipped_migrations(dialect: str) -> Sequence[Migration]:
    folder = resources.files("paddock.storage").joinpath("sql", dialect)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_read(name, folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


def _read(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql)


def find_subthreads() -> Work[None]:
    """Step `subthreads`: what the logs of platforms say about threads and speakers."""
    sessions = yield ask("""
select session_no, session_id, workspace_id, user_id, created_at from sessions
 where session_id in (select session_id from platform_conversations)""")
    for number, *who in sessions:
        session = SessionRow(*who)
        told = tables_of(session, (yield from facts_in_order(session.session_id)))
        for item in told.items.values():
            sql = """
update transcript set subthread_id = :subthread_id, metadata = :metadata where session_no = :number and seq = :seq"""
            yield ask(sql, subthread_id=item.subthread_id, metadata=item.metadata, number=number, seq=item.seq)
        for run in told.runs.values():
            sql = "update runs set subthread_id = :subthread_id where run_id = :run_id"
            yield ask(sql, subthread_id=run.subthread_id, run_id=run.run_id)


def resalt() -> Work[None]:
    """Step `salted_digests`: salts for every log."""
    sessions = yield ask("""
select session_no, session_id, head_seq, head_digest, trimmed_seq, trimmed_digest from sessions""")
    for number, session_id, *ends in sessions:
        work = Resalting(Head(*ends[:2]), Head(*ends[2:]), os.urandom)
        for fact in work.facts((yield from facts_in_order(session_id))):
            sql = """
update facts set payload = :payload, metadata = :metadata, digest = :digest
 where session_no = :number and position = :position and seq = :seq"""
            place = {"number": number, "position": fact.position, "seq": fact.seq}
            yield ask(sql, payload=fact.payload, metadata=fact.metadata, digest=fact.digest, **place)
        sql = "update sessions set head_digest = :head, trimmed_digest = :trimmed where session_no = :number"
        yield ask(sql, head=work.head.digest, trimmed=work.trimmed.digest, number=number)
        yield from _resalt_requests(work, number, session_id)


def _resalt_requests(work: Resalting, number: int, session_id: str) -> Work[None]:
    orders = yield ask("select body_hash, run_id, created_at, key from inbox where session_no = :number", number=number)
    for *about, key in orders:
        sql = "update inbox set body_hash = :body_hash where session_no = :number and key = :key"
        yield ask(sql, body_hash=work.body_hash(*about), number=number, key=key)
    sql = (
        "select body_hash, run_id, received_at, platform, event_id from platform_events where session_id = :session_id"
    )
    for *about, platform, event_id in (yield ask(sql, session_id=session_id)):
        sql = "update platform_events set body_hash = :body_hash where platform = :platform and event_id = :event_id"
        yield ask(sql, body_hash=work.body_hash(*about), platform=platform, event_id=event_id)


STEPS = {"salted_digests": resalt, "subthreads": find_subthreads, "whose_state": give_to_owners}
"""By the name of the schema step, in whose transaction it is done."""
