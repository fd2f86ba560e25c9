"""The log as it is read: after a place, of one turn, backward; what a new owner needs of it; whether it is sound.

How facts are appended, with the fence before them, is each database's own.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from paddock.ports import Batch, Claim
from paddock.rules.errors import StaleOwnerError
from paddock.rules.log.chain import ANCHOR, Damage, Head, StoredFact, digest_of, verify
from paddock.rules.log.events import HANDED_OVER
from paddock.rules.rows.rows import WHOLE, SessionRow, View
from paddock.storage.tables.conversations import NO_END, NUMBER, subthread
from paddock.storage.tables.statements import HasEngine, Query, Work, is_there, one, several
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the column lists are our own, values are always bound
FACTS = Table("facts", StoredFact, of_session=True, left_out=("payload_digest",))
FACT = FACTS.columns
PLACE = "session_id, workspace_id, user_id, created_at, head_seq, head_digest, snapshot, snapshot_seq"
PAGE = 500
_PAYLOAD = FACTS.names.index("payload")


def fact_of(*found: Any) -> StoredFact:
    return StoredFact(*found, payload_digest=digest_of(found[_PAYLOAD]))


# Facts that stand after a place, and finished messages around it: written after it, standing before it. One statement,
# because a message that replaces its deltas between two would be seen by neither.
_AFTER = Query(
    fact_of,
    f"""
/*postgres (*/select {FACT} from facts where session_no = {NUMBER} and position > :after
/*postgres order by position, seq limit :limit)*/
union all
/*postgres (*/select {FACT} from facts /*sqlite indexed by facts_moved*/
 where session_no = {NUMBER} and seq > :after and position < seq and position <= :after
/*postgres order by position, seq limit :limit)*/
 order by position, seq limit :limit""",
)
# The same for one turn. Its run says between which places its facts lie; the opening of a session comes just before.
_OF_TURN = Query(
    fact_of,
    f"""
with place (session_no, after, until) as /*postgres materialized*/ (
  select {NUMBER}, greatest(:after::bigint, coalesce(min(first_seq) - 2, 0)),
         coalesce(max(case when status in ('queued', 'running') then null else last_seq end), {NO_END})
    from runs where run_id = :turn_id)
/*postgres (*/select {FACTS.of("facts")} from facts, place
 where facts.session_no = place.session_no and position > place.after and position <= place.until
   and turn_id = :turn_id
/*postgres order by position, seq limit :limit)*/
union all
/*postgres (*/select {FACTS.of("facts")} from facts /*sqlite indexed by facts_moved*/, place
 where facts.session_no = place.session_no and seq > place.after and position < seq and position <= place.after
   and seq <= place.until and turn_id = :turn_id
/*postgres order by position, seq limit :limit)*/
 order by position, seq limit :limit""",
)
_BACKWARD = f"""
select {FACT} from facts f where session_no = {NUMBER} and position < :before
   and (target <> 'AGENT' or kind = '{HANDED_OVER}') and kind = any(:kinds::text[]) {{view}}
 order by position desc, seq desc limit :limit"""
_OF_RUNS = "and (f.turn_id is null or exists (select 1 from runs r where r.run_id = f.turn_id {subthread}))"
# A fact stands at its own number, or it is a finished message that moved to where its first delta stood.
_END = Query(several, "select epoch, head_seq, head_digest from sessions where session_id = :session_id")
_ENDS = Query(
    several,
    "select head_seq, head_digest, trimmed_seq, trimmed_digest from sessions where session_id = :session_id",
)
_ALL = Query(
    fact_of,
    f"""
select {FACT} from facts where session_no = {NUMBER} and (position, seq) > (:position::bigint, :seq::bigint)
 order by position, seq limit {PAGE}""",
)


class LogReads(HasEngine):
    async def look(self, session_id: str) -> Claim:
        place = await self.place(session_id)
        return await self.claim_at(session_id, 0, place, deleted=place is None and await self.is_buried(session_id))

    async def read(
        self, session_id: str, *, after: int = 0, run_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        asked = {"session_id": session_id, "after": after, "limit": limit}
        if run_id is None:
            return await self.engine.all(_AFTER, **asked)
        return await self.engine.all(_OF_TURN, **asked, turn_id=run_id)

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        condition = subthread("r", view)
        sql = _BACKWARD.format(view=_OF_RUNS.format(subthread=condition) if condition else "")
        asked = {"session_id": session_id, "before": NO_END if before is None else before, "kinds": kinds}
        return await self.engine.all(Query(fact_of, sql), **asked, limit=limit, subthread_id=view.subthread_id)

    fact = one(
        fact_of,
        f"""
