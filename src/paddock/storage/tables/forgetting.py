"""How things are forgotten: trimmed logs, erased words, deleted conversations, rows past their time.

PostgreSQL takes a deleted conversation away in one commit. The embedded store has one writer for everybody, so it puts
the conversation out of reach, and `purge` removes what it leaves part by part.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from paddock.ports.records import OldRows
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import DELTA
from paddock.rules.log.forgetting import OldFact, OldSession, first_id_after
from paddock.rules.rows import forgetting as rows
from paddock.storage.tables.conversations import NUMBER, TURNS
from paddock.storage.tables.statements import Ask, Change, HasEngine, Query, Work, Write, ask, in_turn, long, value

# ruff: noqa: S608 - the table names are our own, values are always bound
BURIED = "deleted:"
"""How the name of a deleted session begins, so that nobody finds it while its rows are removed."""
_OWNED = "select session_no, epoch from sessions where session_id = :session_id /*postgres for update*/"
_OF_RUNS = (
    """
delete from approval_steps where approval_id in (
  select approval_id from approvals where run_id = any(:runs::text[]))""",
    *(f"delete from {table} where run_id = any(:runs::text[])" for table in ("approvals", "tool_calls", "runs")),
)
_OF_LOG = (
    *(f"delete from {table} where session_no = :number" for table in ("inbox", "left_behind")),
    *(f"/*postgres delete from {name} where session_no = :number*/" for name in ("facts", "transcript", "search")),
    f"""/*sqlite
update sessions set session_id = '{BURIED}' || session_id, workspace_id = '', user_id = '' where session_no = :number*/
/*postgres delete from sessions where session_no = :number*/""",
)
_OF_SESSION = (
    *(
        f"delete from {table} where session_id = :session_id"
        for table in (
            *("session_details", "kept_members", "transactions", "feedback", "thread_names"),
            *("platform_events", "platform_conversations", "deliveries"),
        )
    ),
    "delete from artifacts where conversation_id = :session_id",
    "delete from state where scope_key = any(:scope_keys::text[])",
)
_BURY = """
insert into tombstones (session_id, deleted_at) values (:session_id, :buried_at) on conflict (session_id) do nothing"""
_FEWER_WORDS = f"""
update sessions set word_bytes = greatest(0, word_bytes + coalesce((
  select sum(:left::bigint - octet_length(payload)) from facts
   where session_no = :number and kind <> '{DELTA}' and {{which}}), 0)) where session_no = :number"""
"""Facts are about to have so many bytes each."""
_TRIMMED = "session_no = :number and position <= :through and seq <= :through"
FORGET_WORDS = (
    "delete from thread_search_progress where session_no = :number",  # first: whoever is just filling holds it
    """
delete from thread_search where
 /*sqlite rowid >= :number << 32 and rowid < (:number + 1) << 32*/ /*postgres session_no = :number*/""",
)
"""The index that conversations are found by is filled again when somebody looks."""


_OUT_OF_REACH = f"""
/*sqlite select session_no from sessions where session_id >= '{BURIED}' and session_id < '{BURIED[:-1]};' limit 1*/"""
_REST = (
    """
delete from facts where fact_no in (
  select fact_no from facts where session_no = :number limit :limit) returning 1""",
    """
delete from transcript where session_no = :number
   and seq in (select seq from transcript where session_no = :number limit :limit) returning 1""",
)


def _forget(row: rows.SessionGone) -> Work[None]:
    found = yield Ask(_OWNED, row)
    if found:
        number, epoch = found[0]
        if row.epoch is not None and epoch > row.epoch:
            raise HostError(ErrorCode.CONFLICT, rows.GONE_ON, retryable=True)
        runs = [run for (run,) in (yield ask(TURNS.format(number=":number"), number=number))]
        for sql in (*_OF_RUNS, *_OF_LOG):
            yield ask(sql, runs=runs, number=number)
    for sql in _OF_SESSION:
        yield Ask(sql, row)
    if row.buried_at is not None:
        yield Ask(_BURY, row)


def _out_of_reach() -> Work[int | None]:
    found = yield ask(_OUT_OF_REACH)
    return found[0][0] if found else None


def _purge(limit: int) -> Work[int]:
    number = yield from _out_of_reach()
    if number is None:
        return 0
    count, where = 0, {"number": number, "limit": limit}
    for sql in _REST:
        count += len((yield ask(sql, **where)))
    if not count:
        yield ask("delete from sessions where session_no = :number", **where)
    return count or 1


def _trim(row: rows.LogTrimmed) -> Work[None]:
    [(number,)] = yield Ask(f"select {NUMBER}", row)
    [(last,)] = yield ask(f"select max(time) from facts where {_TRIMMED}", number=number, through=row.through)
    where = {"number": number, "through": row.through, "last": last, "session_id": row.session_id, "left": 0}
    # The digests of what was asked go with what was said.
    yield ask("update inbox set body_hash = no_bytes() where session_no = :number and created_at <= :last", **where)
    yield ask(
        "update platform_events set body_hash = no_bytes() where session_id = :session_id and received_at <= :last",
        **where,
    )
    yield ask(_FEWER_WORDS.format(which="position <= :through and seq <= :through"), **where)
    yield ask(f"delete from facts where {_TRIMMED}", **where)
    items = yield ask("delete from transcript where session_no = :number and seq <= :through returning seq", **where)
    sql = """
