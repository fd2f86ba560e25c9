"""A store that lives and dies with the process: every promise of the port but durability. Nothing here touches a disk.

Appends are checked whole before anything changes, so all or none holds without undoing.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, get_args

from paddock.ports import ApiKeyRow, Batch, Claim, Store
from paddock.rules.errors import ErrorCode, HostError, StaleOwnerError, StorageUnavailableError
from paddock.rules.log.chain import Head, StoredFact
from paddock.rules.log.salting import ERASED_DIGEST
from paddock.rules.rows.automation import AboutJobs
from paddock.rules.rows.calendar import AboutCalendars
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow, ModelUsageRow, ToolCallRow
from paddock.rules.rows.deliveries import AboutPlatforms
from paddock.rules.rows.forgetting import CallsErased, FactErased, ItemErased, LogTrimmed, RequestsErased, SessionGone
from paddock.rules.rows.rows import (
    TERMINAL_STATUSES,
    AgentRow,
    Apart,
    AuditRow,
    FeedbackRow,
    InboxRow,
    Kept,
    KeptMemberRow,
    LeftBehindRow,
    PluginRow,
    Row,
    RunRow,
    SessionDetailsRow,
    SessionRow,
    StateRow,
    ThreadNameRow,
    TransactionRow,
    TranscriptRow,
    UserRow,
)
from paddock.rules.rows.taking_over import Moving
from paddock.rules.values import replace
from paddock.storage.compaction import without_replaced
from paddock.storage.lost_answers import is_taken
from paddock.storage.memory_keeping import MemorySession
from paddock.storage.memory_taking_over import MemoryTakingOver, label_of

_Key = TypeVar("_Key", bound=Hashable)


def open_memory_store() -> Store:
    """A store ready to use; `open` and `close` work as on any other plug."""
    return MemoryStore()


class MemoryStore(MemoryTakingOver):
    """All of the `Store` port over plain dictionaries, on one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0
        self._open = True
        self._opened = 0
        self._owners: dict[str, int] = {}
        self._inbox: dict[tuple[str, str], InboxRow] = {}
        self._keys: dict[bytes, ApiKeyRow] = {}
        self._plugins: dict[str, PluginRow] = {}
        self._secret_mark: str | None = None
        self._writers: dict[type, Callable[[Any], None]] = {
            RunRow: self._write_run,
            StateRow: self._write_state,
            AuditRow: self._audit.append,
            AgentRow: self._write_agent,
            PluginRow: self._write_plugin,
            ToolCallRow: self._write_call,
            ModelUsageRow: self._write_call,
            InboxRow: self._write_order,
            ApprovalRow: self._write_approval,
            ApprovalStepRow: self._write_approval,
            KeptMemberRow: self._write_about_session,
            TransactionRow: self._write_about_session,
            SessionDetailsRow: self._write_about_session,
            SessionGone: self._forget,
            LogTrimmed: self._trim_log,
            FactErased: self._erase_fact,
            ItemErased: self._erase_item,
            CallsErased: self._erase_calls,
            RequestsErased: self._erase_requests,
            UserRow: self._write_about_people,
            FeedbackRow: self._write_about_people,
            LeftBehindRow: self._write_about_people,
            ThreadNameRow: self._write_about_people,
            **dict.fromkeys(get_args(AboutJobs), self._write_about_job),
            **dict.fromkeys(get_args(AboutPlatforms), self._write_about_platform),
            **dict.fromkeys(get_args(AboutCalendars), self._write_about_calendar),
            **dict.fromkeys(get_args(Moving), self._move),
        }

    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    def healthy(self) -> bool:
        return self._open

    async def stored_agents(self) -> Sequence[AgentRow]:
        return [row for _, row in sorted(self._agents.items())]

    async def stored_agent(self, workspace_id: str, agent_id: str) -> AgentRow | None:
        return self._agents.get((workspace_id, agent_id))

    async def shared_plugins(self) -> Mapping[str, str]:
        return {row.plugin: row.sha256 for row in self._plugins.values()}

    async def shared_plugin(self, plugin: str) -> PluginRow | None:
        return self._plugins.get(plugin)

    # --- the log

    async def claim(self, session_id: str) -> Claim:
        self._epoch += 1
        self._owners[session_id] = self._epoch
        return self._claim(session_id, self._epoch)

    async def look(self, session_id: str) -> Claim:
        return self._claim(session_id, 0)

    def _claim(self, session_id: str, epoch: int) -> Claim:
        log = self._sessions.get(session_id)
        if log is None:
            return Claim(session_id, epoch, Head(), None, b"", 0, (), deleted=session_id in self._tombstones)
        facts = sorted((fact for seq, fact in log.facts.items() if seq > log.snapshot_seq), key=lambda fact: fact.seq)
        return Claim(session_id, epoch, log.head, log.row, log.snapshot, log.snapshot_seq, tuple(facts))

    async def append(self, batch: Batch) -> None:
        self._require_open()
        opened = next((row for row in batch.rows if isinstance(row, SessionRow)), None)
        self._check_fence(batch, opened)
        self._check_conflicts(batch.rows)
        self._check_state(batch.rows)
        self._check_ticks(batch.rows)
        self._check_platforms(batch.rows)
        self._check_calendar(batch.rows)
        self._write_rows(batch.rows)
        log = self._sessions[batch.session_id] if opened is None else self._add_session(opened)
        _advance(log, batch)

    async def took(self, batch: Batch) -> bool:
        self._require_open()
        log, newest = self._sessions.get(batch.session_id), self._owners.get(batch.session_id, 0)
        if newest > batch.epoch or log is None:
            return is_taken(batch, newest, Head())
        return is_taken(batch, log.epoch, log.head)

    async def read(
        self, session_id: str, *, after: int = 0, turn_id: str | None = None, limit: int = 256
    ) -> Sequence[StoredFact]:
        log = self._sessions.get(session_id)
        if log is None:
            return []
        wanted = (f for f in log.facts.values() if f.seq > after and turn_id in (None, f.turn_id))
        return sorted(wanted, key=lambda fact: (fact.position, fact.seq))[:limit]

    # --- what is looked up beside it

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        return sorted({(r.agent_id, r.runner_id) for r in self._runs.values() if r.session_id == session_id})

    async def inbox(self, session_id: str, key: str) -> InboxRow | None:
        return self._inbox.get((session_id, key))

    async def run(self, run_id: str) -> RunRow | None:
        return self._runs.get(run_id)

    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]:
        label = (workspace_id, user_id, client_run_id)
        found = (self._runs[run_id] for key, run_id in sorted(self._labels.items()) if key[:3] == label)
        return list(islice(found, limit))

    async def unfinished_runs(self) -> Sequence[RunRow]:
        live = (run for run in self._runs.values() if run.status not in TERMINAL_STATUSES)
        return sorted(live, key=lambda run: (run.created_at, run.run_id))

    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]:
        newest = (row for row in reversed(self._audit) if run_id in (None, row.run_id))
        return list(islice(newest, limit))

    async def write(self, rows: Sequence[Apart]) -> None:
        self._require_open()
        self._check_state(rows)
        self._check_ticks(rows)
        self._check_platforms(rows)
        self._check_calendar(rows)
        self._check_steps(rows)
        self._check_forgetting(rows)
        self._check_moving(rows)
        self._write_rows(rows)

    # --- keys

    async def secret_mark(self) -> str | None:
        return self._secret_mark

    async def set_secret_mark(self, mark: str) -> None:
        self._secret_mark = mark

    async def add_key(self, row: ApiKeyRow) -> None:
        self._require_open()
        if row.key_hash in self._keys or any(row.key_id == key.key_id for key in self._keys.values()):
            raise HostError(ErrorCode.CONFLICT, "this key exists already")
        self._keys[row.key_hash] = row

    async def find_key(self, key_hash: bytes) -> ApiKeyRow | None:
        row = self._keys.get(key_hash)
        return row if row is not None and row.revoked_at is None else None

    async def live_keys(self, key_ids: Sequence[str]) -> Collection[str]:
        return {row.key_id for row in self._keys.values() if row.revoked_at is None and row.key_id in key_ids}

    async def any_key(self) -> bool:
        return bool(self._keys)

    async def api_keys(self, workspace_id: str | None, *, limit: int = 1000) -> Sequence[ApiKeyRow]:
        mine = [row for row in self._keys.values() if workspace_id in (None, row.workspace_id)]
        return sorted(mine, key=lambda row: -row.created_at)[:limit]

    async def revoke_key(self, key_id: str, at: float, audit_row: AuditRow) -> None:
        self._require_open()
        for row in list(self._keys.values()):
            if row.key_id == key_id and row.revoked_at is None:
                self._keys[row.key_hash] = replace(row, revoked_at=at)
        self._audit.append(audit_row)

    # --- within

    def _require_open(self) -> None:
        if not self._open:
            raise StorageUnavailableError("the store is closed")

    def _check_fence(self, batch: Batch, opened: SessionRow | None) -> None:
        log = self._sessions.get(batch.session_id)
        if self._owners.get(batch.session_id, 0) > batch.epoch:
            fresh = False
        elif log is None or opened is not None:
            fresh = log is None and opened is not None and batch.before.seq == 0
        else:
            fresh = log.epoch <= batch.epoch and log.head.seq == batch.before.seq
        if not fresh:
            raise StaleOwnerError(f"session {batch.session_id} has another owner")

    def _check_conflicts(self, rows: Sequence[Row]) -> None:
        """Refuse what the keys of a database would refuse, before anything is written."""
        _no_twins(
            "inbox key", ((r.session_id, r.key) for r in rows if isinstance(r, InboxRow)), self._inbox.__contains__
        )
        items = ((r.session_id, r.seq) for r in rows if isinstance(r, TranscriptRow))
        _no_twins("transcript item", items, self._has_item)
        labels = dict(self._labels)
        for row in rows:
            if (
                isinstance(row, RunRow)
                and row.client_run_id
                and labels.setdefault(label_of(row), row.run_id) != row.run_id
            ):
                raise HostError(ErrorCode.CONFLICT, f"run label {row.client_run_id} is taken in this session")

    def _has_item(self, key: tuple[str, int]) -> bool:
        log = self._sessions.get(key[0])
        return log is not None and key[1] in log.items

    def _add_session(self, row: SessionRow) -> MemorySession:
        self._opened += 1
        log = self._sessions[row.session_id] = MemorySession(row, self._opened)
        return log

    def _write_rows(self, rows: Sequence[Row]) -> None:
        self._write_kept([row for row in rows if isinstance(row, Kept)])  # first: it may refuse
        for row in rows:
            write = self._writers.get(type(row))
            if write is not None:  # others are written with the log they belong to, or above
                write(row)

    def _write_agent(self, row: AgentRow) -> None:
        if row.body:
            self._agents[row.workspace_id, row.agent_id] = row
        else:
            self._agents.pop((row.workspace_id, row.agent_id), None)

    def _write_plugin(self, row: PluginRow) -> None:
        if row.body:
            self._plugins[row.plugin] = row
        else:
            self._plugins.pop(row.plugin, None)

    def _write_order(self, row: InboxRow) -> None:
        self._inbox[row.session_id, row.key] = row

    def _forget(self, gone: SessionGone) -> None:
        self._forget_session(gone)
        self._forget_details(gone.session_id)
        self._forget_opinions(gone.session_id)
        self._forget_deliveries(gone.session_id)
        self._inbox = {key: row for key, row in self._inbox.items() if key[0] != gone.session_id}
        self._labels = {key: run_id for key, run_id in self._labels.items() if run_id in self._runs}
        self._forget_state(gone.scope_keys)

    def _trim_log(self, row: LogTrimmed) -> None:
        going = [fact.time for fact in self._sessions[row.session_id].facts.values() if fact.seq <= row.through]
        self._trim(row)
        self._drop_digests(row.session_id, lambda _, at: at <= max(going, default=0.0))

    def _erase_requests(self, row: RequestsErased) -> None:
        self._drop_digests(row.session_id, lambda run_id, at: run_id == row.run_id or at >= row.since)

    def _drop_digests(self, session_id: str, is_meant: Callable[[str, float], bool]) -> None:
        for key, one in self._inbox.items():
            if one.session_id == session_id and is_meant(one.run_id, one.created_at):
                self._inbox[key] = replace(one, body_hash=ERASED_DIGEST)
        for key, event in self._platform_events.items():
            if event.session_id == session_id and is_meant(event.run_id, event.received_at):
                self._platform_events[key] = replace(event, body_hash=ERASED_DIGEST)

    def _write_run(self, row: RunRow) -> None:
        known = self._runs.get(row.run_id)
        if known is not None:  # to whom a run belongs is written once
            row = replace(
                row,
                session_id=known.session_id,
                workspace_id=known.workspace_id,
                user_id=known.user_id,
                client_run_id=known.client_run_id,
                created_at=known.created_at,
                subthread_id=known.subthread_id,
            )
        elif row.client_run_id:
            self._labels[label_of(row)] = row.run_id
        self._runs[row.run_id] = row


def _advance(log: MemorySession, batch: Batch) -> None:
    for turn_id, first, last in batch.compacted:
        for seq in range(first, last + 1):
            if (fact := log.facts.get(seq)) and fact.is_delta and fact.turn_id == turn_id:
                del log.facts[seq]
    log.facts.update({fact.seq: fact for fact in without_replaced(batch.facts, batch.compacted)})
    log.items.update({row.seq: row for row in batch.rows if isinstance(row, TranscriptRow)})
    log.epoch, log.head = batch.epoch, batch.after
    if batch.snapshot:
        log.snapshot, log.snapshot_seq = batch.snapshot, batch.after.seq


def _no_twins(what: str, keys: Iterable[_Key], exists: Callable[[_Key], bool]) -> None:
    seen: set[_Key] = set()
    for key in keys:
        if key in seen or exists(key):
            raise HostError(ErrorCode.CONFLICT, f"{what} {key} exists already")
        seen.add(key)
