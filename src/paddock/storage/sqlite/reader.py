"""What is looked up: every query over committed data, on a connection that cannot write. No transactions here."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import apsw

from paddock.ports import ApiKeyRow, Claim, ScopeState, Spent
from paddock.rules.log.chain import Head, StoredFact, digest_of
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AgentRow, AuditRow, InboxRow, RunRow, SessionRow, TranscriptRow, View
from paddock.storage.filters import UNPRICED
from paddock.storage.room import scopes_in, until_full
from paddock.storage.sqlite.connection import Connection, unavailable
from paddock.storage.sqlite.rows import AGENT, AUDIT, FACT, INBOX, ITEM, KEY, MODEL_USAGE, RUN, TOOL_CALL, Values

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SESSION_NO = "(select session_no from sessions where session_id = ?)"
_CLAIM = """
select session_id, workspace_id, user_id, created_at, head_seq, head_digest, snapshot, snapshot_seq
  from sessions where session_id = ?"""
# Facts that stand after a place, and finished messages around it: written after it, standing before it. One statement,
# because a message that replaces its deltas between two would be seen by neither.
_AFTER = f"""
select {FACT} from facts where session_no = {_SESSION_NO} and position > ?
union all
select {FACT} from facts indexed by facts_moved
 where session_no = {_SESSION_NO} and seq > ? and position < seq and position <= ?
 order by position, seq limit ?"""
# The same for one turn. Its run says between which places its facts lie; the opening of a session comes just before.
_OF_TURN = f"""
with place (session_no, after, until) as (
  select {_SESSION_NO}, max(?, coalesce(min(first_seq) - 2, 0)),
         coalesce(max(case when status in ('queued', 'running') then null else last_seq end), {1 << 62})
    from runs where run_id = ?)
select {FACT} from facts, place
 where facts.session_no = place.session_no and position > place.after and position <= place.until and turn_id = ?
