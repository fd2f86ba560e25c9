"""The part of the memory store that holds logs and forgets: trimmed beginnings, erased words, rows past their time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from paddock.ports.keeping import OldRows
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import Head, StoredFact, word_bytes
from paddock.rules.log.retention import OldFact, OldSession
from paddock.rules.rows.forgetting import GONE_ON, CallsErased, FactErased, ItemErased, LogTrimmed, SessionGone
from paddock.rules.rows.rows import AuditRow, RunRow, SessionRow, TranscriptRow
from paddock.rules.values import replace
from paddock.storage.memory_approvals import MemoryApprovals
from paddock.storage.memory_automations import MemoryAutomations
from paddock.storage.memory_calendar import MemoryCalendar
from paddock.storage.memory_calls import MemoryCalls
from paddock.storage.memory_deliveries import MemoryDeliveries


@dataclass(slots=True)
class MemorySession:
    """One session's log and the items read from it."""

    row: SessionRow
    number: int
    epoch: int = 0
    head: Head = field(default_factory=Head)
    trimmed: Head = field(default_factory=Head)
    snapshot: bytes = b""
    snapshot_seq: int = 0
    facts: dict[int, StoredFact] = field(default_factory=dict[int, StoredFact])
    items: dict[int, TranscriptRow] = field(default_factory=dict[int, TranscriptRow])

    @property
    def updated_at(self) -> float:
        return max((fact.time for fact in self.facts.values()), default=self.row.created_at)


class MemoryKeeping(MemoryCalls, MemoryApprovals, MemoryAutomations, MemoryDeliveries, MemoryCalendar):
    def __init__(self) -> None:
        super().__init__()
        self._sessions: dict[str, MemorySession] = {}
        self._audit: list[AuditRow] = []
        self._tombstones: dict[str, float] = {}

    async def is_buried(self, session_id: str) -> bool:
        return session_id in self._tombstones

    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        logs = (log for log in self._sessions.values() if log.row.workspace_id == workspace_id)
        return sum(word_bytes(log.facts.values()) for log in logs if user_id in (None, log.row.user_id))

    async def trimmed(self, session_id: str) -> Head:
        log = self._sessions.get(session_id)
        return log.trimmed if log else Head()

    async def sessions_opened_before(self, time: float, *, after: int = 0, limit: int = 200) -> Sequence[OldSession]:
        logs = sorted(self._sessions.values(), key=attrgetter("number"))
        return [_old(log) for log in logs if log.number > after and log.row.created_at < time][:limit]

    async def oldest_facts(self, session_id: str, *, limit: int = 1000) -> Sequence[OldFact]:
        log = self._sessions.get(session_id)
        facts = sorted(log.facts.values(), key=attrgetter("position", "seq")) if log else []
        return [OldFact(fact.seq, fact.turn_id, fact.time, fact.kind, fact.digest) for fact in facts[:limit]]

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        if kind == "audit":
            kept = [row for index, row in enumerate(self._audit) if index >= limit or row.time >= before]
            count = len(self._audit) - len(kept)
            self._audit[:] = kept
            return count
        table, is_old = self._aged(kind, before)
        old = [key for key, row in table.items() if is_old(row)][:limit]
        for key in old:
            del table[key]
        return len(old)

    def _aged(self, kind: OldRows, before: float) -> tuple[dict[Any, Any], Callable[[Any], bool]]:
        tables: dict[str, tuple[dict[Any, Any], Callable[[Any], float]]] = {
            "tool_calls": (self._tool_calls, attrgetter("started_at")),
            "model_usage": (self._model_usage, attrgetter("started_at")),
            "approvals": (self._approvals, attrgetter("created_at")),
            "deliveries": (self._deliveries, attrgetter("created_at")),
            "platform_events": (self._platform_events, attrgetter("received_at")),
            "automation_ticks": (self._ticks, attrgetter("at")),
            "tombstones": (self._tombstones, float),
        }
        if kind == "runs":
            return self._runs, lambda row: self._is_old(row, before)
        table, age_of = tables[kind]
        return table, lambda row: age_of(row) < before

    def _is_old(self, run: RunRow, before: float) -> bool:
        log = self._sessions.get(run.session_id)
        gone = log is None or log.trimmed.seq >= run.last_seq
        return gone and run.ended_at is not None and run.ended_at < before

    async def purge(self, *, limit: int = 500) -> int:  # noqa: ARG002 - the port's
        """Nothing is left behind here: what is deleted goes at once."""
        return 0

    async def scrub(self) -> None:
        """Nothing is on any disk."""

    # --- writing -----------------------------------------------------------------------------------------------------

    def _check_forgetting(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        for row in rows:
            log = self._sessions.get(row.session_id) if isinstance(row, SessionGone) else None
            if log is not None and row.epoch is not None and log.epoch > row.epoch:
                raise HostError(ErrorCode.CONFLICT, GONE_ON, retryable=True)

    def _forget_session(self, row: SessionGone) -> None:
        self._sessions.pop(row.session_id, None)
        runs = {run.run_id for run in self._runs.values() if run.session_id == row.session_id}
        self._runs = {key: run for key, run in self._runs.items() if key not in runs}
        self._tool_calls = {key: call for key, call in self._tool_calls.items() if call.run_id not in runs}
        self._approvals = {key: asked for key, asked in self._approvals.items() if asked.run_id not in runs}
        if row.buried_at is not None:
            self._tombstones[row.session_id] = row.buried_at

    def _trim(self, row: LogTrimmed) -> None:
        log = self._sessions[row.session_id]
        log.facts = {seq: fact for seq, fact in log.facts.items() if seq > row.through}
        log.items = {seq: item for seq, item in log.items.items() if seq > row.through}
        log.trimmed = Head(row.through, row.digest)

    def _erase_fact(self, row: FactErased) -> None:
        facts = self._sessions[row.session_id].facts
        facts[row.seq] = replace(facts[row.seq], payload=row.payload, metadata=row.metadata)

    def _erase_item(self, row: ItemErased) -> None:
        items = self._sessions[row.session_id].items
        left = {"content": row.content, "content_json": row.content_json, "metadata": row.metadata}
        items[row.seq] = replace(items[row.seq], **left)
        said = (row.session_id, row.seq)
        kept = {key: one for key, one in self._deliveries.items() if (one.session_id, one.number // 1000) != said}
        self._deliveries = kept

    def _erase_calls(self, row: CallsErased) -> None:
        for call in list(self._tool_calls.values()):
            if (call.run_id, call.tool_name) == (row.run_id, row.tool_name):
                self._tool_calls[call.call_id] = replace(call, parameters=b"", result=b"")


def _old(log: MemorySession) -> OldSession:
    row = log.row
    return OldSession(log.number, row.session_id, row.workspace_id, row.user_id, log.updated_at, log.trimmed.seq)
