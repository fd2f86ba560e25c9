"""The log in SQLite, read backward."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Sequence

from paddock.rules.chain import StoredFact
from paddock.rules.events import HANDED_OVER
from paddock.rules.rows import WHOLE, View
from paddock.storage.sqlite.reader import Reader, subthread
from paddock.storage.sqlite.rows import FACT

_SESSION_NO = "(select session_no from sessions where session_id = ?)"
_BACKWARD = f"""
select {FACT} from facts f where session_no = {_SESSION_NO} and position < ?
   and (target <> 'AGENT' or kind = '{HANDED_OVER}')
   and kind in (select value from json_each(?)) {{view}} order by position desc, seq desc limit ?"""
_OF_RUNS = "and (f.turn_id is null or exists (select 1 from runs r where r.run_id = f.turn_id {subthread}))"
# A fact stands at its own number, or it is a finished message that moved to where its first delta stood.
_ONE = f"""
select {FACT} from facts where session_no = {_SESSION_NO} and position = ? and seq = ?
union all
select {FACT} from facts indexed by facts_moved where session_no = {_SESSION_NO} and seq = ? and position < seq"""


class EventReads(ABC):
    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        wanted = "[" + ", ".join(f'"{kind}"' for kind in kinds) + "]"
        place = (1 << 62) if before is None else before
        condition, values = subthread("r", view)
        where = _OF_RUNS.format(subthread=condition) if condition else ""
        return self._reader.facts_by(_BACKWARD.format(view=where), (session_id, place, wanted, *values, limit))

    async def fact(self, session_id: str, seq: int) -> StoredFact | None:
        found = self._reader.facts_by(_ONE, (session_id, seq, seq, session_id, seq))
        return found[0] if found else None
