"""The log, read backward."""

from collections.abc import Sequence

from paddock.rules.chain import StoredFact
from paddock.rules.events import HANDED_OVER
from paddock.rules.rows import WHOLE, View
from paddock.storage.postgres.conversation import subthread
from paddock.storage.postgres.log import FACT, fact_of
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
_NO_END = 1 << 62
_SESSION_NO = "(select session_no from sessions where session_id = $1)"
_BACKWARD = f"""
select {FACT} from facts f where session_no = {_SESSION_NO} and position < $2
   and (target <> 'AGENT' or kind = '{HANDED_OVER}') and kind = any($3) {{view}}
 order by position desc, seq desc limit $4"""
_OF_RUNS = "and (f.turn_id is null or exists (select 1 from runs r where r.run_id = f.turn_id {subthread}))"
# A fact stands at its own number, or it is a finished message that moved to where its first delta stood.
_ONE = f"""
select {FACT} from facts where session_no = {_SESSION_NO} and position = $2 and seq = $2
union all
select {FACT} from facts where session_no = {_SESSION_NO} and seq = $2 and position < seq"""


class EventReads(HasReader):
    """Facts, looked up by what they are."""

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        condition, more = subthread("r", view, 5)
        where = _OF_RUNS.format(subthread=condition) if condition else ""
        values = (session_id, _NO_END if before is None else before, escaped_column(kinds), limit, *more)
        return [fact_of(found) for found in await self.reader.all(_BACKWARD.format(view=where), *values)]

    async def fact(self, session_id: str, seq: int) -> StoredFact | None:
        found = await self.reader.one(_ONE, session_id, seq)
        return fact_of(found) if found else None