update sessions set trimmed_seq = :through, trimmed_digest = :digest, item_count = item_count - :items::bigint
 where session_no = :number"""
    yield ask(sql, **where, digest=row.digest, items=len(items))


def _erase_fact(row: rows.FactErased) -> Work[None]:
    found = yield Ask("select session_no from sessions where session_id = :session_id", row)
    if found:
        place = {"number": found[0][0], "left": len(row.payload), "position": row.position, "seq": row.seq}
        yield ask(_FEWER_WORDS.format(which="position = :position and seq = :seq"), **place)
    yield Ask(
        f"""
update facts set payload = :payload, metadata = :metadata
 where session_no = {NUMBER} and position = :position and seq = :seq""",
        row,
    )


def _settle(row: rows.SessionSettled) -> Work[None]:
    """The index carries the mark of a conversation's owner."""
    [(number,)] = yield Ask(f"select {NUMBER}", row)
    yield ask("/*postgres update sessions set boot = null where session_no = :number*/", number=number)
    for sql in FORGET_WORDS:
        yield ask(sql, number=number)


WRITES: Mapping[type, Write] = {
    rows.SessionGone: _forget,
    rows.SessionSettled: _settle,
    rows.LogTrimmed: _trim,
    rows.FactErased: _erase_fact,
    rows.ItemErased: in_turn(
        Change(f"""
update transcript set content = :content, content_json = :content_json, metadata = :metadata
 where session_no = {NUMBER} and seq = :seq"""),
        Change("delete from deliveries where session_id = :session_id and number / 1000 = :seq"),
    ),
    rows.CallsErased: in_turn(
        Change("""
update tool_calls set parameters = no_bytes(), result = no_bytes() where run_id = :run_id and tool_name = :tool_name""")
    ),
    rows.RequestsErased: in_turn(
        Change(f"""
update inbox set body_hash = no_bytes()
 where session_no = {NUMBER} and (run_id = :run_id or created_at >= :since)"""),
        Change("""
update platform_events set body_hash = no_bytes()
 where session_id = :session_id and (run_id = :run_id or received_at >= :since)"""),
    ),
}


class Old(NamedTuple):
    """Rows of a table that are forgotten by age: which keys are old, and what is deleted for them."""

    which: str
    forget: Sequence[str]


def _by(table: str, key: str, which: str, kind: str = "text") -> Old:
    return Old(f"select {key} from {which}", (f"delete from {table} where {key} = any(:keys::{kind}[]) returning 1",))


def _by_number(table: str, number: str, time: str) -> Old:
    """Numbered in order of time, but for what hosts with different clocks wrote at once: the oldest are the first."""
    first = f"(select {number}, {time} from {table} order by {number} limit 4 * :limit::bigint) as first"
    return _by(table, number, f"{first} where {time} < :before limit :limit", "bigint")


def _by_time(table: str, time: str) -> Old:
    """Old rows by time; rows of one moment are old together."""
    first = f"select {time} from {table} where {time} < :before order by {time} limit :limit"
    return Old(
        f"select max({time}) from ({first}) as first", (f"delete from {table} where {time} <= :last returning 1",)
    )


_OLD_APPROVALS = _by("approvals", "approval_id", "approvals where created_at < :before limit :limit")
OLD: Mapping[str, Old] = {
    "audit": _by_number("audit", "audit_no", "time"),
    "tool_calls": _by_number("tool_calls", "call_no", "started_at"),
    "model_usage": _by_number("model_usage", "usage_no", "started_at"),
    "approvals": Old(
        _OLD_APPROVALS.which,
        ("delete from approval_steps where approval_id = any(:keys::text[])", *_OLD_APPROVALS.forget),
    ),
    "deliveries": _by("deliveries", "delivery_id", "deliveries where created_at < :before limit :limit"),
    "platform_events": _by_time("platform_events", "received_at"),
    "automation_ticks": _by_time("automation_ticks", "at"),
    "tombstones": _by("tombstones", "session_id", "tombstones where deleted_at < :before limit :limit"),
    # Ids of runs are in order of time, so the old ones are one range of the table.
    "runs": _by(
        "runs",
        "run_id",
        """runs r where run_id < :first and ended_at < :before and not exists (
  select 1 from sessions s where s.session_id = r.session_id and s.trimmed_seq < r.last_seq)
 order by run_id limit :limit""",
    ),
}
"""None of it reads more of a table than it finds, however large that is."""
_WORDS = Query(
    value,
    """
select coalesce(sum(word_bytes), 0)::bigint from sessions
 where workspace_id = :workspace_id and (:user_id::text is null or user_id = :user_id)""",
)


def _forget_old(old: Old, keys: Sequence[Any]) -> Work[int]:
    gone: Sequence[Any] = ()
    for sql in old.forget:
        gone = yield ask(sql, keys=keys, last=keys[0])
    return len(gone)


class ForgettingReads(HasEngine):
    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        [words] = await self.engine.long(_WORDS, workspace_id=workspace_id, user_id=user_id)
        return words

    sessions_opened_before = long(
        OldSession,
        """
select session_no, session_id, workspace_id, user_id, updated_at, trimmed_seq from sessions
 where created_at < :time and session_no > :after /*sqlite and user_id <> ''*/ order by session_no limit :limit""",
        after=0,
        limit=200,
    )
    oldest_facts = long(
        OldFact,
        f"select {{columns}} from facts where session_no = {NUMBER} order by position, seq limit :limit",
        limit=1000,
    )

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        old = OLD[kind]
        asked = {"before": before, "limit": limit, "first": first_id_after(before) if kind == "runs" else ""}
        keys = [key for key in await self.engine.long(Query(value, old.which), **asked) if key is not None]
        return await self.engine.do(partial(_forget_old, old, keys)) if keys else 0

    async def purge(self, *, limit: int = 500) -> int:
        if await self.engine.ask(_out_of_reach) is None:
            return 0
        return await self.engine.do(partial(_purge, limit))
