"""The log: how facts are written and compacted, how they are read, and how a session is claimed."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from paddock.ports import Claim
from paddock.rules.chain import Damage, Head, StoredFact, digest_of, verify
from paddock.rules.errors import OwnedElsewhereError
from paddock.rules.rows import SessionRow
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
_PLACE = "session_id, workspace_id, user_id, created_at, head_seq, head_digest, snapshot, snapshot_seq"
# A claim of a known session writes its epoch, so every earlier owner is stale at once, on whichever host it is. An
# unknown one has no row to write: there the first to open it wins. A host takes nothing from another that is there and
# has something going on in the session, unless by force; whoever is no host takes it always.
_CLAIM = f"""
with mine as materialized (select nextval('epochs') as epoch),
     taken as (update sessions as s set epoch = greatest(s.epoch + 1, mine.epoch), boot = $2 from mine
                where s.session_id = $1 and ($2::bigint is null or $3 or s.boot is null or s.boot = $2
                      or not exists (select 1 from hosts where hosts.boot = s.boot and hosts.gone is null))
                  and ($2 is null or exists (select 1 from hosts where hosts.boot = $2 and hosts.gone is null))
               returning s.epoch, {_PLACE})
select coalesce(taken.epoch, mine.epoch) as epoch, {_PLACE}, known.boot as owner, known.session_no is not null as known,
       coalesce(known.gone, '')
  from mine left join taken on true
  left join (select session_no, sessions.boot, hosts.gone from sessions left join hosts on hosts.boot = sessions.boot
              where session_id = $1) as known on true"""
_SESSION = f"select {_PLACE} from sessions where session_id = $1"
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
_ENDS = "select head_seq, head_digest, trimmed_seq, trimmed_digest from sessions where session_id = $1"
_IN_ORDER = f"select {FACT} from facts where session_no = {_SESSION_NO} order by seq"
_PAYLOAD = FACT.split(", ").index("payload")


def fact_of(found: Any) -> StoredFact:
    """A row of `FACT` columns."""
    return StoredFact(*found, payload_digest=digest_of(found[_PAYLOAD]))


class Taken:
    """What a claim found: its epoch, the session's place in the log, if there is such a session, and why the host is
    gone that had something going on in it."""

    def __init__(self, epoch: int, place: Sequence[Any] | None, left: str = "") -> None:
        self.epoch = epoch
        self.place = place
        self.left = left


async def take(reader: Reader, session_id: str, boot: int | None, *, by_force: bool) -> Taken:
    """Raise the session's epoch above all that were ever given out. Raises OwnedElsewhereError."""
    epoch, *place, owner, known, left = await reader.one(_CLAIM, session_id, boot, by_force)
    if place[0] is None and known:
        raise OwnedElsewhereError(owner or 0)
    return Taken(epoch, place if place[0] is not None else None, left)


async def place_of(reader: Reader, session_id: str) -> Sequence[Any] | None:
    return await reader.one(_SESSION, session_id)


async def claim_of(reader: Reader, session_id: str, taken: Taken) -> Claim:
    """All that the owner needs to go on from there."""
    if taken.place is None:
        buried = await reader.one("select 1 from tombstones where session_id = $1", session_id)
        return Claim(session_id, taken.epoch, Head(), None, b"", 0, (), deleted=buried is not None)
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


class LogReads(HasReader):
    """The log, read."""

    async def look(self, session_id: str) -> Claim:
        return await claim_of(self.reader, session_id, Taken(0, await place_of(self.reader, session_id)))

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
