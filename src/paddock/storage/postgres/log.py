"""The log: how facts are written and compacted, how they are read, and what a new owner reads of them."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from paddock.ports import Claim
from paddock.rules.log.chain import Damage, Head, StoredFact, digest_of, verify
from paddock.rules.rows.rows import SessionRow
from paddock.storage.postgres.claims import PLACE, Taken
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader, Reader
from paddock.storage.postgres.tables import Table, insert
from paddock.storage.walk import Walk

# ruff: noqa: S608 - the column lists are our own, values are always bound
FACT = "seq, position, kind, target, sender, target_id, turn_id, trace_id, tx_id, time, payload, metadata, digest"
FACTS = insert(
    "facts",
    "seq int, position int, kind text, target text, sender text, target_id text, turn_id text, trace_id text, "
    "tx_id text, time float, payload bytes, metadata bytes, digest bytes",
    session=True,
)
COMPACTED = Table(
    "compacted",
    "turn_id text, first int, last int",
    {
        "w_compacted": """
delete from facts using {rows}
 where facts.session_no = r.session_no and facts.position between r.first and r.last and facts.turn_id = r.turn_id
   and facts.kind = 'AGENT_OUTPUT:CHUNK'"""
    },
)

_NO_END = 1 << 62
_SESSION_NO = "(select session_no from sessions where session_id = $1)"
_BURIED = "select 1 from tombstones where session_id = $1"
_SESSION = f"select {PLACE} from sessions where session_id = $1"
# Facts that stand after a place, and finished messages around it: written after it, standing before it. One statement,
# because a message that replaces its deltas between two would be seen by neither.
_AFTER = f"""
(select {FACT} from facts where session_no = {_SESSION_NO} and position > $2 order by position, seq limit $3)
union all
(select {FACT} from facts
  where session_no = {_SESSION_NO} and seq > $2 and position < seq and position <= $2 order by position, seq limit $3)
 order by position, seq limit $3"""
# The same for one turn. Its run says between which places its facts lie; the opening of a session comes just before.
_OF_TURN = f"""
with place (session_no, after, until) as materialized (
  select {_SESSION_NO}, greatest($2::bigint, coalesce(min(first_seq) - 2, 0)),
         coalesce(max(case when status in ('queued', 'running') then null else last_seq end), {_NO_END})
    from runs where run_id = $4)
(select {FACT} from facts join place using (session_no)
  where position > place.after and position <= place.until and turn_id = $4 order by position, seq limit $3)
union all
(select {FACT} from facts join place using (session_no)
  where seq > place.after and position < seq and position <= place.after and seq <= place.until and turn_id = $4
  order by position, seq limit $3)
 order by position, seq limit $3"""
_END = "select epoch, head_seq, head_digest from sessions where session_id = $1"
_ENDS = "select head_seq, head_digest, trimmed_seq, trimmed_digest from sessions where session_id = $1"
_IN_ORDER = f"select {FACT} from facts where session_no = {_SESSION_NO} order by seq"
_PAYLOAD = FACT.split(", ").index("payload")


def fact_of(found: Any) -> StoredFact:
    """A row of `FACT` columns."""
    return StoredFact(*found, payload_digest=digest_of(found[_PAYLOAD]))


async def place_of(reader: Reader, session_id: str) -> Sequence[Any] | None:
    return await reader.one(_SESSION, session_id)


async def claim_of(reader: Reader, session_id: str, taken: Taken) -> Claim:
    """All that the owner needs to go on from there."""
    if taken.place is None:
        return Claim(session_id, taken.epoch, Head(), None, b"", 0, (), deleted=taken.deleted)
    head_seq, digest, snapshot, snapshot_seq = taken.place[4:]
    facts = await _after(reader, session_id, snapshot_seq, _NO_END) if head_seq > snapshot_seq else ()
    return Claim(
        session_id=session_id,
        epoch=taken.epoch,
        head=Head(head_seq, digest),
        session=SessionRow(*taken.place[:4]),
        snapshot=snapshot,
        snapshot_seq=snapshot_seq,
        facts=tuple(sorted(facts, key=attrgetter("seq"))),
        left=taken.left,
    )


async def _after(reader: Reader, session_id: str, after: int, limit: int) -> Sequence[StoredFact]:
    return [fact_of(found) for found in await reader.all(_AFTER, session_id, after, limit)]


async def end_of(reader: Reader, session_id: str) -> tuple[int, Head]:
    """The newest epoch that the session's row knows, and where the log ends."""
    found = await reader.one(_END, session_id)
    return (found[0], Head(*found[1:])) if found else (0, Head())


class LogReads(HasReader):
    """The log, read."""

    async def look(self, session_id: str) -> Claim:
        place = await place_of(self.reader, session_id)
        buried = place is None and await self.reader.one(_BURIED, session_id) is not None
        return await claim_of(self.reader, session_id, Taken(0, place, deleted=buried))

    async def read(
        self, session_id: str, *, after: int = 0, turn_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        if turn_id is None:
            return await _after(self.reader, session_id, after, limit)
        return [fact_of(found) for found in await self.reader.all(_OF_TURN, session_id, after, limit, turn_id)]

    async def session(self, session_id: str) -> SessionRow | None:
        found = await place_of(self.reader, session_id)
        return SessionRow(*found[:4]) if found else None

    async def check(self, session_id: str) -> Damage | None:
        """The first place where this session's log is not what was written, or None."""

        async def look(connection: Connection) -> tuple[Head, Head, Sequence[Any]]:
            found: Any = await connection.fetchrow(_ENDS, session_id)
            found = found or (0, b"", 0, b"")
            return Head(*found[:2]), Head(*found[2:]), await connection.fetch(_IN_ORDER, session_id)

        head, trimmed, facts = await self.reader.ask_one_state(look)  # else a session that is being written has no end
        walk = Walk((fact_of(fact) for fact in facts), head, trimmed)
        return verify(walk, start=trimmed.digest) or walk.damage()