union all
select {FACT} from facts indexed by facts_moved, place
 where facts.session_no = place.session_no and seq > place.after and position < seq and position <= place.after
   and seq <= place.until and turn_id = ?
 order by position, seq limit ?"""
_IN_ORDER = f"select {FACT} from facts where session_no = {_SESSION_NO} order by seq"
# What an edit or a new try left behind is not part of the conversation any more.
PRESENT = """and not exists (select 1 from left_behind b where b.session_no = t.session_no
                and t.seq between b.first_seq and b.last_seq)"""
_ITEMS = f"""
select seq, {ITEM} from transcript t
 where session_no = {_SESSION_NO} and seq < ? and seq > ? {{view}} {PRESENT} order by seq"""
# What waited in line when a run began, and its own input, are not what was said before it.
_AS_OF = """and not exists (select 1 from runs r where r.run_id = t.run_id and (
                r.status = 'queued' or r.begun_seq > ? or (r.begun_seq = ? and t.item_id = t.run_id || '.0')))"""
_SCOPES = """
select scope_key, key, length(value), case when length(value) <= ? then value end
  from state where scope_key in ({keys}) order by scope_key, key"""
_RUN = f"select {RUN} from runs"
_UNFINISHED = f"{_RUN} where status in ('queued', 'running') order by created_at, run_id"
_LABEL = f"""
{_RUN} where workspace_id = ? and user_id = ? and client_run_id = ? and client_run_id <> ''
 order by session_id limit ?"""
_TOOL_CALLS = f"select {TOOL_CALL} from tool_calls where run_id = ? order by call_no limit ?"
_UNANSWERED = f"""
select {TOOL_CALL} from tool_calls indexed by tool_calls_open where status = 'started' and not exists (
  select 1 from runs
   where runs.run_id = tool_calls.run_id and (runs.status in ('queued', 'running') or runs.ended_at > ?))
 order by call_no limit ?"""
_USAGE = f"select {MODEL_USAGE} from model_usage where run_id = ? order by usage_no limit ?"
SPENT_ON = """
select coalesce(sum(tokens), 0), coalesce(sum(cost), 0.0) from model_spent
 where day = ?1 and workspace_id = ?2 and (?3 is null or user_id = ?3)"""
_SPENT = f"""
select count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0),
       coalesce(sum(total_tokens), 0), total(cost), {UNPRICED}
  from model_usage where started_at >= ?"""
_NO_END = 1 << 62
_PAYLOAD = FACT.split(", ").index("payload")


def seen(view: View) -> tuple[str, Values]:
    """The condition on items `t` that leaves what a view shows, and its values."""
    where, values = subthread("t", view)
    return (where, values) if view.as_of is None else (f"{where} {_AS_OF}", (*values, view.as_of, view.as_of))


def subthread(table: str, view: View) -> tuple[str, Values]:
    if view.all_subthreads:
        return "", ()
    if view.subthread_id is None:
        return f"and {table}.subthread_id is null", ()
    return f"and {table}.subthread_id = ?", (view.subthread_id,)


def fact_of(found: Values) -> StoredFact:
    """A row of `FACT` columns."""
    return StoredFact(*found, payload_digest=digest_of(found[_PAYLOAD]))


class Reader:
    """Answers questions about what is committed. Used by one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    # --- the log

    def claim(self, session_id: str, epoch: int) -> Claim:
        found = self._one(_CLAIM, (session_id,))
        if found is None:
            buried = self._one("select 1 from tombstones where session_id = ?", (session_id,))
            return Claim(session_id, epoch, Head(), None, b"", 0, (), deleted=buried is not None)
        head_seq, digest, snapshot, snapshot_seq = found[4:]
        facts = self.facts(session_id, snapshot_seq, None, _NO_END) if head_seq > snapshot_seq else ()
        return Claim(
            session_id=session_id,
            epoch=epoch,
            head=Head(head_seq, digest),
            session=SessionRow(*found[:4]),
            snapshot=snapshot,
            snapshot_seq=snapshot_seq,
            facts=tuple(sorted(facts, key=attrgetter("seq"))),
        )

    def ends(self, session_id: str) -> tuple[int, Head]:
        """Under which epoch it was written last, and where it ends."""
        found = self._one("select epoch, head_seq, head_digest from sessions where session_id = ?", (session_id,))
        return (0, Head()) if found is None else (found[0], Head(*found[1:]))

    def facts(self, session_id: str, after: int, turn_id: str | None, limit: int) -> Sequence[StoredFact]:
        if turn_id is not None:
            return self._facts(_OF_TURN, (session_id, after, turn_id, turn_id, turn_id, limit))
        return self._facts(_AFTER, (session_id, after, session_id, after, after, limit))

    def _facts(self, sql: str, values: Values) -> list[StoredFact]:
        return [fact_of(found) for found in self._all(sql, values)]

    def facts_in_order(self, session_id: str) -> Iterator[StoredFact]:
        """All facts of a session in order of number, one at a time."""
        return (fact_of(found) for found in self._cursor(_IN_ORDER, (session_id,)))

    # --- what is looked up beside it

    def session_ids(self, limit: int) -> list[str]:
        """Sessions that are there, and those that were deleted: both are known."""
        sql = "select session_id from sessions union all select session_id from tombstones limit ?"
        return [session_id for (session_id,) in self._all(sql, (limit,))]

    def session(self, session_id: str) -> SessionRow | None:
        found = self._one(_CLAIM, (session_id,))
        return SessionRow(*found[:4]) if found else None

    def head(self, session_id: str) -> Head:
        found = self._one("select head_seq, head_digest from sessions where session_id = ?", (session_id,))
        return Head(*found) if found else Head()

    def trimmed(self, session_id: str) -> Head:
        """The last fact that was trimmed from the beginning of a log; number 0 when none was."""
        found = self._one("select trimmed_seq, trimmed_digest from sessions where session_id = ?", (session_id,))
        return Head(*found) if found else Head()

    def inbox(self, session_id: str, key: str) -> InboxRow | None:
        found = self._one(f"select {INBOX} from inbox where session_no = {_SESSION_NO} and key = ?", (session_id, key))
        return InboxRow(session_id, *found[:4], opened_session=bool(found[4])) if found else None

    def run(self, run_id: str) -> RunRow | None:
        found = self._one(f"{_RUN} where run_id = ?", (run_id,))
        return RunRow(*found) if found else None

    def runs_by_label(self, workspace_id: str, user_id: str, client_run_id: str, limit: int) -> Sequence[RunRow]:
        return [RunRow(*found) for found in self._all(_LABEL, (workspace_id, user_id, client_run_id, limit))]

    def unfinished_runs(self) -> Sequence[RunRow]:
        return [RunRow(*found) for found in self._all(_UNFINISHED)]

    def transcript(
        self,
        session_id: str,
        before: int | None,
        after: int | None,
        limit: int,
        newest_first: bool,
        room: int | None,
        view: View,
    ) -> Sequence[TranscriptRow]:
        where, values = seen(view)
        sql = f"{_ITEMS.format(view=where)} {'desc' if newest_first else 'asc'} limit ?"
        lower, upper = -1 if after is None else after, _NO_END if before is None else before
        found = self._cursor(sql, (session_id, upper, lower, *values, limit))
        return list(until_full((TranscriptRow(session_id, *row) for row in found), room))

    def transcript_count(self, session_id: str) -> int:
        found = self._one("select item_count from sessions where session_id = ?", (session_id,))
        return found[0] if found else 0

    def state(self, scope_key: str, key: str) -> bytes | None:
        found = self._one("select value from state where scope_key = ? and key = ?", (scope_key, key))
        return found[0] if found else None

    def state_snapshot(self, scope_keys: Sequence[str], max_bytes: int) -> Mapping[str, ScopeState]:
        sql = _SCOPES.format(keys=", ".join("?" * len(scope_keys)))
        return scopes_in(self._cursor(sql, (max_bytes, *scope_keys)), scope_keys, max_bytes)

    def state_size(self, scope_key: str) -> int:
        found = self._one("select total(length(value)) from state where scope_key = ?", (scope_key,))
        return int(found[0]) if found else 0

    def audit(self, run_id: str | None, limit: int) -> Sequence[AuditRow]:
        sql, values = f"select {AUDIT} from audit", ()
        if run_id is not None:
            sql, values = f"{sql} where run_id = ?", (run_id,)
        return [AuditRow(*found) for found in self._all(f"{sql} order by audit_no desc limit ?", (*values, limit))]

    def stored_agents(self) -> Sequence[AgentRow]:
        return [AgentRow(*found) for found in self._all(f"select {AGENT} from agents order by workspace_id, agent_id")]

    def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None:
        sql = f"select {AGENT} from agents where workspace_id = ? and agent_id = ?"
        found = self._one(sql, (workspace_id, agent_id))
        return AgentRow(*found) if found else None

    def tool_calls(self, run_id: str, limit: int) -> Sequence[ToolCallRow]:
        return [ToolCallRow(*found) for found in self._all(_TOOL_CALLS, (run_id, limit))]

    def unanswered_tool_calls(self, over_since: float, limit: int) -> Sequence[ToolCallRow]:
        return [ToolCallRow(*found) for found in self._all(_UNANSWERED, (over_since, limit))]

    def model_usage(self, run_id: str, limit: int) -> Sequence[ModelUsageRow]:
        return [ModelUsageRow(*found) for found in self._all(_USAGE, (run_id, limit))]

    def spent_on(self, day: float, workspace_id: str, user_id: str | None) -> tuple[int, float]:
        return self._one(SPENT_ON, (day, workspace_id, user_id))

    def spent(self, run_id: str | None, workspace_id: str | None, user_id: str | None, since: float) -> Spent:
        where = {"run_id": run_id, "workspace_id": workspace_id, "user_id": user_id}
        asked = {column: value for column, value in where.items() if value is not None}
        sql = _SPENT + "".join(f" and {column} = ?" for column in asked)
        return Spent(*self._one(sql, (since, *asked.values())))

    def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        found = self._one(f"select {KEY} from api_keys where key_hash = ? and revoked_at is null", (key_hash,))
        return ApiKeyRow(*found) if found else None

    def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        asked = ", ".join("?" * len(key_ids))
        sql = f"select key_id from api_keys where key_id in ({asked}) and revoked_at is null"
        return {found[0] for found in self._all(sql, tuple(key_ids))}

    def any_key(self) -> bool:
        return self._one("select 1 from api_keys limit 1") is not None

    def api_keys(self, workspace_id: str | None, user_id: str | None, limit: int) -> Sequence[ApiKeyRow]:
        where = "(?1 is null or workspace_id = ?1) and (?2 is null or user_id = ?2)"
        sql = f"select {KEY} from api_keys where {where} order by created_at desc limit ?3"
        return [ApiKeyRow(*found) for found in self._all(sql, (workspace_id, user_id, limit))]

    # --- within

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._one(sql, values)

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._all(sql, values)

    def facts_by(self, sql: str, values: Values) -> list[StoredFact]:
        return self._facts(sql, values)

    def _one(self, sql: str, values: Values = ()) -> Any:
        try:
            return self._connection.execute(sql, values).fetchone()
        except apsw.Error as error:
            raise unavailable(error) from error

    def _all(self, sql: str, values: Values = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise unavailable(error) from error

    def _cursor(self, sql: str, values: Values) -> Iterator[Any]:
        try:
            yield from self._connection.execute(sql, values)
        except apsw.Error as error:
            raise unavailable(error) from error