select {FACT} from facts where session_no = {NUMBER} and position = :seq and seq = :seq
union all
select {FACT} from facts /*sqlite indexed by facts_moved*/
 where session_no = {NUMBER} and seq = :seq and position < seq""",
    )

    async def session(self, session_id: str) -> SessionRow | None:
        found = await self.place(session_id)
        return SessionRow(*found[:4]) if found else None

    trimmed = one(
        Head, "select trimmed_seq, trimmed_digest from sessions where session_id = :session_id", otherwise=Head()
    )

    is_buried = one(is_there, "select 1 from tombstones where session_id = :session_id", otherwise=False)

    place = one(several, f"select {PLACE} from sessions where session_id = :session_id")

    async def end(self, session_id: str) -> tuple[int, Head]:
        """The newest epoch that the session's row knows, and where the log ends."""
        found = await self.engine.one(_END, session_id=session_id)
        return (found[0], Head(*found[1:])) if found else (0, Head())

    async def claim_at(
        self, session_id: str, epoch: int, place: Sequence[Any] | None, deleted: bool = False, left: str = ""
    ) -> Claim:
        if place is None:
            return Claim(session_id, epoch, Head(), None, b"", 0, (), deleted=deleted)
        head_seq, digest, snapshot, snapshot_seq = place[4:]
        facts = await self.read(session_id, after=snapshot_seq, limit=NO_END) if head_seq > snapshot_seq else ()
        return Claim(
            session_id=session_id,
            epoch=epoch,
            head=Head(head_seq, digest),
            session=SessionRow(*place[:4]),
            snapshot=snapshot,
            snapshot_seq=snapshot_seq,
            facts=tuple(sorted(facts, key=attrgetter("seq"))),
            left=left,
        )


def facts_in_order(session_id: str) -> Work[list[StoredFact]]:
    facts: list[StoredFact] = []
    last = (-1, -1)
    while page := (yield _ALL(session_id=session_id, position=last[0], seq=last[1])):
        facts += [fact_of(*found) for found in page]
        last = facts[-1].position, facts[-1].seq
    return sorted(facts, key=attrgetter("seq"))


def checked(session_id: str) -> Work[Damage | None]:
    """The first place where a session's log is not what was written, or None. To be asked of one state of the database:
    the head belongs to these facts."""
    found = yield _ENDS(session_id=session_id)
    head_seq, head_digest, trimmed_seq, trimmed_digest = found[0] if found else (0, b"", 0, b"")
    facts, trimmed = (yield from facts_in_order(session_id)), Head(trimmed_seq, trimmed_digest)
    return verify(facts, start=trimmed_digest) or _hidden_damage(facts, Head(head_seq, head_digest), trimmed)


def _hidden_damage(facts: Sequence[StoredFact], head: Head, trimmed: Head) -> Damage | None:
    """Damage that the chain does not show: at both ends of a log, and where facts stand."""
    last = next((fact.digest for fact in reversed(facts) if not fact.is_delta), trimmed.digest)
    if last != head.digest:
        return Damage(head.seq, "the log ends before its head")
    if trimmed.seq and not any(fact.kind == ANCHOR and _is_told_by(fact, trimmed) for fact in facts):
        return Damage(trimmed.seq, "the beginning is missing and no fact says that it was trimmed")
    misplaced = (fact for fact in facts if fact.position != (fact.read_metadata().get("first_seq") or fact.seq))
    return next((Damage(fact.seq, "stands in the wrong place") for fact in misplaced), None)


def _is_told_by(anchor: StoredFact, trimmed: Head) -> bool:
    told: dict[str, Any] = anchor.read_payload() or {}
    return (told.get("through"), told.get("digest")) == (trimmed.seq, trimmed.digest.hex())


Ranges = Sequence[tuple[str, int, int]]
"""(turn_id, first, last) of replaced deltas, both ends included."""


def without_replaced(facts: Sequence[StoredFact], compacted: Ranges) -> Sequence[StoredFact]:
    return [fact for fact in facts if not (fact.is_delta and is_replaced(fact, compacted))]


def is_replaced(delta: StoredFact, compacted: Ranges) -> bool:
    return any(delta.turn_id == turn_id and first <= delta.seq <= last for turn_id, first, last in compacted)


def is_taken(batch: Batch, epoch: int, head: Head) -> bool:
    """Tell if a log that ends here, written last or claimed under this epoch, ends with the batch or just before it.

    Only its owner writes under an epoch, so that its own number and digest at the end are its own doing. Raises
    StaleOwnerError when it is neither.
    """
    if epoch == batch.epoch and head == batch.after:
        return True
    if epoch <= batch.epoch and head == batch.before:
        return False
    raise StaleOwnerError(f"session {batch.session_id} has another owner")
