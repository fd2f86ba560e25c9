"""The log, read backward."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.log.chain import StoredFact
from paddock.rules.log.events import HANDED_OVER
from paddock.rules.rows.calls import PlacedCall, ToolCallRow
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import WHOLE, View
from paddock.storage.postgres.calls import TOOL_CALL
from paddock.storage.postgres.conversation import subthread
from paddock.storage.postgres.deliveries import DELIVERY
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

_CALLS = f"""
select {TOOL_CALL}, after_seq, call_no from tool_calls c
 where session_id = $1 and (after_seq, call_no) < ($2::bigint, $3::bigint) {{view}}
 order by after_seq desc, call_no desc limit $4"""
_CALL = f"select {TOOL_CALL}, after_seq, call_no from tool_calls where call_id = $1 and after_seq is not null"
_DELIVERIES = f"""
select {DELIVERY} from deliveries d
 where session_id = $1 and number < $2 {{view}} order by number desc limit $3"""
_OF_A_RUN = "and exists (select 1 from runs r where r.run_id = {table}.run_id {subthread})"


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

    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        where, more = _of_a_run("c", view, 5)
        values = (session_id, *(before or (_NO_END, 0)), limit, *more)
        return [_placed(found) for found in await self.reader.all(_CALLS.format(view=where), *values)]

    async def placed_call(self, call_id: str) -> PlacedCall | None:
        found = await self.reader.one(_CALL, call_id)
        return _placed(found) if found else None

    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        where, more = _of_a_run("d", view, 4)
        values = (session_id, _NO_END if before is None else before, limit, *more)
        return [DeliveryRow(*found) for found in await self.reader.all(_DELIVERIES.format(view=where), *values)]


def _of_a_run(table: str, view: View, number: int) -> tuple[str, Sequence[Any]]:
    condition, more = subthread("r", view, number)
    return (_OF_A_RUN.format(table=table, subthread=condition) if condition else "", more)


def _placed(found: Sequence[Any]) -> PlacedCall:
    *row, after, number = found
    return PlacedCall(ToolCallRow(*row), after, number)
