"""The log in SQLite, read backward."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Sequence

from paddock.rules.log.chain import StoredFact
from paddock.rules.log.events import HANDED_OVER
from paddock.rules.rows.calls import PlacedCall, ToolCallRow
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import WHOLE, View
from paddock.storage.sqlite.deliveries import DELIVERY
from paddock.storage.sqlite.reader import Reader, subthread
from paddock.storage.sqlite.rows import FACT, TOOL_CALL, Values

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

_CALLS = f"""
select {TOOL_CALL}, after_seq, call_no from tool_calls c
 where session_id = ? and (after_seq, call_no) < (?, ?) {{view}} order by after_seq desc, call_no desc limit ?"""
_CALL = f"select {TOOL_CALL}, after_seq, call_no from tool_calls where call_id = ? and after_seq is not null"
_DELIVERIES = f"""
select {DELIVERY} from deliveries d
 where session_id = ? and number < ? {{view}} order by number desc limit ?"""
_OF_A_RUN = "and exists (select 1 from runs r where r.run_id = {table}.run_id {subthread})"
_NO_END = 1 << 62


class EventReads(ABC):
    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        wanted = "[" + ", ".join(f'"{kind}"' for kind in kinds) + "]"
        place = _NO_END if before is None else before
        condition, values = subthread("r", view)
        where = _OF_RUNS.format(subthread=condition) if condition else ""
        return self._reader.facts_by(_BACKWARD.format(view=where), (session_id, place, wanted, *values, limit))

    async def fact(self, session_id: str, seq: int) -> StoredFact | None:
        found = self._reader.facts_by(_ONE, (session_id, seq, seq, session_id, seq))
        return found[0] if found else None

    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        where, values = _of_a_run("c", view)
        found = self._reader.all(_CALLS.format(view=where), (session_id, *(before or (_NO_END, 0)), *values, limit))
        return [_placed(row) for row in found]

    async def placed_call(self, call_id: str) -> PlacedCall | None:
        found = self._reader.one(_CALL, (call_id,))
        return _placed(found) if found else None

    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        where, values = _of_a_run("d", view)
        place = _NO_END if before is None else before
        found = self._reader.all(_DELIVERIES.format(view=where), (session_id, place, *values, limit))
        return [DeliveryRow(*row) for row in found]


def _of_a_run(table: str, view: View) -> tuple[str, Values]:
    condition, values = subthread("r", view)
    return (_OF_A_RUN.format(table=table, subthread=condition) if condition else "", values)


def _placed(found: Values) -> PlacedCall:
    *row, after, number = found
    return PlacedCall(ToolCallRow(*row), after, number)
